/**
 * Reads tool calls as MiniMax-M2 writes them between `<minimax:tool_call>` tags, one behind the other. Values are plain text, and the tool's
 * schema tells their types:
 *
 *     <invoke name="NAME">
 *     <parameter name="KEY">VALUE</parameter>
 *     </invoke>
 */
import { allOrNone } from './json-call.ts';
import type { Tools, WholeCall } from './json-call.ts';
import { parameterSchema, valueOf } from './xml-call.ts';

const CALL = /^\s*<invoke name="([^"]*)">([^]*?)<\/invoke>\s*(?=<invoke |$)/;
const PARAMETER = /^\s*<parameter name="([^"]*)">([^]*?)<\/parameter>\s*(?=<parameter |$)/;

/** The calls that the text between the tags is; none if any of them is no call of an offered tool. */
export function readInvokeCalls(text: string, tools: Tools): readonly WholeCall[] {
  return allOrNone(elements(text, CALL)?.map(([name, body]) => callOf(name, body, tools)) ?? []);
}

function callOf(name: string, body: string, tools: Tools): WholeCall | undefined {
  const pairs = elements(body, PARAMETER);
  if (!pairs || !tools.has(name)) return undefined;
  const written = pairs.map(([key, value]) => `${JSON.stringify(key)}: ${valueOf(value, parameterSchema(tools, name, key))}`);
  return { name, arguments: `{${written.join(', ')}}` };
}

/** Names and contents of the elements that a text consists of; undefined if it is something else. */
function elements(text: string, element: RegExp): readonly (readonly [name: string, content: string])[] | undefined {
  const found: (readonly [string, string])[] = [];
  let rest = text;
  while (rest.trim() !== '') {
    const [whole, name = '', content = ''] = element.exec(rest) ?? [];
    if (whole === undefined) return undefined;
    found.push([name, content]);
    rest = rest.slice(whole.length);
  }
  return found;
}
