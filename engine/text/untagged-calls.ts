/**
 * Recognises an answer that consists of tool calls without tags: JSON objects, in a list or a Markdown code fence or bare, as Qwen2.5-Coder writes them, and
 * `{"name": ..., "parameters": {...}}`, as Llama 3 does. It reads character by character, so that any other answer is recognised at once and can stream.
 */
import { JsonScan } from './json-scan.ts';

const KEYS = ['name', 'arguments', 'parameters', 'type'];
/** Markdown code fences that may surround the objects. */
const FENCES = ['```', '```json', '```tool_call'];
/** Characters allowed between objects; brackets need not be balanced. */
const BETWEEN = /[\s[\],;]/;

export class UntaggedCalls {
  readonly #tools: readonly string[];
  /** All text so far. */
  text = '';
  readonly #calls: { readonly name: string; readonly arguments: string }[] = [];
  /** What is expected next. */
  #next: 'object' | 'key' | 'colon' | 'value' | 'comma' = 'object';
  #fence = '';
  /** The key or value being read, undefined outside of strings; `#words` are the ones allowed. */
  #word: string | undefined;
  #words: readonly string[] = [];
  #key = '';
  #name: string | undefined;
  #arguments: string | undefined;
  /** Scanner of the arguments being read; `#open` is their text so far. */
  #scan: JsonScan | undefined;
  #open = '';

  constructor(tools: readonly string[]) {
    this.#tools = tools;
  }

  /** Takes the next piece; false once the text cannot be tool calls of these tools. */
  push(piece: string): boolean {
    this.text += piece;
    for (let at = 0; at < piece.length;) {
      if (!this.#scan && !this.#take(piece[at]!)) return false;
      // The opening brace of the arguments is read by their scanner.
      const taken: number | undefined = this.#scan ? this.#takeArguments(this.#scan, piece, at) : 1;
      if (taken === undefined) return false;
      at += taken;
    }
    return true;
  }

  /** The calls, if the text is complete; else none. */
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

  /** Reads a character of a key or value. Neither keys nor tool names need escapes, so none are handled. */
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

  /** Returns how many characters belong to the arguments; undefined if they cannot be an object. */
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

  /** Ends an object; false unless it has a name and arguments. */
  #close(): boolean {
    const [name, args] = [this.#name, this.#arguments];
    if (name === undefined || args === undefined) return false;
    this.#calls.push({ name, arguments: args });
    this.#next = 'object';
    this.#name = this.#arguments = undefined;
    return true;
  }
}
