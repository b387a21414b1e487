/** How long a server asks clients to wait. Pure. */

/** Longest wait, which is one window of the hub's rate limits. If more is asked for, the request fails with a message that says so. */
export const LONGEST_WAIT_SECONDS = 300;

/**
 * Seconds until a request may be repeated: by Retry-After, as seconds or a date, else by the time left in RateLimit (`"api";r=0;t=55`, as the hub writes it).
 * `now` is milliseconds since 1970. Undefined if an answer names no time.
 */
export function secondsToWait(headers: Headers, now: number): number | undefined {
  const after = headers.get('retry-after')?.trim() ?? '';
  if (/^\d{1,9}$/.test(after)) return Number(after);
  const date = /^[A-Za-z]{3}, /.test(after) ? Date.parse(after) : NaN;
  if (!Number.isNaN(date)) return Math.max(0, Math.ceil((date - now) / 1000));
  const [, left] = /;\s*t=(\d{1,9})/.exec(headers.get('ratelimit') ?? '') ?? [];
  return left === undefined ? undefined : Number(left);
}
