/** Speculative decoding: which draft tokens are verified, and how many of them were accepted. */
import type { PromptLookup } from '../config.ts';
import { FROM_HEAD } from './batch.ts';
import { draftTokens } from './prompt-lookup.ts';
import type { Sequence } from './sequence.ts';

/** Where draft tokens come from, and how many a step verifies. */
export interface DrafterOptions {
  /** Drafts by prompt lookup; absent = off. */
  readonly promptLookup?: PromptLookup | undefined;
  /** Drafts by the model's draft head: the most that one step verifies for a sequence; absent = off. */
  readonly headDrafts?: number | undefined;
  /**
   * Draft tokens that one step verifies at most, over all sequences: logit rows beyond the `maxRunning` that yield one token each. Default
   * 0.
   */
  readonly draftRows?: number;
}

/** Chooses draft tokens and counts how many were accepted. */
export class Drafter {
  readonly #options: DrafterOptions;
  #drafted = 0;
  #accepted = 0;

  constructor(options: DrafterOptions) {
    this.#options = options;
  }

  /** Draft tokens verified so far, and how many of them were accepted. */
  get counts(): { readonly drafted: number; readonly accepted: number } {
    return { drafted: this.#drafted, accepted: this.#accepted };
  }

  /** Counts the outcome of one verification. */
  count(drafted: number, accepted: number): void {
    this.#drafted += drafted;
    this.#accepted += accepted;
  }

  /**
   * Draft tokens to verify with a sequence's next token, when `running` sequences share the draft rows: at most `budget`, and no more than
   * `maxTokens` leaves room for.
   */
  of(sequence: Sequence, running: number, budget: number): readonly number[] {
    const { promptLookup, headDrafts = 0, draftRows = 0 } = this.#options;
    if (!sequence.canSpeculate) return [];
    const most = promptLookup?.draftTokens ?? (sequence.hasSampled ? headDrafts : 0);
    const count = Math.min(most, Math.floor(draftRows / running), budget, sequence.maxTokens - sequence.numGenerated - 1);
    if (count <= 0) return [];
    if (!promptLookup) return new Array<number>(count).fill(FROM_HEAD);
    // A pending token is known to the device only: it is drafted first and then left out.
    return draftTokens(sequence.tokens, promptLookup, count + sequence.pending).slice(sequence.pending);
  }
}
