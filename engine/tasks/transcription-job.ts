/** A transcription while it runs: its windows on their way, and the events that those which are done make; no GPU. */
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

/** A request while it runs. */
export interface Job {
  readonly request: Omit<TranscriptionRequest, 'samples'>;
  readonly sound: SampleSource;
  /** What of it is transcribed. */
  heard: KeptSound;
  readonly events: AsyncQueue<TranscriptionEvent>;
  /** Ids of the prompt text, without the token that begins it. */
  readonly hint: readonly number[];
  /** What the caller should know although the request is served. */
  readonly warnings: readonly string[];
  /** In order of time. */
  readonly windows: Window[];
  language: string | undefined;
  /** Windows whose segments were sent. */
  emitted: number;
  segments: number;
  text: string;
  /** Of `inputTokens` those of the audio. */
  readonly audioTokens: number;
  inputTokens: number;
  outputTokens: number;
}

/** One window on its way through a slot. */
export interface Window {
  readonly job: Job;
  /** Names, with the token's position, the random numbers of sampling. */
  readonly seed: number;
  /** First sample in what is heard of the audio, and how many there are; once its end is heard again in a window of its own, how many before that. */
  readonly start: number;
  length: number;
  /** They themselves, while the window has a slot or is next. */
  samples: Float32Array | undefined;
  /** How often what follows its last closed segment may still be heard again. */
  readonly seeks: number;
  slot: number | undefined;
  prompt: readonly number[];
  /** Tokens of the prompt that were submitted. */
  fed: number;
  /** Tokens whose choice was submitted. */
  planned: number;
  /** Finds the tokens instead, where the model wants more than one beam, at temperature 0. */
  search: BeamSearch | undefined;
  /** That it is decoded with now. */
  temperature: number;
  tokens: number[];
  /** Of each token. */
  logprobs: number[];
  /** Their sum, with the end's. */
  logprob: number;
  /** The model wrote the end behind them: there was no room for what else was said otherwise. */
  ended: boolean;
  /** What its tokens came to, each time that all were there, and which of it stands. */
  readonly attempts: Attempt[];
  standing: Attempt | undefined;
  /** Its text is dropped: what the model wrote was rejected, and it heard no speech. */
  silent: boolean;
  noSpeechProb: number;
  done: boolean;
  /** It is done, and the times of its words are on their way. */
  aligning: boolean;
  /** Seconds in the window at which each token begins and the last ends, once they are there. */
  boundaries: readonly number[] | undefined;
}

/** A window that is too full is cut into parts of up to this share of it, unless it is shorter than so many seconds: nobody says so much in them. */
const CUT_SHARE = 0.6;
const LEAST_CUT_SECONDS = 4;

type Model = Pick<WhisperModel, 'config' | 'tokens'>;

/** Text of tokens together, and the bytes of one. */
export interface TokenText {
  decode(tokens: readonly number[]): string;
  bytes(token: number): Uint8Array;
}

