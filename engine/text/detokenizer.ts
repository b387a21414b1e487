/** Incremental decoding of an answer: only whole characters are sent, and nothing that may yet become a stop sequence. */
import { partialTag } from './output-parser.ts';

const REPLACEMENT = '\ufffd';

/** Tokens that wait for a character to be completed. A character takes at most 4 byte tokens, so text that still ends in U+FFFD after this many is invalid, and is sent as it is. */
const MAX_PENDING = 8;

/**
 * Decodes token by token. A token's text depends on its neighbours (leading spaces, bytes of one character), so the last tokens that were sent are
 * decoded again with the new ones, and their text is cut off.
 */
export class Detokenizer {
  readonly #decode: (ids: readonly number[]) => string;
  #ids: number[] = [];
  /** The first `#settled` ids are context: their text has been returned. */
  #settled = 0;
  /** Number of pushes since the text has ended within a character. */
  #partial = 0;

  /** `before`: tokens of the text that the answer continues. Without them SentencePiece drops the space before the first word, as at the start of a text. */
  constructor(decode: (ids: readonly number[]) => string, before: readonly number[] = []) {
    this.#decode = decode;
    this.#ids = this.#lastCharacter(before);
    this.#settled = this.#ids.length;
  }

  /** The shortest suffix of the tokens that ends with a whole character; none if MAX_PENDING tokens do not suffice. */
  #lastCharacter(ids: readonly number[]): number[] {
    for (let count = 1; count <= Math.min(ids.length, MAX_PENDING); count++) {
      const last = ids.slice(-count);
      if (!this.#decode(last).endsWith(REPLACEMENT)) return last;
    }
    return [];
  }

  /** Takes a token and returns the text that it completes; '' while the text ends within a character. */
  push(id: number): string {
    this.#ids.push(id);
    const settledText = this.#decode(this.#ids.slice(0, this.#settled));
    const text = this.#decode(this.#ids);
    if (text.length <= settledText.length || (text.endsWith(REPLACEMENT) && ++this.#partial < MAX_PENDING)) return '';
    return this.#settle(text.slice(settledText.length));
  }

  /** Returns the remaining text when the answer ends. */
  flush(): string {
    const text = this.#decode(this.#ids).slice(this.#decode(this.#ids.slice(0, this.#settled)).length);
    return this.#settle(text);
  }

  #settle(text: string): string {
    this.#ids = this.#ids.slice(this.#settled);
    this.#settled = this.#ids.length;
    this.#partial = 0;
    return text;
  }
}

/** Finds stop sequences in streamed text. */
export class StopMatcher {
  readonly #stops: readonly string[];
  #held = '';

  constructor(stops: readonly string[]) {
    this.#stops = stops;
  }

  /**
   * Takes the next text. Returns the text that is safe to send, cut before the earliest stop sequence if there is one, and `rest`, which follows that
   * sequence and is not kept here.
   */
  push(text: string): { readonly text: string; readonly stop: string | undefined; readonly rest: string } {
    const all = this.#held + text;
    let at = all.length;
    let stop: string | undefined;
    for (const candidate of this.#stops) {
      const found = all.indexOf(candidate);
      if (found >= 0 && found < at) {
        at = found;
        stop = candidate;
      }
    }
    const keep = stop === undefined ? partialTag(all, this.#stops) : 0;
    this.#held = all.slice(at - keep, at);
    return { text: all.slice(0, at - keep), stop, rest: all.slice(at + (stop?.length ?? 0)) };
  }

  /** Returns the text that was held back, when the answer ends. */
  flush(): string {
    const text = this.#held;
    this.#held = '';
    return text;
  }
}
