/** Calls between their tags, as they come: what they are to the parser of answers, and those written as JSON. */

/** A piece of a call: its name, once, and then its arguments, JSON text. */
export interface CallPart {
  readonly type: 'name' | 'arguments';
  readonly text: string;
}

/** What stands between the tags of a call, as it comes. */
export interface TaggedCall {
  /** Everything so far. */
  readonly text: string;
  /** True once the name was passed on. */
  readonly started: boolean;
  push(piece: string): CallPart[];
  /** What is still to be said at the closing tag. */
  end(): CallPart[];
}

/** Reads one `{"name": ..., "arguments": {...}}` piece by piece; the arguments are passed on as written. */
export class JsonCall implements TaggedCall {
  readonly #tools: ReadonlyMap<string, unknown>;
  /** Everything between the tags so far. */
  text = '';
  #name: string | undefined;
  /** Where the arguments start in `text`; -1 = not found yet. */
  #argumentsAt = -1;
  #given = 0;

  constructor(tools: ReadonlyMap<string, unknown>) {
    this.#tools = tools;
  }

  /** True once the name was passed on. */
  get started(): boolean {
    return this.#argumentsAt >= 0;
  }

  push(piece: string): CallPart[] {
    this.text += piece;
    const out: CallPart[] = [];
    if (!this.started) {
      // The name comes first in every template; an object that says it last is found when it is complete.
      const head = /^\s*\{\s*"name"\s*:\s*"((?:[^"\\]|\\.)*)"\s*,\s*"(?:arguments|parameters)"\s*:\s*(?=\S)/.exec(this.text);
      const name = head && (JSON.parse(`"${head[1]!}"`) as string);
      if (!head || name === null || !this.#tools.has(name)) return out;
      this.#name = name;
      this.#argumentsAt = head[0].length;
      this.#given = this.#argumentsAt;
      out.push({ type: 'name', text: this.#name });
    }
    const end = valueEnd(this.text, this.#argumentsAt);
    const upTo = end < 0 ? this.text.length : end;
    if (upTo > this.#given) {
      out.push({ type: 'arguments', text: this.text.slice(this.#given, upTo) });
      this.#given = upTo;
    }
    return out;
  }

  end(): CallPart[] {
    return [];
  }
}

/** Where the JSON value that starts at `from` ends, or -1 while it is open. Objects and arrays only; others end at a brace. */
function valueEnd(text: string, from: number): number {
  let depth = 0;
  let inString = false;
  for (let i = from; i < text.length; i++) {
    const c = text[i];
    if (inString) {
      if (c === '\\') i++;
      else if (c === '"') inString = false;
    } else if (c === '"') inString = true;
    else if (c === '{' || c === '[') depth++;
    else if (c === '}' || c === ']') {
      depth--;
      if (depth === 0) return i + 1;
      if (depth < 0) return i;
    }
  }
  return -1;
}