/** Cuts what is heard of a job's audio into its windows, at pauses; silent ones are done. Reads all of it once and keeps none. */
export async function cutWindows(job: Job, { config }: Model, signal: AbortSignal): Promise<void> {
  const { sampleRate } = config.mel;
  for await (const { start, samples, silent } of cutAtPauses(job.heard, sampleRate, config.windows.samples / sampleRate)) {
    if (signal.aborted) throw requestAborted();
    const { length } = samples;
    // A decoder that closes a segment every few steps of time would be heard again without end.
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

/** Whether a job's segments get times from the model. */
export const isTimed = ({ request }: Job, { tokens, config }: Model): boolean =>
  (request.timestamps ?? 'none') !== 'none' && tokens.timestampBegin < config.vocabulary;

/** Judges a window whose tokens are all there. True: it stands, or is silence; false: it is to be decoded again, for which it is made ready. */
export async function isHeard(window: Window, model: Model, decode: (tokens: readonly number[]) => string): Promise<boolean> {
  const { job, tokens, logprobs, logprob, ended, temperature, attempts } = window;
  const { thresholds, timestampBegin } = model.tokens;
  const text = decode(tokens.filter((token) => token < timestampBegin)).trim();
  const avgLogprob = logprob / (tokens.length + 1);
  attempts.push({ temperature, tokens, logprobs, avgLogprob, compressionRatio: await compressionRatio(text), ended });
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
 * The windows that take the place of one whose tokens stand and fill all the room there is, so that what was said after them is missing: fast speech, and
 * scripts with several tokens a letter. None where the text is a guess, or where a closed segment says from where on to hear again. Numbers that are read
 * out pack as well as a loop does, so what repeats itself is cut too, but not over and over.
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

/** Counts a window whose tokens stand, cuts them to those that stand, and returns what it left unheard as a window of its own after it. */
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
  // What is heard again there has words of its own: attention may place the last ones of this window behind their beginning.
  window.length = from;
  job.windows.splice(job.windows.indexOf(window) + 1, 0, after);
  return after;
}

/** Whether the words of a window that has its tokens are to be timed. */
export function wantsWords(window: Window): boolean {
  return window.job.request.timestamps === 'word' && window.tokens.length > 0 && !window.silent;
}

/** What of a window is aligned: its tokens, from the one on that says where the first text begins, and the encoder's positions that hold its sound. */
export function alignmentOf({ job, prompt, tokens, length }: Window, model: Model): { tokens: number[]; from: number; positions: number } {
  const { hop } = model.config.mel;
  const most = windowFrames(model.config, length) / 2;
  const positions = Math.min(most, Math.max(1, Math.floor(Math.ceil(length / hop) / 2)));
  // A row attends to what comes next. A timestamp says where the first word begins; without any the prompt's end does.
  return { tokens: [...prompt, ...tokens], from: prompt.length - (isTimed(job, model) ? 0 : 1), positions };
}

/** Takes what alignmentOf attends to. */
export function takeAlignment(window: Window, model: Model, matrix: Float32Array, positions: number): void {
  const { step } = timesOf(model);
  const starts = [...warpedStarts(matrix, matrix.length / positions, positions)].map((position) => position * step);
  window.boundaries = isTimed(window.job, model) ? [0, ...starts] : starts;
}

const timesOf = ({ tokens, config: { mel } }: Model): TimestampTokens => ({
  begin: tokens.timestampBegin,
  step: (2 * mel.hop) / mel.sampleRate,
});

/** The language that is written. */
const textLanguage = ({ request, language }: Job): string => (request.task === 'translate' ? 'en' : (language ?? 'en'));

/** Sends the segments of windows that are done, in order, and the end after the last; returns whether that was sent. */
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

/** A segment with its times in the whole audio, of times in what is heard of it. */
function placed(heard: KeptSound, segment: TranscriptSegment, sampleRate: number): TranscriptSegment {
  const times = <Timed extends Pick<TranscriptWord, 'start' | 'end'>>(timed: Timed, undivided: boolean): Timed => {
    const { start, end } = heard.span({ start: timed.start * sampleRate, end: timed.end * sampleRate }, undivided);
    return { ...timed, start: start / sampleRate, end: end / sampleRate };
  };
  // Nobody says half of a word before a silence that is left out, and half behind it.
  return { ...times(segment, false), ...(segment.words && { words: segment.words.map((word) => times(word, true)) }) };
}

/** Attention wanders in a pause: as in OpenAI's code a word that lies more than this, in seconds, outside its segment begins or ends with it. */
const WORD_SLACK = 0.5;

/** What was asked for of a segment's tokens. */
function detailsOf(window: Window, sampleRate: number, text: TokenText): SegmentDetails {
  const { boundaries, standing, job } = window;
  return (tokens, index, segment) => ({
    ...(boundaries && { words: timedWords(window, boundaries, { tokens, index, segment, sampleRate, decode: text.decode }) }),
    ...(job.request.logprobs && { logprobs: tokens.map((token, i) => tokenLogprob(text.bytes(token), standing!.logprobs[index + i]!)) }),
  });
}

/** Bytes that are no whole character are U+FFFD in its text. */
function tokenLogprob(bytes: Uint8Array, logprob: number): TokenLogprob {
  return { token: new TextDecoder().decode(bytes), logprob, bytes: [...bytes] };
}

/** Tokens of a segment, the first of which is the window's `index`-th. */
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
  // A wide space between phrases, as Japanese has, is a piece of its own, but no word.
  const said = wordsOf(tokens, decode, language).filter(({ text }) => text.trim() !== '');
  const words = said.map(({ text, first, count }) => ({ text, start: at(index + first), end: at(index + first + count) }));
  const [first, last] = [words[0], words.at(-1)];
  if (first && segment.start < first.end && first.start < segment.start - WORD_SLACK) first.start = segment.start;
  if (last && segment.end > last.start && last.end > segment.end + WORD_SLACK) last.end = segment.end;
  return words;
}
