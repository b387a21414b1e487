/**
 * Reads a tool call as GLM-4.5 and later write it between `<tool_call>` tags. Values are plain text, and the tool's schema tells their types:
 *
 *     NAME
 *     <arg_key>KEY</arg_key>
 *     <arg_value>VALUE</arg_value>
 */
import type { Tools, WholeCall } from './json-call.ts';
import { parameterSchema, valueOf } from './xml-call.ts';

/** The one call that the text between the tags is; none if it is something else, or a call of an unknown tool. */
export function readKeyedCall(text: string, tools: Tools): readonly WholeCall[] {
  const first = text.indexOf('<arg_key>');
  const name = text.slice(0, first < 0 ? undefined : first).trim();
  if (!tools.has(name)) return [];
  const pairs: string[] = [];
  let rest = first < 0 ? '' : text.slice(first).trim();
  while (rest !== '') {
    const key = taken(rest, 'arg_key');
    const value = key && taken(key.rest, 'arg_value');
    if (!value) return [];
    pairs.push(`${JSON.stringify(key.content)}: ${valueOf(value.content, parameterSchema(tools, name, key.content))}`);
    rest = value.rest;
  }
  return [{ name, arguments: `{${pairs.join(', ')}}` }];
}

/** What the element that a text begins with contains, and the text behind it; undefined if it does not begin with one. */
function taken(text: string, element: string): { readonly content: string; readonly rest: string } | undefined {
  const [open, close] = [`<${element}>`, `</${element}>`];
  const end = text.startsWith(open) ? text.indexOf(close) : -1;
  return end < 0 ? undefined : { content: text.slice(open.length, end), rest: text.slice(end + close.length).trimStart() };
}
