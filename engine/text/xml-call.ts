/**
 * One call between its tags, as Qwen3-Coder and Qwen3.5 write it; the values are text, and the tool's schema says what of:
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

export class XmlCall implements TaggedCall {
  readonly #tools: Tools;
  readonly #endsItself: boolean;
  text = '';
  rest: string | undefined;
  /** What is not read yet, but for what of a value has no end in it. */
  #unread = '';
  #value = '';
  #key: string | undefined;
  #name: string | undefined;
  /** Parameters that were given on; closed once the call has ended. */
  #count = 0;
  #closed = false;
  /** What follows is no parameter and no end. */
  #isLost = false;

  /** `opened`: what of it has been read; such a call ends with its function, and not with a tag around it. */
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
    // What follows the name of no tool is other text.
    if (this.#endsItself && this.#closed) this.#leave(this.started ? this.#unread : '');
    return parts;
  }

  end(): CallPart[] {
    if (!this.started || this.#closed) return [];
    // A value whose end was forgotten ends with the call.
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

  /** The next pair of the arguments. A value stands on lines of its own. */
  #pair(value: string): string {
    const key = this.#key!;
    this.#key = undefined;
    this.#value = '';
    return `${this.#count++ === 0 ? '{' : ', '}${JSON.stringify(key)}: ${valueOf(value.replace(/^\n|\n$/g, ''), this.#schema(key))}`;
  }

  /** A tag at the beginning of what is not read; a longer one is none. */
  #next(tag: RegExp): RegExpExecArray | undefined {
    const found = tag.exec(this.#unread);
    if (found) this.#unread = this.#unread.slice(found[0].length);
    return found ?? undefined;
  }

  #schema(key: string): unknown {
    const schema = this.#tools.get(this.#name!);
    const properties = isObject(schema) ? schema['properties'] : undefined;
    return isObject(properties) ? properties[key] : undefined;
  }
}

/** A value without the end of its function, which may be there. */
function withoutEnd(value: string): string {
  const end = value.trimEnd();
  return end.endsWith(CLOSE_FUNCTION) ? end.slice(0, -CLOSE_FUNCTION.length).trimEnd() : value;
}

/** Templates print booleans and null as Python does. */
const PYTHON: ReadonlyMap<string, string> = new Map([['True', 'true'], ['False', 'false'], ['None', 'null']]); // prettier-ignore

/** A value as JSON: text where the schema has a place for text, else what it says. */
function valueOf(text: string, schema: unknown): string {
  const types = typesOf(schema);
  const json = PYTHON.get(text.trim()) ?? text.trim();
  const isNull = json === 'null' && types.includes('null');
  // A schema elsewhere, or none, says nothing: brackets do.
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
