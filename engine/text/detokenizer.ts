/** Token ids of a running answer -> text that can be sent: whole characters only, nothing that may yet become a stop string. */

const REPLACEMENT = '\ufffd';

/** A character takes at most 4 byte tokens; text that still ends in U+FFFD after more is broken and goes out as it is. */
const MAX_PENDING = 8;

/**
 * Decodes incrementally. A token's text depends on its neighbours (leading spaces, bytes of one character), so a few settled tokens are
 * decoded again with the new ones and their text is taken off.
 */
export class Detokenizer {
  readonly #decode: (ids: readonly number[]) => string;
  #ids: number[] = [];
  /** ids[0..settled) are context whose text has been given out. */
  #settled = 0;
  /** Tokens since the text ends within a character; those before may have had no text. */
  #partial = 0;

  /** `before`: the tokens of a text that this one goes on from. Without them it begins as a text does: SentencePiece leaves out the space in front of its first word. */
  constructor(decode: (ids: readonly number[]) => string, before: readonly number[] = []) {
    this.#decode = decode;
    this.#ids = this.#lastCharacter(before);
    this.#settled = this.#ids.length;
  }

  /** The last tokens that end with a whole character; none where there is none. */
  #lastCharacter(ids: readonly number[]): number[] {
    for (let count = 1; count <= Math.min(ids.length, MAX_PENDING); count++) {
      const last = ids.slice(-count);
      if (!this.#decode(last).endsWith(REPLACEMENT)) return last;
    }
    return [];
  }

  /** Text that a token completes; '' while it may be part of a character. */
  push(id: number): string {
    this.#ids.push(id);
    const settledText = this.#decode(this.#ids.slice(0, this.#settled));
    const text = this.#decode(this.#ids);
    if (text.length <= settledText.length || (text.endsWith(REPLACEMENT) && ++this.#partial < MAX_PENDING)) return '';
    return this.#settle(text.slice(settledText.length));
  }

  /** Whatever is left when the answer ends. */
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

/** Finds stop strings across deltas. */
export class StopMatcher {
  readonly #stops: readonly string[];
  #held = '';

  constructor(stops: readonly string[]) {
    this.#stops = stops;
  }

  /** Text that is safe to send, cut before the earliest stop string if there is one, and what follows that, of which nothing is remembered. */
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
    const keep = stop === undefined ? this.#possibleStart(all) : 0;
    this.#held = all.slice(at - keep, at);
    return { text: all.slice(0, at - keep), stop, rest: all.slice(at + (stop?.length ?? 0)) };
  }

  /** What was held back, once nothing more comes. */
  flush(): string {
    const text = this.#held;
    this.#held = '';
    return text;
  }

  /** Length of the longest end of `text` that a stop string begins with. */
  #possibleStart(text: string): number {
    let longest = 0;
    for (const stop of this.#stops) {
      for (let length = Math.min(stop.length - 1, text.length); length > longest; length--) {
        if (text.endsWith(stop.slice(0, length))) longest = length;
      }
    }
    return longest;
  }
}
