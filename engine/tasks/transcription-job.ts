/** A transcription while it runs: its windows on their way, and the events that those which are done make; no GPU. */
import type { TranscriptionEvent, TranscriptionRequest } from '../api.ts';
import { isSilent, splitAtPauses } from '../audio/windows.ts';
import type { WhisperModel } from '../models/whisper/load.ts';
import type { AsyncQueue } from '../util/async-queue.ts';
import type { BeamSearch } from './beam-search.ts';
import { closedTokens, toSegments } from './transcript.ts';
import type { TimestampTokens } from './transcript.ts';

/** A request while it runs. */
export interface Job {
  readonly options: TranscriptionRequest;
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
  inputTokens: number;
  outputTokens: number;
}

/** One window on its way through a slot. */
export interface Window {
  readonly job: Job;
  /** Names, with the token's position, the random numbers of sampling. */
  readonly seed: number;
  /** First sample in the audio. */
  readonly start: number;
  readonly samples: Float32Array;
  /** How often what follows its last closed segment may still be heard again. */
  readonly seeks: number;
  slot: number | undefined;
  prompt: readonly number[];
  /** Tokens of the prompt that were submitted. */
  fed: number;
  /** Tokens whose choice was submitted. */
  planned: number;
  /** Finds the tokens instead, where the model wants more than one beam and no temperature was asked for. */
  search: BeamSearch | undefined;
  tokens: number[];
  /** Sum over the tokens and their end. */
  logprobs: number;
  /** Their mean, once all are there. */
  avgLogprob: number;
  noSpeechProb: number;
  done: boolean;
}

type Model = Pick<WhisperModel, 'config' | 'tokens'>;

/** The windows of a job's audio, cut at pauses; silent ones are done. */
export function cutWindows(job: Job, { config }: Model): Window[] {
  const { sampleRate } = config.mel;
  const cuts = splitAtPauses(job.options.samples, sampleRate, config.windows.samples / sampleRate);
  return cuts.map(({ start, samples, silent }, seed) => {
    // A decoder that closes a segment every few steps of time would be heard again without end.
    const seeks = Math.ceil(samples.length / sampleRate);
    return { ...newWindow(job, seed, start, samples, seeks), noSpeechProb: silent ? 1 : 0, done: silent };
  });
}

function newWindow(job: Job, seed: number, start: number, samples: Float32Array, seeks: number): Window {
  return {
    job, seed, start, samples, seeks, slot: undefined, prompt: [], fed: 0, planned: 0, search: undefined, tokens: [], logprobs: 0,
    avgLogprob: 0, noSpeechProb: 0, done: false,
  }; // prettier-ignore
}

/** Whether a job's segments get times from the model. */
export const isTimed = ({ options }: Job, { tokens, config }: Model): boolean =>
  options.timestamps === 'segment' && tokens.timestampBegin < config.vocabulary;

/** Counts a window whose tokens are all there, cuts them to those that stand, and returns what it left unheard as a window of its own after it. */
export function settle(window: Window, model: Model): Window | undefined {
  const { job, samples, start, seeks } = window;
  const { sampleRate } = model.config.mel;
  job.outputTokens += window.tokens.length;
  window.avgLogprob = window.logprobs / (window.tokens.length + 1);
  if (seeks === 0 || isUnheard(window, model)) return undefined;
  const { tokens, rest } = closedTokens(window.tokens, samples.length / sampleRate, timesOf(model));
  if (rest === undefined) return undefined;
  window.tokens = [...tokens];
  const from = Math.round(rest * sampleRate);
  const left = samples.subarray(from);
  if (isSilent(left, sampleRate)) return undefined;
  const after = newWindow(job, window.seed, start + from, left, seeks - 1);
  job.windows.splice(job.windows.indexOf(window) + 1, 0, after);
  return after;
}

/** Its text is dropped: the model heard no speech and was not sure of what it wrote. */
function isUnheard(window: Window, { tokens: { silence } }: Model): boolean {
  return window.noSpeechProb > silence.probability && window.avgLogprob < silence.logprob;
}

const timesOf = ({ tokens, config: { mel } }: Model): TimestampTokens => ({
  begin: tokens.timestampBegin,
  step: (2 * mel.hop) / mel.sampleRate,
});

/** Sends the segments of windows that are done, in order, and the end after the last; returns whether that was sent. */
export function emitDone(job: Job, model: Model, decode: (tokens: readonly number[]) => string): boolean {
  const { sampleRate } = model.config.mel;
  for (; job.windows[job.emitted]?.done; job.emitted++) {
    const window = job.windows[job.emitted]!;
    const { tokens, avgLogprob, noSpeechProb, start, samples } = window;
    if (isUnheard(window, model)) continue;
    const heard = {
      tokens, avgLogprob, noSpeechProb, start: start / sampleRate, seconds: samples.length / sampleRate,
      seek: Math.round((start * 100) / sampleRate), temperature: job.options.temperature ?? 0,
    }; // prettier-ignore
    for (const segment of toSegments(heard, timesOf(model), job.segments, decode)) {
      job.segments++;
      job.text += job.text === '' || /^\s/.test(segment.text) ? segment.text : ` ${segment.text}`;
      job.events.push({ type: 'segment', segment });
    }
  }
  if (job.emitted < job.windows.length) return false;
  const { inputTokens, outputTokens } = job;
  job.events.push({ type: 'finish', text: job.text.trim(), duration: job.options.samples.length / sampleRate, inputTokens, outputTokens });
  job.events.end();
  return true;
}
