/** From a window's tokens to segments with times; no GPU. */
import type { TranscriptSegment } from '../api.ts';

export interface WindowTokens {
  readonly tokens: readonly number[];
  /** Seconds from the start of the audio. */
  readonly start: number;
  /** Seconds of audio in the window. */
  readonly seconds: number;
  /** In hundredths of a second: where the window begins. */
  readonly seek: number;
  readonly temperature: number;
  readonly avgLogprob: number;
  readonly compressionRatio: number;
  readonly noSpeechProb: number;
}

export interface TimestampTokens {
  /** First timestamp id. */
  readonly begin: number;
  /** Seconds from one id to the next. */
  readonly step: number;
}

/** What else is told of a segment's tokens; `first` is the index of the first in the window. */
export type SegmentDetails = (
  tokens: readonly number[],
  first: number,
  segment: Pick<TranscriptSegment, 'start' | 'end'>,
) => Partial<Pick<TranscriptSegment, 'words' | 'logprobs'>>;

/** Less audio than this after the last closed segment holds no word. */
const LEAST_REST_SECONDS = 0.2;

/**
 * Tells what a window's tokens account for. A pair of timestamps closes one segment and opens the next; when the last one opened is not closed
 * too, its speech goes on beyond what the model wrote. As in OpenAI's decoder the tokens after the pair are then dropped, and `rest` says from
 * where in the window, in seconds, it must be heard again. A single timestamp at the end says that no speech follows it.
 */
export function closedTokens(
  tokens: readonly number[],
  seconds: number,
  { begin, step }: TimestampTokens,
): { readonly tokens: readonly number[]; readonly rest: number | undefined } {
  const isTime = (index: number): boolean => (tokens[index] ?? -1) >= begin;
  const last = tokens.length - 1;
  const endsSpeech = isTime(last) && !isTime(last - 1);
  const pair = endsSpeech ? -1 : tokens.findLastIndex((_, index) => isTime(index) && isTime(index + 1));
  const rest = pair < 0 ? 0 : (tokens[pair]! - begin) * step;
  if (rest <= 0 || seconds - rest < LEAST_REST_SECONDS) return { tokens, rest: undefined };
  return { tokens: tokens.slice(0, pair + 1), rest };
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
  details: SegmentDetails = () => ({}),
): TranscriptSegment[] {
  const segments: TranscriptSegment[] = [];
  let from = 0;
  let pending: number[] = [];
  const close = (to: number, end: number): void => {
    const text = decode(pending);
    if (text.trim() !== '') {
      const times = { start: start + from, end: start + to };
      segments.push({
        id: firstId + segments.length,
        ...times,
        text,
        tokens: pending,
        ...scores,
        ...details(pending, end - pending.length, times),
      });
    }
    pending = [];
  };
  for (const [index, token] of tokens.entries()) {
    if (token < begin) {
      pending.push(token);
      continue;
    }
    const time = Math.min(Math.max((token - begin) * step, from), seconds);
    if (pending.length > 0) close(time, index);
    from = time;
  }
  if (pending.length > 0) close(seconds, tokens.length);
  return segments;
}
