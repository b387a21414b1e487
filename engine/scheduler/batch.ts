import type { Sequence } from './sequence.ts';

/** Slots of the state of a sequence with recurrent layers, for one step. */
export interface StateUse {
  /** Undefined: the sequence begins. */
  readonly read: number | undefined;
  readonly write: number;
  /** A copy of the state behind the first `after` positions of the step. */
  readonly keep?: { readonly slot: number; readonly after: number } | undefined;
  /** Where guesses are verified: the same behind the last position before them, in the slot that is read. */
  readonly certain?: { readonly slot: number; readonly after: number } | undefined;
}

/** In the place of a guess: the head that guesses makes it, in the step that verifies it. */
export const FROM_HEAD = -1;

/** Positions [start, start + count) of one sequence, computed in one step. */
export interface BatchItem {
  readonly sequence: Sequence;
  readonly start: number;
  readonly count: number;
  /** How many of the last positions yield a token: none in the chunks before a prompt's last, 1, or one more than there are guesses. */
  readonly samples: number;
  /** The first token to compute was sampled by the step before and is known to the device only. */
  readonly fromDevice: boolean;
  /** Guesses for the tokens after the last known one: what the last positions hold (speculative decoding). All known, or all FROM_HEAD. */
  readonly drafts: readonly number[];
  /** Of a model with recurrent layers. */
  readonly state?: StateUse | undefined;
}

/** Whether an item computes positions of a prompt, also where they are computed again. */
export function isOfPrompt({ sequence, start }: BatchItem): boolean {
  return start < sequence.numPrompt;
}

/** A row that yields a token. */
export interface SampledRow {
  readonly sequence: Sequence;
  /** Position that the token will have. */
  readonly position: number;
}

/** One step's work: ragged, decodes (one position each) first, then guesses to verify and chunks of prompts. */
export interface Batch {
  readonly decodes: readonly BatchItem[];
  readonly prefills: readonly BatchItem[];
  /** Rows that yield tokens, in batch order: the order of the step's tokens. */
  readonly sampled: readonly SampledRow[];
}
