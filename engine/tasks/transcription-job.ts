/** The state of a running transcription: its windows, and the events that finished windows give; no GPU. */
import type { TokenLogprob, TranscriptSegment, TranscriptWord, TranscriptionEvent, TranscriptionRequest } from '../api.ts';
import type { KeptSound } from '../audio/kept-sound.ts';
import type { SampleSource } from '../audio/sample-source.ts';
import { cutAtPauses, isSilent, splitAtPauses } from '../audio/windows.ts';
import { windowFrames } from '../models/whisper/config.ts';
import { assert, requestAborted } from '../errors.ts';
import type { WhisperModel } from '../models/whisper/load.ts';
import { wordsOf } from '../text/words.ts';
import type { AsyncQueue } from '../util/async-queue.ts';
import { compressionRatio } from '../util/compression.ts';
import { spaceBefore } from '../util/spaces.ts';
import { warpedStarts } from './alignment.ts';
import type { BeamSearch } from './beam-search.ts';
import { judge } from './fallback.ts';
import type { Attempt } from './fallback.ts';
import { closedTokens, toSegments } from './transcript.ts';
import type { SegmentDetails, TimestampTokens } from './transcript.ts';

/** A transcription request that is being served. */
export interface Job {
  readonly request: Omit<TranscriptionRequest, 'samples'>;
  readonly sound: SampleSource;
  /** The audio that is transcribed: `sound` without what the speech gate left out. */
  heard: KeptSound;
  readonly events: AsyncQueue<TranscriptionEvent>;
  /** Tokens of the request's prompt, without the token that introduces it. */
  readonly hint: readonly number[];
  /** Warnings for the caller, sent with the start event. */
  readonly warnings: readonly string[];
  /** The windows in order of time. */
  readonly windows: Window[];
  language: string | undefined;
  /** Number of windows whose segments have been sent. */
  emitted: number;
  segments: number;
  text: string;
  /** Input tokens that stand for the audio. */
  readonly audioTokens: number;
  inputTokens: number;
  outputTokens: number;
}

/** A window of audio, of at most the model's input length, and the state of its decoding. */
export interface Window {
  readonly job: Job;
  /** Selects the random numbers of sampling, together with a token's position. */
  readonly seed: number;
  /** First sample in the job's `heard`; `length` is the number of samples, which shrinks when the window's end becomes a window of its own. */
  readonly start: number;
  length: number;
  /** The samples, while the window has a slot or is next. */
  samples: Float32Array | undefined;
  /** How many more times audio after the last closed segment may become a window of its own. */
  readonly seeks: number;
  slot: number | undefined;
  prompt: readonly number[];
  /** Number of prompt tokens that have been submitted. */
  fed: number;
  /** Number of tokens whose sampling has been submitted. */
  planned: number;
  /** Beam search, if the model uses several beams and the temperature is 0; else tokens are sampled one by one. */
  search: BeamSearch | undefined;
  /** Temperature of the current attempt. */
  temperature: number;
  tokens: number[];
  /** Log-probability of each token. */
  logprobs: number[];
  /** Sum of the log-probabilities, that of the end-of-text token included. */
  logprob: number;
  /** Whether the model wrote end-of-text; if not, there was no room for the rest. */
  ended: boolean;
  /** The finished attempts; `standing` is the one that was accepted. */
  readonly attempts: Attempt[];
  standing: Attempt | undefined;
  /** Whether the window counts as silence: its text was rejected, and the model heard no speech. */
  silent: boolean;
  noSpeechProb: number;
  done: boolean;
  /** Whether the times of its words are still being computed. */
  aligning: boolean;
  /** Seconds in the window at which each token begins, and the last one ends; undefined until computed. */
  boundaries: readonly number[] | undefined;
}

/** A window whose text had no room is split into parts of at most this share of it, unless it is shorter than LEAST_CUT_SECONDS, in which nobody says so much. */
const CUT_SHARE = 0.6;
const LEAST_CUT_SECONDS = 4;

