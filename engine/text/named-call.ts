/** Reads tool calls as Apertus writes them between `<|tools_prefix|>` and `<|tools_suffix|>`: `[{"NAME": {ARGUMENTS}}, ...]`. */
import { isObject } from '../util/json.ts';
import { allOrNone } from './json-call.ts';
import type { Tools, WholeCall } from './json-call.ts';
import { readJson } from './json-scan.ts';

/** The calls of a list; none if any of them is no call of an offered tool. */
export function readNamedCalls(text: string, tools: Tools): readonly WholeCall[] {
  return allOrNone([readJson(text)].flat().map((one) => callOf(one, tools)));
}

function callOf(call: unknown, tools: Tools): WholeCall | undefined {
  const [pair, ...others] = isObject(call) ? Object.entries(call) : [];
  if (!pair || others.length > 0) return undefined;
  const [name, given] = pair;
  return tools.has(name) && isObject(given) ? { name, arguments: spaced(given) } : undefined;
}

/** JSON with blanks where Python has them, as the model writes it: what comes back in a conversation is what it wrote. */
function spaced(value: unknown): string {
  // Line breaks within strings are escaped.
  return JSON.stringify(value, null, 1).replaceAll(/,\n */g, ', ').replaceAll(/\n */g, '');
}
