import type { Sequence } from './sequence.ts';

/** Positions [start, start + count) of one sequence, computed in one step. */
export interface BatchItem {
  readonly sequence: Sequence;
  readonly start: number;
  readonly count: number;
  /** Whether the last position yields a token: not for the chunks before a prompt's last. */
  readonly samples: boolean;
  /** The one token to compute was sampled by the step before and is known to the device only. */
  readonly fromDevice: boolean;
}

/** One step's work: ragged, decodes (one position each) first, then chunks of prompts. */
export interface Batch {
  readonly decodes: readonly BatchItem[];
  readonly prefills: readonly BatchItem[];
  /** Items that sample, in batch order: the order of the step's tokens. */
  readonly sampled: readonly BatchItem[];
}