type Model = Pick<WhisperModel, 'config' | 'tokens'>;

/** The parts of a tokenizer that are needed here. */
export interface TokenText {
  decode(tokens: readonly number[]): string;
  bytes(token: number): Uint8Array;
}

/** Cuts a job's audio into windows at pauses; silent windows are done at once. Reads all of the audio once and keeps none. Throws EngineError('aborted'). */
export async function cutWindows(job: Job, { config }: Model, signal: AbortSignal): Promise<void> {
  const { sampleRate } = config.mel;
  for await (const { start, samples, silent } of cutAtPauses(job.heard, sampleRate, config.windows.samples / sampleRate)) {
    if (signal.aborted) throw requestAborted();
    const { length } = samples;
    // Bounded, because a decoder that closes tiny segments would make new windows without end.
    const seeks = Math.ceil(length / sampleRate);
    job.windows.push({ ...newWindow(job, job.windows.length, { start, length }, seeks), noSpeechProb: silent ? 1 : 0, done: silent });
  }
}

function newWindow(job: Job, seed: number, { start, length }: Pick<Window, 'start' | 'length'>, seeks: number): Window {
  return {
    job, seed, start, length, seeks, samples: undefined, slot: undefined, prompt: [], fed: 0, planned: 0, search: undefined,
    temperature: job.request.temperature ?? 0, tokens: [], logprobs: [], logprob: 0, ended: false, attempts: [], standing: undefined, silent: false, noSpeechProb: 0, done: false, aligning: false, boundaries: undefined,
  }; // prettier-ignore
}

/** Whether the model writes timestamps for this job. */
export const isTimed = ({ request }: Job, { tokens, config }: Model): boolean =>
  (request.timestamps ?? 'none') !== 'none' && tokens.timestampBegin < config.vocabulary;

/** Judges a window's finished attempt. True: it is accepted, or the window is silence. False: the window has been reset for another attempt. */
export function isHeard(window: Window, model: Model, decode: (tokens: readonly number[]) => string): boolean {
  const { job, tokens, logprobs, logprob, ended, temperature, attempts } = window;
  const { thresholds, timestampBegin } = model.tokens;
  const text = decode(tokens.filter((token) => token < timestampBegin)).trim();
  const avgLogprob = logprob / (tokens.length + 1);
  attempts.push({ temperature, tokens, logprobs, avgLogprob, compressionRatio: compressionRatio(text), ended });
  const verdict = judge(attempts, window.noSpeechProb, { thresholds, climbs: (job.request.temperature ?? 0) === 0 });
  if (verdict.kind === 'again') {
    Object.assign(window, {
      temperature: verdict.temperature,
      tokens: [],
      logprobs: [],
      logprob: 0,
      ended: false,
      fed: 0,
      planned: 0,
      search: undefined,
    });
    return false;
  }
  window.silent = verdict.kind === 'silence';
  window.standing = verdict.kind === 'stands' ? verdict.attempt : undefined;
  window.tokens = [...(window.standing?.tokens ?? tokens)];
  return true;
}

/**
 * Splits a window whose transcript ran out of room, as with fast speech and scripts that take several tokens per letter, and replaces it in its job by the parts.
 * Returns no parts if the text is a guess, or if a closed segment tells from where on to transcribe again. Numbers that are read out compress as well as a loop does,
 * so repetitive text is split too, but only down to half of the model's window.
 */
