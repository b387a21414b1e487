/**
 * Reads tool calls as DeepSeek's models write them between `<｜tool▁calls▁begin｜>` and `<｜tool▁calls▁end｜>`: V3 and R1 as the first line, V3.1
 * as the second, one behind the other.
 *
 *     <｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME\n```json\n{ARGUMENTS}\n```<｜tool▁call▁end｜>
 *     <｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{ARGUMENTS}<｜tool▁call▁end｜>
 */
import { isObject } from '../util/json.ts';
import { allOrNone } from './json-call.ts';
import type { Tools, WholeCall } from './json-call.ts';
import { readJson } from './json-scan.ts';

export const DEEPSEEK_MARKS = {
  begin: '<｜tool▁calls▁begin｜>',
  end: '<｜tool▁calls▁end｜>',
  call: '<｜tool▁call▁begin｜>',
  separator: '<｜tool▁sep｜>',
  callEnd: '<｜tool▁call▁end｜>',
} as const;

/** The calls that the text between the tags is; none if any of them is no call of an offered tool. */
export function readDeepSeekCalls(text: string, tools: Tools): readonly WholeCall[] {
  const calls = text.split(DEEPSEEK_MARKS.call).slice(1);
  return allOrNone(calls.map((one) => callOf(one, tools)));
}

function callOf(text: string, tools: Tools): WholeCall | undefined {
  const [head = '', ...rest] = text.split(DEEPSEEK_MARKS.separator);
  const [body = ''] = rest.join(DEEPSEEK_MARKS.separator).split(DEEPSEEK_MARKS.callEnd);
  const [, fencedName, fenced] = /^\s*([^\s`]+)\s*```(?:json)?\s([^]*?)\s*(?:```\s*)?$/.exec(body) ?? [];
  const name = fencedName ?? head.trim();
  const given = readJson(fenced ?? body);
  return tools.has(name) && isObject(given) ? { name, arguments: JSON.stringify(given) } : undefined;
}
