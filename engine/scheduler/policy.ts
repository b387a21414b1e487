import type { Sequence } from './sequence.ts';

/** Order in which waiting sequences are admitted. */
export interface SchedulePolicy {
  readonly name: 'fcfs' | 'lpm';
  /** The waiting sequences, best first; `waiting` is in order of arrival, `cachedTokens` asks the prefix cache. */
  order(waiting: readonly Sequence[], cachedTokens: (sequence: Sequence) => number): readonly Sequence[];
}

/** First come, first served. */
export const FCFS: SchedulePolicy = { name: 'fcfs', order: (waiting) => waiting };

/** Beyond this many waiting sequences matching them all costs more than it saves (SGLang's bound). */
export const MAX_MATCHED = 128;
/** A sequence is overtaken at most this often; then nothing that arrived later goes before it. */
export const MAX_OVERTAKEN = 16;

/**
 * Longest prefix match (SGLang's RadixAttention, Zheng et al. 2023): what shares most with the cache goes first, before it is
 * evicted. Ageing bounds what a cold request can lose by it.
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

/** The policy a setting names. */
export function schedulePolicy(name: 'fcfs' | 'lpm'): SchedulePolicy {
  return name === 'lpm' ? LPM : FCFS;
}
