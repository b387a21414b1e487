/**
 * An answer that is nothing but calls of tools, without the tags around them: as Qwen2.5-Coder writes them, one object or several, in a list, in a
 * fence of Markdown; and as Llama 3 does, `{"name": ..., "parameters": {...}}`. Read character by character, so that other text is known at once.
 */
import { JsonScan } from './json-scan.ts';

const KEYS = ['name', 'arguments', 'parameters', 'type'];
/** Around the objects. */
const FENCES = ['```', '```json', '```tool_call'];
/** Characters that stand between objects; the brackets of a list are not counted. */
const BETWEEN = /[\s[\],;]/;

export class UntaggedCalls {
  readonly #tools: readonly string[];
  /** Everything so far. */
  text = '';
  readonly #calls: { readonly name: string; readonly arguments: string }[] = [];
  /** What comes next, outside of objects and in one. */
  #next: 'object' | 'key' | 'colon' | 'value' | 'comma' = 'object';
  #fence = '';
  /** A key or value under way, and what it may become. */
  #word: string | undefined;
  #words: readonly string[] = [];
  #key = '';
  #name: string | undefined;
  #arguments: string | undefined;
  /** Arguments under way, and what of them was read. */
  #scan: JsonScan | undefined;
  #open = '';

  constructor(tools: readonly string[]) {
    this.#tools = tools;
  }

  /** Takes the next piece; false once this is something else. */
  push(piece: string): boolean {
    this.text += piece;
    for (let at = 0; at < piece.length;) {
      if (!this.#scan && !this.#take(piece[at]!)) return false;
      // The bracket that begins arguments is the first of their characters.
      const taken: number | undefined = this.#scan ? this.#takeArguments(this.#scan, piece, at) : 1;
      if (taken === undefined) return false;
      at += taken;
    }
    return true;
  }

  /** The calls of an answer that is over; none = it is something else. */
  get calls(): readonly { readonly name: string; readonly arguments: string }[] {
    return this.#next === 'object' && ['', ...FENCES].includes(this.#fence) ? this.#calls : [];
  }

  #take(c: string): boolean {
    if (this.#word !== undefined) return this.#spell(c);
    if (this.#next === 'object') return this.#between(c);
    if (/\s/.test(c)) return true;
    if (this.#next === 'key') return c === '"' && this.#begin(KEYS);
    if (this.#next === 'comma') {
      this.#next = 'key';
      return c === ',' || (c === '}' && this.#close());
    }
    if (this.#next === 'colon') {
      this.#next = 'value';
      return c === ':';
    }
    if (this.#key === 'name') return c === '"' && this.#begin(this.#tools);
    if (this.#key === 'type') return c === '"' && this.#begin(['function']);
    this.#scan = new JsonScan();
    return c === '{';
  }

  #between(c: string): boolean {
    if (this.#fence !== '' && !/\s/.test(c)) {
      this.#fence += c;
      return FENCES.some((fence) => fence.startsWith(this.#fence));
    }
    if (this.#fence !== '') {
      const whole = FENCES.includes(this.#fence);
      this.#fence = '';
      return whole;
    }
    if (c === '`') this.#fence = c;
    else if (c === '{') this.#next = 'key';
    else return BETWEEN.test(c);
    return true;
  }

  #begin(words: readonly string[]): true {
    this.#word = '';
    this.#words = words;
    return true;
  }

  /** No key, and no name of a tool, has anything to escape. */
  #spell(c: string): boolean {
    const word = this.#word!;
    if (c !== '"') {
      this.#word = word + c;
      return this.#words.some((one) => one.startsWith(word + c));
    }
    this.#word = undefined;
    if (this.#next === 'key') this.#key = word;
    else if (this.#key === 'name') this.#name = word;
    this.#next = this.#next === 'key' ? 'colon' : 'comma';
    return this.#words.includes(word);
  }

  /** Characters that were read; undefined where they can be no arguments. */
  #takeArguments(scan: JsonScan, piece: string, from: number): number | undefined {
    const { text, taken, ended } = scan.push(piece, from);
    if (scan.isLost) return undefined;
    this.#open += text;
    if (!ended) return taken;
    this.#arguments = this.#open;
    this.#open = '';
    this.#scan = undefined;
    this.#next = 'comma';
    return taken;
  }

  /** The end of an object. */
  #close(): boolean {
    const [name, args] = [this.#name, this.#arguments];
    if (name === undefined || args === undefined) return false;
    this.#calls.push({ name, arguments: args });
    this.#next = 'object';
    this.#name = this.#arguments = undefined;
    return true;
  }
}
