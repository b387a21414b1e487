import type { TokenMatcher } from './grammar.ts';

/**
 * Holds an answer to given tokens, one after the other, as a grammar holds it to a language: the log-probabilities that are reported with the answer are
 * those of a text that is known already.
 */
export class ForcedTokens implements TokenMatcher {
  readonly #tokens: readonly number[];
  /** A sequence reads it as its next step is encoded, before the step's token moves the one bit that is set. */
  readonly #mask: Int32Array;
  #next = 0;

  constructor(tokens: readonly number[], vocabulary: number) {
    this.#tokens = tokens;
    this.#mask = new Int32Array(Math.ceil(vocabulary / 32));
    this.#flip();
  }

  get mask(): Int32Array {
    return this.#mask;
  }

  bitmask(): Promise<Int32Array> {
    return Promise.resolve(this.#mask);
  }

  accept(token: number): boolean {
    if (token !== this.#tokens[this.#next]) return false;
    this.#flip();
    this.#next++;
    this.#flip();
    return true;
  }

  /** The last token has a log-probability as the others have, so no token is a mere end: the request's `maxTokens` ends the answer. */
  get terminated(): boolean {
    return false;
  }

  dispose(): void {}

  /** Turns the bit of the next token, if there is one. */
  #flip(): void {
    const token = this.#tokens[this.#next];
    if (token !== undefined) this.#mask[token >> 5]! ^= 1 << (token & 31);
  }
}
