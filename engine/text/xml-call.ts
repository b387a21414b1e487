/**
 * One call between its tags, as Qwen3-Coder and Qwen3.5 write it; the values are text, and the tool's schema says what of:
 *
 *     <function=NAME>
 *     <parameter=KEY>
 *     VALUE
 *     </parameter>
 *     </function>
 */
import type { CallPart, TaggedCall } from './json-call.ts';
import { isObject } from '../util/json.ts';

const CLOSE_PARAMETER = '</parameter>';

export class XmlCall implements TaggedCall {
  readonly #tools: ReadonlyMap<string, unknown>;
  text = '';
  /** How far the text is read, and the last place where the end of a value was looked for. */
  #at = 0;
  #looked = 0;
  #key: string | undefined;
  #name: string | undefined;
  /** Parameters that were given on; closed once the call has ended. */
  #count = 0;
  #closed = false;

  /** JSON Schemas of the parameters, by tool. */
  constructor(tools: ReadonlyMap<string, unknown>) {
    this.#tools = tools;
  }

  get started(): boolean {
    return this.#name !== undefined;
  }

  push(piece: string): CallPart[] {
    this.text += piece;
    const parts: CallPart[] = [];
    while (!this.#closed && this.#step(parts));
    return parts;
  }

  end(): CallPart[] {
    if (!this.started || this.#closed) return [];
    // A value whose end was forgotten ends with the call.
    const last = this.#key === undefined ? '' : this.#pair(this.text.slice(this.#at).replace(/\s*<\/function>\s*$/, ''));
    this.#closed = true;
    return [{ type: 'arguments', text: last + (this.#count === 0 ? '{}' : '}') }];
  }

  #step(parts: CallPart[]): boolean {
    if (this.#name === undefined) {
      const [, name] = this.#next(/\s*<function=([^>\s]+)>/y, ([, found]) => this.#tools.has(found!)) ?? [];
      if (name === undefined) return false;
      this.#name = name;
      parts.push({ type: 'name', text: name });
    } else if (this.#key === undefined) {
      if (this.#next(/\s*<\/function>/y)) parts.push(...this.end());
      else {
        const [, key] = this.#next(/\s*<parameter=([^>\s]+)>/y) ?? [];
        if (key === undefined) return false;
        this.#key = key;
        this.#looked = this.#at;
      }
    } else {
      const end = this.text.indexOf(CLOSE_PARAMETER, this.#looked);
      this.#looked = Math.max(this.#looked, this.text.length - CLOSE_PARAMETER.length);
      if (end < 0) return false;
      parts.push({ type: 'arguments', text: this.#pair(this.text.slice(this.#at, end)) });
      this.#at = end + CLOSE_PARAMETER.length;
    }
    return true;
  }

  /** The next pair of the arguments. A value stands on lines of its own. */
  #pair(value: string): string {
    const key = this.#key!;
    this.#key = undefined;
    return `${this.#count++ === 0 ? '{' : ', '}${JSON.stringify(key)}: ${valueOf(value.replace(/^\n|\n$/g, ''), this.#schema(key))}`;
  }

  #next(pattern: RegExp, isGood = (_: RegExpExecArray): boolean => true): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.text);
    if (!found || !isGood(found)) return undefined;
    this.#at = pattern.lastIndex;
    return found;
  }

  #schema(key: string): unknown {
    const schema = this.#tools.get(this.#name!);
    const properties = isObject(schema) ? schema['properties'] : undefined;
    return isObject(properties) ? properties[key] : undefined;
  }
}

/** Templates print booleans and null as Python does. */
const PYTHON: Readonly<Record<string, string>> = { True: 'true', False: 'false', None: 'null' };

/** A value as JSON: text where the schema has a place for text, else what it says. */
function valueOf(text: string, schema: unknown): string {
  const types = typesOf(schema);
  const json = PYTHON[text.trim()] ?? text.trim();
  const isNull = json === 'null' && types.includes('null');
  // A schema elsewhere, or none, says nothing: brackets do.
  const isText = types.length === 0 ? !/^[[{]/.test(json) : types.includes('string');
  if (isText && !isNull) return JSON.stringify(text);
  try {
    JSON.parse(json);
    return json;
  } catch {
    return JSON.stringify(text);
  }
}

function typesOf(schema: unknown): readonly unknown[] {
  if (!isObject(schema)) return [];
  const others = [schema['anyOf'], schema['oneOf']].flat().flatMap(typesOf);
  return [...[schema['type'] ?? []].flat(), ...others];
}
