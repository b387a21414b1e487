/** Streaming parsers of tool calls: the interface that OutputParser uses, and the implementation for calls written as JSON. */
import { isObject } from '../util/json.ts';
import { JsonScan, readJson } from './json-scan.ts';
import { UntaggedCalls } from './untagged-calls.ts';

/** A piece of a tool call: first its name, then pieces of its arguments, which together are JSON text. Another name begins the next call. */
export interface CallPart {
  readonly type: 'name' | 'arguments';
  readonly text: string;
}

/** A complete tool call; its arguments are JSON text. */
export interface WholeCall {
  readonly name: string;
  readonly arguments: string;
}

/** The tools offered: parameter schema by name. */
export type Tools = ReadonlyMap<string, unknown>;

/** A streaming parser of the text after a tag that begins tool calls. */
export interface TaggedCall {
  /** All text of the call so far. */
  readonly text: string;
  /** True once a call's name has been returned. */
  readonly started: boolean;
  /** Text after the end of a call that has no closing tag; undefined until it ends. Not part of `text`. */
  readonly rest?: string | undefined;
  /** Takes the next text of the call; returns the parts that it completes. */
  push(piece: string): CallPart[];
  /** Returns the remaining parts at the closing tag, or at the end of an answer in which the call's name was never complete. */
  end(): CallPart[];
  /** Returns the remaining parts of a call that the end of the answer cut off after its name. */
  cut?(): CallPart[];
  /**
   * Number of characters of `text`, which begins with the closing tag, that belong to the call because the tag is within one of its strings; 0 if the tag
   * closes the call. Undefined if that cannot be told yet: the caller asks again with more text.
   */
  goesOn?(text: string, close: string): number | undefined;
}

/** Most characters before a call's arguments. A call with a longer head is not streamed, but parsed when it is complete. */
export const LONGEST_HEAD = 512;

/**
 * Parses one `{"name": ..., "arguments": {...}}` while it streams. Arguments are returned as they are written, or repaired if they are not quite JSON. Keys in another
 * order, and lists of calls, are parsed at the end.
 */
export class JsonCall implements TaggedCall {
  readonly #tools: Tools;
  readonly #scan = new JsonScan();
  text = '';
  #head = '';
  #started = false;
  /** Scans past a closing tag within a string, to see whether the arguments go on and end properly after it. */
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

/** Buffers the text between tags and parses it when it is complete. */
export class BufferedCalls implements TaggedCall {
  readonly #read: (text: string) => readonly WholeCall[];
  text = '';
  started = false;

  /** `read` parses the whole text, and returns no calls for text that is none. */
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

/** An arguments part, unless the text is empty. */
export const piecesOf = (text: string): CallPart[] => (text === '' ? [] : [{ type: 'arguments', text }]);

const partsOf = ({ name, arguments: text }: WholeCall): CallPart[] => [
  { type: 'name', text: name },
  { type: 'arguments', text },
];

/** Parses calls written as one JSON object or a list of them; returns none if any of them is no call of an offered tool. */
export function readJsonCalls(text: string, tools: Tools): readonly WholeCall[] {
  // Calls that consist of a name and arguments alone keep the arguments' spelling.
  const written = new UntaggedCalls([...tools.keys()]);
  if (written.push(text) && written.calls.length > 0) return written.calls;
  return allOrNone([readJson(text)].flat().map((one) => callOf(one, tools)));
}

/** The calls; none if any of them is no call of an offered tool. */
export function allOrNone(calls: readonly (WholeCall | undefined)[]): readonly WholeCall[] {
  return calls.every((call) => call !== undefined) ? calls : [];
}

function callOf(value: unknown, tools: Tools): WholeCall | undefined {
  const call = isObject(value) && isObject(value['function']) ? value['function'] : value;
  if (!isObject(call)) return undefined;
  // Cohere's calls have a `tool_name`.
  const { name = call['tool_name'], arguments: args = call['parameters'] ?? {} } = call as {
    readonly name?: unknown;
    readonly arguments?: unknown;
  };
  // Arguments may be JSON in a string, as in the OpenAI API.
  const object = typeof args === 'string' ? readJson(args) : args;
  return typeof name === 'string' && tools.has(name) && isObject(object) ? { name, arguments: JSON.stringify(object) } : undefined;
}
