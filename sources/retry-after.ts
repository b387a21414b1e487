/** How long another side asks to be left alone. Pure. */

/** One window of the hub's limits: whoever asks for longer is told so instead of waited for. */
export const LONGEST_WAIT_SECONDS = 300;

/**
 * Seconds until a request may be made again: Retry-After as seconds or as a date, else the time that is left in RateLimit (`"api";r=0;t=55`, as the hub
 * says it). `now` is milliseconds since 1970. Undefined where an answer names no time.
 */
export function secondsToWait(headers: Headers, now: number): number | undefined {
  const after = headers.get('retry-after')?.trim() ?? '';
  if (/^\d{1,9}$/.test(after)) return Number(after);
  const date = /^[A-Za-z]{3}, /.test(after) ? Date.parse(after) : NaN;
  if (!Number.isNaN(date)) return Math.max(0, Math.ceil((date - now) / 1000));
  const [, left] = /;\s*t=(\d{1,9})/.exec(headers.get('ratelimit') ?? '') ?? [];
  return left === undefined ? undefined : Number(left);
}
