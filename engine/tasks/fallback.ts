/** Whether what was heard in a window stands, is silence, or is to be decoded again at a higher temperature (OpenAI's rules); no GPU. */
import type { WhisperTokens } from '../models/whisper/config.ts';

/** What a decoding of a window came to. */
export interface Attempt {
  readonly temperature: number;
  readonly tokens: readonly number[];
  /** Of each of the tokens. */
  readonly logprobs: readonly number[];
  /** Mean over the tokens and their end. */
  readonly avgLogprob: number;
  /** Of the text, by compressionRatio. */
  readonly compressionRatio: number;
  /** The model wrote the end: it did not run out of room. */
  readonly ended?: boolean;
}

/** One after the other, as long as what is heard is rejected. */
const TEMPERATURES = [0, 0.2, 0.4, 0.6, 0.8, 1] as const;

/** A mean log-probability this many times below what makes a guess is that of words at random. */
const RANDOM_TIMES = 2;

export type Verdict = { readonly kind: 'stands'; readonly attempt: Attempt } | { readonly kind: 'silence' } | { readonly kind: 'again'; readonly temperature: number }; // prettier-ignore

/**
 * Judges the last of a window's attempts. A text that packs too well repeats itself, and one whose tokens are too unlikely is a guess; either is rejected, and is silence where
 * the model heard no speech in the first place. OpenAI asks for unlikely tokens there, but models loop with great confidence: Whisper base writes "1.5m de" over and over
 * for white noise, with a mean log-probability of -0.13. A window whose temperature was asked for has one attempt. When all six are rejected the
 * likeliest of those that do not repeat themselves stands. But people do repeat themselves: a song or a drill leaves nothing else than words at random, which are far less likely.
 * A repetition that the model is sure of then stands before them, if it ended by itself: a loop mostly goes on until there is no room.
 */
export function judge(
  attempts: readonly Attempt[],
  noSpeechProb: number,
  { thresholds, climbs }: { readonly thresholds: WhisperTokens['thresholds']; readonly climbs: boolean },
): Verdict {
  const last = attempts.at(-1)!;
  const repeats = (attempt: Attempt): boolean => attempt.compressionRatio > thresholds.compressionRatio;
  const isRejected = repeats(last) || last.avgLogprob < thresholds.logprob;
  if (!isRejected) return { kind: 'stands', attempt: last };
  if (noSpeechProb > thresholds.noSpeech) return { kind: 'silence' };
  if (!climbs) return { kind: 'stands', attempt: last };
  const next = TEMPERATURES[attempts.length];
  if (next !== undefined) return { kind: 'again', temperature: next };
  const varied = attempts.filter((attempt) => !repeats(attempt));
  const likely = varied.filter(({ avgLogprob }) => avgLogprob >= RANDOM_TIMES * thresholds.logprob);
  const said = attempts.filter(({ ended, avgLogprob }) => ended === true && avgLogprob >= thresholds.logprob);
  const candidates = [likely, said, varied].find(({ length }) => length > 0) ?? attempts;
  return { kind: 'stands', attempt: candidates.reduce((best, one) => (one.avgLogprob > best.avgLogprob ? one : best)) };
}
