/** What is guessed for sequences, and how much of it was right. */
import type { PromptLookup } from '../config.ts';
import { FROM_HEAD } from './batch.ts';
import { draftTokens } from './prompt-lookup.ts';
import type { Sequence } from './sequence.ts';

/** How sequences are guessed for. */
export interface GuessOptions {
  /** Speculative decoding; absent = off. */
  readonly promptLookup?: PromptLookup | undefined;
  /** The same with guesses of the model's head: how many a sequence has verified in one step; absent = off. */
  readonly headDrafts?: number | undefined;
  /** Guesses all sequences of a step may have verified together, beside `maxRunning` rows that yield tokens; default none. */
  readonly draftRows?: number;
}

/** Makes guesses and counts them. */
export class Guesses {
  readonly #options: GuessOptions;
  #drafted = 0;
  #accepted = 0;

  constructor(options: GuessOptions) {
    this.#options = options;
  }

  /** Guesses verified so far, and how many of them were right. */
  get counts(): { readonly drafted: number; readonly accepted: number } {
    return { drafted: this.#drafted, accepted: this.#accepted };
  }

  /** Counts the guesses of a sequence that were verified. */
  count(drafted: number, accepted: number): void {
    this.#drafted += drafted;
    this.#accepted += accepted;
  }

  /** Guesses to verify with a sequence's next token, one of `running`: at most `budget`, and as many as rows and the request's own end leave room for. */
  of(sequence: Sequence, running: number, budget: number): readonly number[] {
    const { promptLookup, headDrafts = 0, draftRows = 0 } = this.#options;
    if (!sequence.canSpeculate) return [];
    const most = promptLookup?.draftTokens ?? (sequence.hasSampled ? headDrafts : 0);
    const count = Math.min(most, Math.floor(draftRows / running), budget, sequence.maxTokens - sequence.numGenerated - 1);
    if (count <= 0) return [];
    if (!promptLookup) return new Array<number>(count).fill(FROM_HEAD);
    // A token that only the device knows is guessed too, and left out.
    return draftTokens(sequence.tokens, promptLookup, count + sequence.pending).slice(sequence.pending);
  }
}
