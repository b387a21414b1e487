/** What is known of a take's making; seconds all. */
export interface TakeWork {
  readonly status: 'making' | 'done' | 'stopped' | 'failed';
  /** Of sound. */
  readonly seconds: number;
  readonly firstSound: number;
  readonly work: number;
}

/** Length, time to first sound, and how much faster than real time it was made. */
export function describeWork({ status, seconds, firstSound, work }: TakeWork): string {
  if (status === 'making') return seconds === 0 ? 'starting' : `${seconds.toFixed(1)} s so far`;
  if (status === 'failed') return 'failed';
  if (seconds === 0) return status === 'stopped' ? 'stopped before the first sound' : 'no sound';
  const speed = work === 0 ? '' : ` · made at ${(seconds / work).toFixed(1)}× real time`;
  return `${seconds.toFixed(1)} s · first sound after ${firstSound.toFixed(1)} s${speed}${status === 'stopped' ? ' · stopped' : ''}`;
}
