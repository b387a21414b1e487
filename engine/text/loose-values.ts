/** Parses complete tool calls whose arguments are not JSON: Python calls, and Gemma's. */
import type { Tools, WholeCall } from './json-call.ts';

/** Most levels of nested lists and objects; deeper text is no call. */
const DEEPEST = 64;

/** Parses `[name(key='text', n=3), other()]`, as LFM2 writes it, or one call per line, as OLMo 3 does. Returns no calls if one is of no offered tool. */
export function readPythonCalls(text: string, tools: Tools): readonly WholeCall[] {
  // Templates put strings between quotation marks without escaping those inside, and so do models. The second attempt therefore ends a string only where one can
  // end.
  return attempt(() => new LooseReader(text, tools, {}).pythonCalls()) ?? attempt(() => new LooseReader(text, tools, { isLenient: true }).pythonCalls()) ?? []; // prettier-ignore
}

/** Parses `call:name{key:<|"|>text<|"|>,n:3}`, Gemma's form, in which `mark` surrounds strings. Returns no calls if it is none of an offered tool. */
export function readGemmaCall(text: string, tools: Tools, mark: string): readonly WholeCall[] {
  return attempt(() => [new LooseReader(text, tools, { mark }).gemmaCall()]) ?? [];
}

class Malformed extends Error {}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof Malformed) return undefined;
    throw error;
  }
}

interface LooseOptions {
  /** Surrounds strings, in which nothing is escaped. An unmarked string ends where its value does. */
  readonly mark?: string;
  /** A quotation mark ends a string only before what can follow a value. */
  readonly isLenient?: boolean;
}

/** A recursive-descent parser, which reads each character once. Values are returned as JSON. */
class LooseReader {
  readonly #text: string;
  readonly #tools: Tools;
  readonly #options: LooseOptions;
  #at = 0;
  #depth = 0;

  constructor(text: string, tools: Tools, options: LooseOptions) {
    this.#text = text;
    this.#tools = tools;
    this.#options = options;
  }

