import type { Sequence } from './sequence.ts';

/** Order in which waiting sequences are admitted. A prefix-aware policy (lpm) sorts by the cache's match length here. */
export interface SchedulePolicy {
  readonly name: string;
  /** The waiting sequences, best first; the argument is in order of arrival. */
  order(waiting: readonly Sequence[]): readonly Sequence[];
}

/** First come, first served. */
export const FCFS: SchedulePolicy = { name: 'fcfs', order: (waiting) => waiting };
