/** Whisper's temperature fallback by OpenAI's rules: whether a window's transcript is accepted, is silence, or is decoded again at a higher temperature; no GPU. */
import type { WhisperTokens } from '../models/whisper/config.ts';

/** Result of one decoding of a window. */
export interface Attempt {
  readonly temperature: number;
  readonly tokens: readonly number[];
  /** Log-probability of each token. */
  readonly logprobs: readonly number[];
  /** Mean log-probability over the tokens and the end-of-text token. */
  readonly avgLogprob: number;
  /** Compression ratio of the text: high for repetitions. */
  readonly compressionRatio: number;
  /** Whether the model wrote end-of-text, and did not run out of room. */
  readonly ended?: boolean;
}

/** Temperatures of the attempts, in order. */
const TEMPERATURES = [0, 0.2, 0.4, 0.6, 0.8, 1] as const;

/** A mean log-probability below this multiple of the threshold is that of random words. */
const RANDOM_TIMES = 2;

export type Verdict = { readonly kind: 'stands'; readonly attempt: Attempt } | { readonly kind: 'silence' } | { readonly kind: 'again'; readonly temperature: number }; // prettier-ignore

/**
 * Judges the last of a window's attempts. A text that compresses too well is a repetition, and one whose tokens are too unlikely is a guess. Either is rejected, and
 * counts as silence if the model also heard no speech. (OpenAI's code requires unlikely tokens for silence, but models loop with confidence: for white noise Whisper
 * base writes "1.5m de" over and over, with a mean log-probability of -0.13.) Without `climbs`, because the request set a temperature, the only attempt is accepted.
 *
 * If all six attempts are rejected, the likeliest one without repetition is accepted. But people do repeat themselves, in songs and drills, and then the attempts
 * without repetition are random words, which are far less likely. A confident repetition is preferred to those, if it ended by itself: a loop mostly goes on until
 * there is no room.
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