export function withRoom(window: Window, model: Model): Window[] {
  const { job, samples, start, length, seeks, standing, tokens } = window;
  const { thresholds } = model.tokens;
  const { sampleRate } = model.config.mel;
  const seconds = length / sampleRate;
  if (!standing || standing.ended || standing.avgLogprob < thresholds.logprob) return [];
  const repeats = standing.compressionRatio > thresholds.compressionRatio;
  const least = repeats ? model.config.windows.samples / sampleRate / 2 : LEAST_CUT_SECONDS;
  if (seconds < least || closedTokens(tokens, seconds, timesOf(model)).rest !== undefined) return [];
  assert(samples !== undefined, 'a window that was heard has its samples');
  const parts = splitAtPauses(samples, sampleRate, CUT_SHARE * seconds).map(
    ({ start: from, samples: part, silent }): Window => ({
      ...newWindow(job, window.seed, { start: start + from, length: part.length }, seeks), samples: part, noSpeechProb: silent ? 1 : 0, done: silent,
    }),
  ); // prettier-ignore
  job.windows.splice(job.windows.indexOf(window), 1, ...parts);
  job.outputTokens += tokens.length;
  return parts;
}

/** Counts an accepted window's tokens and cuts off an unfinished last segment; returns the audio of that as a new window, if it is not silent. */
export function settle(window: Window, model: Model): Window | undefined {
  const { job, samples, start, length, seeks } = window;
  const { sampleRate } = model.config.mel;
  job.outputTokens += window.tokens.length;
  if (seeks === 0 || window.silent) return undefined;
  const { tokens, rest } = closedTokens(window.tokens, length / sampleRate, timesOf(model));
  if (rest === undefined) return undefined;
  window.tokens = [...tokens];
  const from = Math.round(rest * sampleRate);
  assert(samples !== undefined, 'a window that was heard has its samples');
  const left = samples.subarray(from);
  if (isSilent(left, sampleRate)) return undefined;
  const after = newWindow(job, window.seed, { start: start + from, length: left.length }, seeks - 1);
  after.samples = left;
  // The new window has words of its own, behind whose start attention could otherwise place this window's last words.
  window.length = from;
  job.windows.splice(job.windows.indexOf(window) + 1, 0, after);
  return after;
}

/** Whether word times are to be computed for a decoded window. */
export function wantsWords(window: Window): boolean {
  return window.job.request.timestamps === 'word' && window.tokens.length > 0 && !window.silent;
}

/** Input of the alignment: all tokens, the index (`from`) of the first row whose attention is used, and the number of encoder positions with audio. */
export function alignmentOf({ job, prompt, tokens, length }: Window, model: Model): { tokens: number[]; from: number; positions: number } {
  const { hop } = model.config.mel;
  const most = windowFrames(model.config, length) / 2;
  const positions = Math.min(most, Math.max(1, Math.floor(Math.ceil(length / hop) / 2)));
  // A row attends to the audio of the next token, so rows begin at the first timestamp or, without timestamps, at the prompt's last token.
  return { tokens: [...prompt, ...tokens], from: prompt.length - (isTimed(job, model) ? 0 : 1), positions };
}

/** Computes a window's token times from the attention `matrix` [rows, positions] of its alignment. */
export function takeAlignment(window: Window, model: Model, matrix: Float32Array, positions: number): void {
  const { step } = timesOf(model);
  const starts = [...warpedStarts(matrix, matrix.length / positions, positions)].map((position) => position * step);
  window.boundaries = isTimed(window.job, model) ? [0, ...starts] : starts;
}

const timesOf = ({ tokens, config: { mel } }: Model): TimestampTokens => ({
  begin: tokens.timestampBegin,
  step: (2 * mel.hop) / mel.sampleRate,
});

/** Language of the transcript. */
const textLanguage = ({ request, language }: Job): string => (request.task === 'translate' ? 'en' : (language ?? 'en'));

