import type { Sequence } from './sequence.ts';

/** Order in which waiting sequences are admitted. */
export interface SchedulePolicy {
  readonly name: 'fcfs' | 'lpm';
  /**
   * Returns the waiting sequences, best first. `waiting` is in order of arrival; `cachedTokens` looks a sequence up in the prefix cache.
   */
  order(waiting: readonly Sequence[], cachedTokens: (sequence: Sequence) => number): readonly Sequence[];
}

/** First come, first served. */
export const FCFS: SchedulePolicy = { name: 'fcfs', order: (waiting) => waiting };

/** With more waiting sequences than this, matching them all against the cache costs more than it saves (SGLang's bound). */
export const MAX_MATCHED = 128;
/** After being overtaken this often, a sequence is not overtaken by later arrivals any more. */
export const MAX_OVERTAKEN = 16;

/**
 * Longest prefix match (SGLang's RadixAttention, Zheng et al. 2023): the sequence with the longest cached prefix goes first, before that
 * prefix is evicted. MAX_OVERTAKEN bounds how long a sequence without one can starve.
 */
export const LPM: SchedulePolicy = {
  name: 'lpm',
  order(waiting, cachedTokens) {
    if (waiting.length < 2 || waiting.length > MAX_MATCHED) return waiting;
    const aged = waiting.filter(({ overtaken }) => overtaken >= MAX_OVERTAKEN);
    const young = waiting.filter(({ overtaken }) => overtaken < MAX_OVERTAKEN);
    const cached = new Map(young.map((sequence) => [sequence, cachedTokens(sequence)]));
    return [...aged, ...young.sort((a, b) => cached.get(b)! - cached.get(a)!)];
  },
};

/** The policy of the setting `schedulePolicy`. */
export function schedulePolicy(name: 'fcfs' | 'lpm'): SchedulePolicy {
  return name === 'lpm' ? LPM : FCFS;
}
