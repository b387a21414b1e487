/**
 * Streaming parser of a tool call as Qwen3-Coder and Qwen3.5 write it. Values are plain text, and the tool's schema tells their types:
 *
 *     <function=NAME>
 *     <parameter=KEY>
 *     VALUE
 *     </parameter>
 *     </function>
 */
import { LONGEST_HEAD } from './json-call.ts';
import type { CallPart, TaggedCall, Tools } from './json-call.ts';
import { mendJson } from './json-scan.ts';
import { isObject } from '../util/json.ts';

const CLOSE_PARAMETER = '</parameter>';
const CLOSE_FUNCTION = '</function>';

/** Parses one such call while it streams. */
export class XmlCall implements TaggedCall {
  readonly #tools: Tools;
  readonly #endsItself: boolean;
  text = '';
  rest: string | undefined;
  /** Text that is not parsed yet. Text of a value is moved to `#value`, except an end that may belong to its closing tag. */
  #unread = '';
  #value = '';
  #key: string | undefined;
  #name: string | undefined;
  /** Number of parameters returned, and whether the call has ended. */
  #count = 0;
  #closed = false;
  /** Whether the text after a parameter is neither another one nor the call's end. */
  #isLost = false;

  /** `opened`: beginning of a call that has no tags around it, and therefore ends with its function. */
  constructor(tools: Tools, opened = '') {
    this.#tools = tools;
    this.#endsItself = opened !== '';
    this.#unread = opened;
  }

  get started(): boolean {
    return this.#name !== undefined;
  }

  push(piece: string): CallPart[] {
    this.text += piece;
    if (this.#closed || this.#isLost) return [];
    this.#unread += piece;
    const parts: CallPart[] = [];
    while (!this.#closed && this.#step(parts));
    // A call of an unknown tool is text, with everything after it.
    if (this.#endsItself && this.#closed) this.#leave(this.started ? this.#unread : '');
    return parts;
  }

  end(): CallPart[] {
    if (!this.started || this.#closed) return [];
    // A value without closing tag ends with the call.
    const last = this.#key === undefined ? '' : this.#pair(withoutEnd(this.#value + this.#unread));
    return [{ type: 'arguments', text: last + this.#close() }];
  }

  #step(parts: CallPart[]): boolean {
    if (this.#key !== undefined) return this.#stepValue(this.#key, parts);
    if (this.#name === undefined) {
      const [, name] = this.#next(/^\s*<function=([^>\s]+)>/) ?? [];
      if (name !== undefined && this.#tools.has(name)) parts.push({ type: 'name', text: (this.#name = name) });
      else this.#closed = name !== undefined || this.#unread.length > LONGEST_HEAD;
      return name !== undefined;
    }
    if (this.#next(/^\s*<\/function>/)) {
      parts.push({ type: 'arguments', text: this.#close() });
      return false;
    }
    [, this.#key] = this.#next(/^\s*<parameter=([^>\s]+)>/) ?? [];
    this.#isLost = this.#key === undefined && this.#unread.length > LONGEST_HEAD;
    return this.#key !== undefined;
  }

  #stepValue(key: string, parts: CallPart[]): boolean {
    const end = this.#unread.indexOf(CLOSE_PARAMETER);
    const known = end < 0 ? Math.max(0, this.#unread.length - CLOSE_PARAMETER.length) : end;
    this.#value += this.#unread.slice(0, known);
    this.#unread = this.#unread.slice(end < 0 ? known : end + CLOSE_PARAMETER.length);
    if (end < 0) return false;
    parts.push({ type: 'arguments', text: this.#pair(this.#value) });
    return true;
  }

  #close(): string {
    this.#closed = true;
    return this.#count === 0 ? '{}' : '}';
  }

  #leave(rest: string): void {
    this.rest = rest;
    this.text = this.text.slice(0, this.text.length - rest.length);
  }

  /** Returns the current parameter as the next pair of the arguments, without the line ends around its value. */
  #pair(value: string): string {
    const key = this.#key!;
    this.#key = undefined;
    this.#value = '';
    return `${this.#count++ === 0 ? '{' : ', '}${JSON.stringify(key)}: ${valueOf(value.replace(/^\n|\n$/g, ''), this.#schema(key))}`;
  }

  /** Takes a tag from the beginning of the unparsed text. */
  #next(tag: RegExp): RegExpExecArray | undefined {
    const found = tag.exec(this.#unread);
    if (found) this.#unread = this.#unread.slice(found[0].length);
    return found ?? undefined;
  }

  #schema(key: string): unknown {
    return parameterSchema(this.#tools, this.#name!, key);
  }
}

/** The schema of a tool's parameter; undefined where there is none. */
export function parameterSchema(tools: Tools, name: string, key: string): unknown {
  const schema = tools.get(name);
  const properties = isObject(schema) ? schema['properties'] : undefined;
  return isObject(properties) ? properties[key] : undefined;
}

/** Removes `</function>` from the end of a value, if it is there. */
function withoutEnd(value: string): string {
  const end = value.trimEnd();
  return end.endsWith(CLOSE_FUNCTION) ? end.slice(0, -CLOSE_FUNCTION.length).trimEnd() : value;
}

/** JSON of Python's booleans and None, as templates print them. */
const PYTHON: ReadonlyMap<string, string> = new Map([['True', 'true'], ['False', 'false'], ['None', 'null']]); // prettier-ignore

/** Converts a value to JSON: a string if the schema allows strings, otherwise the JSON that the text is, repaired if necessary. */
export function valueOf(text: string, schema: unknown): string {
  const types = typesOf(schema);
  const json = PYTHON.get(text.trim()) ?? text.trim();
  const isNull = json === 'null' && types.includes('null');
  // Without a type (no schema, or a reference) the first bracket decides.
  const isText = types.length === 0 ? !/^[[{]/.test(json) : types.includes('string');
  if (isText && !isNull) return JSON.stringify(text);
  try {
    JSON.parse(json);
    return json;
  } catch {
    return mendJson(json) ?? JSON.stringify(text);
  }
}

function typesOf(schema: unknown): readonly unknown[] {
  if (!isObject(schema)) return [];
  const others = [schema['anyOf'], schema['oneOf']].flat().flatMap(typesOf);
  return [...[schema['type'] ?? []].flat(), ...others];
}