  pythonCalls(): WholeCall[] {
    const isList = this.#skips('[');
    const calls: WholeCall[] = [];
    while (this.#more(isList ? ']' : '')) {
      const name = this.#name();
      this.#expect('(');
      calls.push({ name, arguments: this.#pairs(')', '=') });
      this.#skips(',');
    }
    if (this.#more('')) throw new Malformed();
    return calls;
  }

  gemmaCall(): WholeCall {
    this.#expect('call:');
    const name = this.#name();
    this.#expect('{');
    const call = { name, arguments: this.#pairs('}', ':') };
    if (this.#more('')) throw new Malformed();
    return call;
  }

  /** Reads the name of an offered tool. */
  #name(): string {
    const name = this.#match(/[\w.-]+/y);
    if (!this.#tools.has(name)) throw new Malformed();
    return name;
  }

  #pairs(close: string, between: ':' | '='): string {
    const pairs: string[] = [];
    while (this.#more(close)) {
      const key = this.#key(between);
      this.#expect(between);
      pairs.push(`${key}: ${this.#value()}`);
      if (!this.#skips(',') && this.#peek() !== close) throw new Malformed();
    }
    return `{${pairs.join(', ')}}`;
  }

  #key(between: ':' | '='): string {
    const { mark } = this.#options;
    const isText = (mark !== undefined && this.#text.startsWith(mark, this.#at)) || /["']/.test(this.#peek());
    if (isText) return this.#value();
    return JSON.stringify(this.#match(between === '=' ? /\w+/y : /[^\s:{}[\],"']+/y));
  }

  #value(): string {
    if (++this.#depth > DEEPEST) throw new Malformed();
    const value = this.#anyValue();
    this.#depth--;
    return value;
  }

  #anyValue(): string {
    const { mark } = this.#options;
    if (mark !== undefined && this.#skips(mark)) return JSON.stringify(this.#until(mark));
    if (this.#skips('{')) return this.#pairs('}', ':');
    if (this.#skips('[')) return this.#items(']');
    if (mark === undefined && this.#skips('(')) return this.#items(')');
    if (this.#peek() === '"' || this.#peek() === "'") return JSON.stringify(this.#quoted());
    const word = this.#match(mark === undefined ? /[\w.+-]+/y : /[^,{}[\]]+/y).trim();
    const json = WORDS.get(word) ?? numberOf(word) ?? (mark === undefined ? undefined : JSON.stringify(word));
    if (json === undefined) throw new Malformed();
    return json;
  }

  #items(close: string): string {
    const items: string[] = [];
    while (this.#more(close)) {
      items.push(this.#value());
      if (!this.#skips(',') && this.#peek() !== close) throw new Malformed();
    }
    return `[${items.join(', ')}]`;
  }

  /** Reads a string of Python or JSON, and returns its value. */
  #quoted(): string {
    const quote = this.#peek();
    const mark = this.#text.startsWith(quote.repeat(3), this.#at) ? quote.repeat(3) : quote;
    this.#at += mark.length;
    const parts: string[] = [];
    for (let from = this.#at; this.#at < this.#text.length;) {
      const c = this.#text[this.#at]!;
      if (c === '\\') {
        parts.push(this.#text.slice(from, this.#at), this.#escape());
        from = this.#at;
      } else if (c === quote && this.#text.startsWith(mark, this.#at) && this.#canEnd(mark)) {
        parts.push(this.#text.slice(from, this.#at));
        this.#at += mark.length;
        return parts.join('');
      } else this.#at++;
    }
    throw new Malformed();
  }

  #canEnd(mark: string): boolean {
    if (this.#options.isLenient !== true || mark.length > 1) return true;
    const [next = ''] = this.#text.slice(this.#at + 1, this.#at + 9).trimStart();
    return ',)]}:'.includes(next);
  }

  /** Reads an escape, and returns its value; an unknown one is returned as written. */
  #escape(): string {
    const [whole, x, u] = /^\\(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|[^]?)/.exec(this.#text.slice(this.#at, this.#at + 6))!;
    this.#at += whole.length;
    const code = x ?? u;
    return code === undefined ? (ESCAPES.get(whole.slice(1)) ?? whole) : String.fromCharCode(parseInt(code, 16));
  }

  #until(mark: string): string {
    const end = this.#text.indexOf(mark, this.#at);
    if (end < 0) throw new Malformed();
    const text = this.#text.slice(this.#at, end);
    this.#at = end + mark.length;
    return text;
  }

  /** Whether more elements follow; otherwise skips the closing bracket, if `close` names one. */
  #more(close: string): boolean {
    this.#blank();
    if (this.#at < this.#text.length) return close === '' || !this.#skips(close);
    if (close !== '') throw new Malformed();
    return false;
  }

  #match(pattern: RegExp): string {
    this.#blank();
    pattern.lastIndex = this.#at;
    const [found] = pattern.exec(this.#text) ?? [];
    if (found === undefined) throw new Malformed();
    this.#at += found.length;
    return found;
  }

  #expect(text: string): void {
    if (!this.#skips(text)) throw new Malformed();
  }

  #skips(text: string): boolean {
    this.#blank();
    const isThere = this.#text.startsWith(text, this.#at);
    if (isThere) this.#at += text.length;
    return isThere;
  }

  #peek(): string {
    this.#blank();
    return this.#text[this.#at] ?? '';
  }

  #blank(): void {
    while (this.#at < this.#text.length && /\s/.test(this.#text[this.#at]!)) this.#at++;
  }
}

const WORDS: ReadonlyMap<string, string> = new Map([
  ['True', 'true'], ['False', 'false'], ['None', 'null'], ['true', 'true'], ['false', 'false'], ['null', 'null'],
]); // prettier-ignore

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['n', '\n'], ['t', '\t'], ['r', '\r'], ['b', '\b'], ['f', '\f'], ['\\', '\\'], ['"', '"'], ["'", "'"], ['/', '/'], ['\n', ''],
]); // prettier-ignore

/** Most characters of a number that is not written as in JSON: the pattern below may take quadratic time. */
const LONGEST_NUMBER = 64;

/** Converts a number to JSON, unchanged if it is JSON already; undefined if it is no number. */
function numberOf(word: string): string | undefined {
  if (/^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(word)) return word;
  if (word.length > LONGEST_NUMBER) return undefined;
  const value = /^[+-]?(?:\d[\d_]*)?\.?\d*(?:[eE][+-]?\d+)?$/.test(word) && /\d/.test(word) ? Number(word.replaceAll('_', '')) : NaN;
  return Number.isFinite(value) ? String(value) : undefined;
}
