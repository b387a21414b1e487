import type { Sequence } from './sequence.ts';

/** The recurrent-state slots that one step reads and writes for a sequence. */
export interface StateUse {
  /** Slot of the state before the step's first position; undefined at position 0, which begins from zeros. */
  readonly read: number | undefined;
  readonly write: number;
  /** Copies the state after the first `after` positions of the step into another slot, for the prefix cache. */
  readonly keep?: { readonly slot: number; readonly after: number } | undefined;
  /** In a step that verifies draft tokens: the sequence's own slot gets the state after its last known token, before the first draft. */
  readonly certain?: { readonly slot: number; readonly after: number } | undefined;
}

/** Stands for a draft token that the model's draft head computes on the device, within the step that verifies it. */
export const FROM_HEAD = -1;

/** Positions [start, start + count) of one sequence, computed in one step. */
export interface BatchItem {
  readonly sequence: Sequence;
  readonly start: number;
  readonly count: number;
  /** How many of the last positions yield a token: 0 in every chunk of a prompt but its last, else 1 + drafts.length. */
  readonly samples: number;
  /** The token at `start` was sampled by the previous step and is known to the device only. */
  readonly fromDevice: boolean;
  /**
   * Draft tokens to verify (speculative decoding), which the last `drafts.length` positions hold. Either all are known or all are
   * FROM_HEAD.
   */
  readonly drafts: readonly number[];
  /** Slots of the recurrent state; undefined in models without recurrent layers. */
  readonly state?: StateUse | undefined;
}

/** Whether an item begins within its sequence's prompt, also where a retracted sequence computes it again. */
export function isOfPrompt({ sequence, start }: BatchItem): boolean {
  return start < sequence.numPrompt;
}

/** A row of the step that yields a token. */
export interface SampledRow {
  readonly sequence: Sequence;
  /** Position of the yielded token in its sequence. */
  readonly position: number;
}

/** The work of one step, a ragged batch: decodes of one position each come first, then prompt chunks and drafts to verify. */
export interface Batch {
  readonly decodes: readonly BatchItem[];
  readonly prefills: readonly BatchItem[];
  /** Rows that yield tokens, in batch order. The step returns its tokens in the same order. */
  readonly sampled: readonly SampledRow[];
}