/** Sends the segments of finished windows, in order, and the finish event after the last; returns whether that was sent. */
export function emitDone(job: Job, model: Model, text: TokenText): boolean {
  const { sampleRate } = model.config.mel;
  for (; job.emitted < job.windows.length; job.emitted++) {
    const window = job.windows[job.emitted]!;
    if (!window.done || window.aligning) break;
    const { tokens, standing, noSpeechProb, start, length } = window;
    if (!standing) continue;
    const { temperature, avgLogprob, compressionRatio: ratio } = standing;
    const heard = {
      tokens, temperature, avgLogprob, compressionRatio: ratio, noSpeechProb, start: start / sampleRate, seconds: length / sampleRate,
      seek: Math.round((job.heard.place(start) * 100) / sampleRate),
    }; // prettier-ignore
    for (const found of toSegments(heard, timesOf(model), job.segments, text.decode, detailsOf(window, sampleRate, text))) {
      const segment = placed(job.heard, found, sampleRate);
      job.segments++;
      job.text += (job.text === '' ? '' : spaceBefore(segment.text, textLanguage(job))) + segment.text;
      job.events.push({ type: 'segment', segment });
    }
  }
  if (job.emitted < job.windows.length) return false;
  const { inputTokens, audioTokens, outputTokens } = job;
  const duration = job.sound.length / sampleRate;
  job.events.push({ type: 'finish', text: job.text.trim(), duration, inputTokens, audioTokens, outputTokens });
  job.events.end();
  return true;
}

/** Converts a segment's times from the transcribed audio to the whole audio. */
function placed(heard: KeptSound, segment: TranscriptSegment, sampleRate: number): TranscriptSegment {
  const times = <Timed extends Pick<TranscriptWord, 'start' | 'end'>>(timed: Timed, undivided: boolean): Timed => {
    const { start, end } = heard.span({ start: timed.start * sampleRate, end: timed.end * sampleRate }, undivided);
    return { ...timed, start: start / sampleRate, end: end / sampleRate };
  };
  // A word lies on one side of a silence that was left out.
  return { ...times(segment, false), ...(segment.words && { words: segment.words.map((word) => times(word, true)) }) };
}

/** Seconds that a word may exceed its segment. Attention wanders in pauses, so, as in OpenAI's code, a word further outside is clipped to the segment. */
const WORD_SLACK = 0.5;

/** Computes word times and log-probabilities of segments, as far as the request asks for them. */
function detailsOf(window: Window, sampleRate: number, text: TokenText): SegmentDetails {
  const { boundaries, standing, job } = window;
  return (tokens, index, segment) => ({
    ...(boundaries && { words: timedWords(window, boundaries, { tokens, index, segment, sampleRate, decode: text.decode }) }),
    ...(job.request.logprobs && { logprobs: tokens.map((token, i) => tokenLogprob(text.bytes(token), standing!.logprobs[index + i]!)) }),
  });
}

/** Log-probability of a token for the API. Bytes that are no whole character are U+FFFD in its text. */
function tokenLogprob(bytes: Uint8Array, logprob: number): TokenLogprob {
  return { token: new TextDecoder().decode(bytes), logprob, bytes: [...bytes] };
}

/** Tokens of a segment; `index` is the index of the first in its window. */
interface SegmentTokens {
  readonly tokens: readonly number[];
  readonly index: number;
  readonly segment: Pick<TranscriptSegment, 'start' | 'end'>;
  readonly sampleRate: number;
  readonly decode: TokenText['decode'];
}

function timedWords(
  { job, start, length }: Window,
  boundaries: readonly number[],
  { tokens, index, segment, sampleRate, decode }: SegmentTokens,
): TranscriptWord[] {
  const language = textLanguage(job);
  const at = (token: number): number => (start + Math.min(boundaries[token]! * sampleRate, length)) / sampleRate;
  // An ideographic space between phrases, as in Japanese, is a piece of its own, but no word.
  const said = wordsOf(tokens, decode, language).filter(({ text }) => text.trim() !== '');
  const words = said.map(({ text, first, count }) => ({ text, start: at(index + first), end: at(index + first + count) }));
  const [first, last] = [words[0], words.at(-1)];
  if (first && segment.start < first.end && first.start < segment.start - WORD_SLACK) first.start = segment.start;
  if (last && segment.end > last.start && last.end > segment.end + WORD_SLACK) last.end = segment.end;
  return words;
}
