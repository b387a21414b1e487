/** Turns a window's tokens into segments with times; no GPU. */
import type { TranscriptSegment } from '../api.ts';

/** The accepted tokens of a window, and its scores. */
export interface WindowTokens {
  readonly tokens: readonly number[];
  /** Start of the window in seconds of the audio. */
  readonly start: number;
  /** Seconds of audio in the window. */
  readonly seconds: number;
  /** Start of the window in hundredths of a second, as OpenAI's verbose_json has it. */
  readonly seek: number;
  readonly temperature: number;
  readonly avgLogprob: number;
  readonly compressionRatio: number;
  readonly noSpeechProb: number;
}

/** The timestamp tokens of a model. */
export interface TimestampTokens {
  /** Id of the first timestamp token. */
  readonly begin: number;
  /** Seconds between consecutive timestamp tokens. */
  readonly step: number;
}

/** Computes the optional fields of a segment from its tokens; `first` is the index of the first of them in the window. */
export type SegmentDetails = (
  tokens: readonly number[],
  first: number,
  segment: Pick<TranscriptSegment, 'start' | 'end'>,
) => Partial<Pick<TranscriptSegment, 'words' | 'logprobs'>>;

/** Audio after the last closed segment that is shorter than this cannot contain a word. */
const LEAST_REST_SECONDS = 0.2;

/**
 * Cuts off an unfinished segment at a window's end. A pair of timestamps closes one segment and opens the next; if the last one opened is not closed, its speech
 * goes on beyond what the model wrote. As in OpenAI's decoder, the tokens after that pair are then dropped, and `rest` is the time in the window, in seconds, from
 * which on it must be transcribed again. A single timestamp at the end means that no speech follows.
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
 * Splits a window's tokens into segments at the timestamps; without timestamps there is one segment. Times stay within the window and never decrease. Segments without
 * text are left out. Ids count from `firstId`.
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
