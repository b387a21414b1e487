/** From a window's tokens to segments with times; no GPU. */
import type { TranscriptSegment } from '../api.ts';

export interface WindowTokens {
  readonly tokens: readonly number[];
  /** Seconds from the start of the audio. */
  readonly start: number;
  /** Seconds of audio in the window. */
  readonly seconds: number;
  readonly avgLogprob: number;
  readonly noSpeechProb: number;
}

export interface TimestampTokens {
  /** First timestamp id. */
  readonly begin: number;
  /** Seconds from one id to the next. */
  readonly step: number;
}

/**
 * Cuts a window's tokens at its timestamps; without any it is one segment of the whole window. Times stay inside the window and never run
 * backwards. Segments without text are left out; `firstId` numbers them.
 */
export function toSegments(
  { tokens, start, seconds, ...scores }: WindowTokens,
  { begin, step }: TimestampTokens,
  firstId: number,
  decode: (tokens: readonly number[]) => string,
): TranscriptSegment[] {
  const segments: TranscriptSegment[] = [];
  let from = 0;
  let pending: number[] = [];
  const close = (to: number): void => {
    const text = decode(pending);
    if (text.trim() !== '')
      segments.push({ id: firstId + segments.length, start: start + from, end: start + to, text, tokens: pending, ...scores });
    pending = [];
  };
  for (const token of tokens) {
    if (token < begin) {
      pending.push(token);
      continue;
    }
    const time = Math.min(Math.max((token - begin) * step, from), seconds);
    if (pending.length > 0) close(time);
    from = time;
  }
  if (pending.length > 0) close(seconds);
  return segments;
}
