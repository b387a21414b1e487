/** Calls between their tags, as they come: what they are to the parser of answers, and those written as JSON. */
import { isObject } from '../util/json.ts';
import { JsonScan, readJson } from './json-scan.ts';
import { UntaggedCalls } from './untagged-calls.ts';

/** A piece of a call: its name, once, and then its arguments, JSON text. The next name begins the next call. */
export interface CallPart {
  readonly type: 'name' | 'arguments';
  readonly text: string;
}

/** A whole call; its arguments are JSON text. */
export interface WholeCall {
  readonly name: string;
  readonly arguments: string;
}

/** JSON Schemas of parameters, by tool. */
export type Tools = ReadonlyMap<string, unknown>;

/** What follows a tag that begins calls, as it comes. */
export interface TaggedCall {
  /** Everything so far. */
  readonly text: string;
  /** True once a name was passed on. */
  readonly started: boolean;
  /** Where no tag closes it: what stood behind its end in the last piece, and is none of `text`. */
  readonly rest?: string | undefined;
  push(piece: string): CallPart[];
  /** What is still to be said at the closing tag, or at the end of the answer where no name was passed on. */
  end(): CallPart[];
  /** What is still to be said of a call that the end of the answer cut behind its name. */
  cut?(): CallPart[];
  /**
   * How much of `text`, which begins with the closing tag, belongs to the call, because the tag stands in a string of it; 0 where the tag closes the call. undefined: only
   * more of the text says so, and the next call brings it.
   */
  goesOn?(text: string, close: string): number | undefined;
}

/** Characters of a call in front of its arguments: what is longer is read when it is whole. */
export const LONGEST_HEAD = 512;

/** Reads one `{"name": ..., "arguments": {...}}` piece by piece; the arguments are passed on as written, or mended. Any other order, and lists, are read at the end. */
export class JsonCall implements TaggedCall {
  readonly #tools: Tools;
  readonly #scan = new JsonScan();
  text = '';
  #head = '';
  #started = false;
  /** Reads on behind a closing tag in a string, to see whether arguments end there after all. */
  #ahead: { readonly scan: JsonScan; seen: number; end: number | undefined } | undefined;

  constructor(tools: Tools) {
    this.#tools = tools;
  }

  get started(): boolean {
    return this.#started;
  }

  goesOn(text: string, close: string): number | undefined {
    if (!this.#scan.isInString) return 0;
    const ahead = (this.#ahead ??= { scan: this.#scan.clone(), seen: 0, end: undefined });
    if (ahead.end === undefined) {
      const { taken, ended } = ahead.scan.push(text.slice(ahead.seen));
      ahead.seen += taken;
      if (ended) ahead.end = ahead.seen;
      else return ahead.scan.isLost ? 0 : undefined;
    }
    if (ahead.scan.isLost) return 0;
    const behind = text.slice(ahead.end).replace(/^\s*\}?\s*/, '');
    if (behind.length < close.length && close.startsWith(behind)) return undefined;
    return behind.startsWith(close) ? ahead.end : 0;
  }

  push(piece: string): CallPart[] {
    this.text += piece;
    this.#ahead = undefined;
    if (this.#started) return this.#arguments(piece);
    if (this.#head.length > LONGEST_HEAD) return [];
    this.#head += piece;
    const head = /^\s*\{\s*"name"\s*:\s*"([^"\\]*)"\s*,\s*"(?:arguments|parameters)"\s*:\s*(?=\{)/.exec(this.#head);
    if (!head || !this.#tools.has(head[1]!)) return [];
    this.#started = true;
    return [{ type: 'name', text: head[1]! }, ...this.#arguments(this.#head.slice(head[0].length))];
  }

  end(): CallPart[] {
    if (this.#started) return piecesOf(this.#scan.close());
    const calls = readJsonCalls(this.text, this.#tools);
    this.#started = calls.length > 0;
    return calls.flatMap(partsOf);
  }

  cut(): CallPart[] {
    return piecesOf(this.#scan.cut());
  }

  #arguments(piece: string): CallPart[] {
    return piecesOf(this.#scan.push(piece).text);
  }
}

/** Buffers what stands between tags, and reads it when it is whole. */
export class BufferedCalls implements TaggedCall {
  readonly #read: (text: string) => readonly WholeCall[];
  text = '';
  started = false;

  /** `read` gives no calls for what is none. */
  constructor(read: (text: string) => readonly WholeCall[]) {
    this.#read = read;
  }

  push(piece: string): CallPart[] {
    this.text += piece;
    return [];
  }

  end(): CallPart[] {
    const calls = this.#read(this.text);
    this.started = calls.length > 0;
    return calls.flatMap(partsOf);
  }
}

/** A piece of arguments, if it says anything. */
export const piecesOf = (text: string): CallPart[] => (text === '' ? [] : [{ type: 'arguments', text }]);

const partsOf = ({ name, arguments: text }: WholeCall): CallPart[] => [
  { type: 'name', text: name },
  { type: 'arguments', text },
];

/** Calls written as JSON, an object or a list of them; none where one is no call of these tools. */
export function readJsonCalls(text: string, tools: Tools): readonly WholeCall[] {
  // As they were written, where they have nothing but a name and arguments.
  const written = new UntaggedCalls([...tools.keys()]);
  if (written.push(text) && written.calls.length > 0) return written.calls;
  const value = readJson(text);
  const calls = [value].flat().map((one) => callOf(one, tools));
  return calls.every((call) => call !== undefined) ? calls : [];
}

function callOf(value: unknown, tools: Tools): WholeCall | undefined {
  const call = isObject(value) && isObject(value['function']) ? value['function'] : value;
  if (!isObject(call)) return undefined;
  const { name, arguments: args = call['parameters'] ?? {} } = call as { readonly name?: unknown; readonly arguments?: unknown };
  // Arguments as text, as the API has them.
  const object = typeof args === 'string' ? readJson(args) : args;
  return typeof name === 'string' && tools.has(name) && isObject(object) ? { name, arguments: JSON.stringify(object) } : undefined;
}
