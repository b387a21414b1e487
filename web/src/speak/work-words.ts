import type { TakeData } from './take.ts';

/** Describes a take: its duration, the time to first sound, and how much faster than real time it was made. */
export function describeWork({ status, seconds, firstSound, work }: Pick<TakeData, 'status' | 'seconds' | 'firstSound' | 'work'>): string {
  if (status === 'making') return seconds === 0 ? 'starting' : `${seconds.toFixed(1)} s so far`;
  if (status === 'failed') return 'failed';
  if (seconds === 0) return status === 'stopped' ? 'stopped before the first sound' : 'no sound';
  const speed = work === 0 ? '' : ` · made at ${(seconds / work).toFixed(1)}× real time`;
  return `${seconds.toFixed(1)} s · first sound after ${firstSound.toFixed(1)} s${speed}${status === 'stopped' ? ' · stopped' : ''}`;
}
