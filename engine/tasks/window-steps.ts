/** Plans the decoder's steps: which rows each window contributes (prompt, token or beams), and what becomes of the sampled tokens; no GPU. */
import { summarise } from '../ops/constrained-token.ts';
import type { SampledToken, WhisperRunner } from '../runner/whisper-runner.ts';
import { MAX_STEP_COPIES, MAX_STEP_ROWS } from '../runner/whisper-step.ts';
import type { MaskName, StepCopy, StepRow } from '../runner/whisper-step.ts';
import { BeamSearch } from './beam-search.ts';
import { isTimed } from './transcription-job.ts';
import type { Window } from './transcription-job.ts';

/** The purpose of a row that is sampled. */
export interface SampledRow {
  readonly window: Window;
  readonly kind: 'token' | 'no speech' | 'language' | 'beam';
  /** Index of the window's attempt that it belongs to. */
  readonly attempt: number;
  /** Lane of the beam search, for kind `beam`. */
  readonly lane?: number;
}

/** The work of one step. */
export interface StepPlan {
  readonly rows: readonly StepRow[];
  readonly copies: readonly StepCopy[];
  /** Purpose of each row that is sampled, in the order of the rows. */
  readonly sampled: readonly SampledRow[];
}

/** Distance between the sampling seeds of a window's attempts; windows are numbered from 0. */
const ATTEMPT_SEED = 2 ** 20;

/** What a row settled: the detected language, or that its window's attempt is finished. */
export type Outcome = DetectedLanguage | 'finished' | undefined;

/** The likeliest language of a window, and its probability among the model's languages. */
export interface DetectedLanguage {
  readonly language: string;
  readonly probability: number;
}

export class WindowSteps {
  readonly #runner: Pick<WhisperRunner, 'model' | 'beams'>;

  constructor(runner: Pick<WhisperRunner, 'model' | 'beams'>) {
    this.#runner = runner;
  }

  /** Gives a window its prompt and, if the model uses several beams, its beam search. */
  prepare(window: Window, prompt: readonly number[]): void {
    window.prompt = prompt;
    if (window.done) return;
    window.job.inputTokens += prompt.length;
    const { beams, model } = this.#runner;
    if (beams === 1 || window.temperature > 0) return;
    window.search = new BeamSearch({ width: beams, prompt, eos: model.tokens.eos, limit: this.#limit(window) });
  }

  /** Plans the next step of these windows; it has no rows if all of them wait for tokens of the step in flight. */
  plan(windows: Iterable<Window>): StepPlan {
    const plan = { rows: [] as StepRow[], copies: [] as StepCopy[], sampled: [] as SampledRow[] };
    for (const window of windows) {
      if (window.prompt.length === 0) this.#planLanguage(window, plan);
      else if (window.search) this.#planBeams(window, window.search, plan);
      else if (window.planned > 0) this.#planToken(window, plan);
      else this.#planPrompt(window, plan);
    }
    return plan;
  }

  /** Takes the tokens sampled for a row. */
  take({ window, kind, attempt, lane = 0 }: SampledRow, chosen: readonly SampledToken[]): Outcome {
    // The row may belong to an attempt that was rejected after its step was submitted.
    if (window.done || attempt !== window.attempts.length) return undefined;
    if (kind === 'beam') return takeBeam(window, lane, chosen);
    const { tokens } = this.#runner.model;
    const { token, logprob } = chosen[0]!;
    if (kind === 'no speech') {
      window.noSpeechProb = Math.exp(logprob);
      return undefined;
    }
    if (kind === 'language') {
      window.fed = 0;
      return { language: [...tokens.languages].find(([, id]) => id === token)![0], probability: Math.exp(logprob) };
    }
    window.logprob += logprob;
    window.ended = token === tokens.eos;
    if (!window.ended) {
      window.tokens.push(token);
      window.logprobs.push(logprob);
    }
    return window.ended || window.tokens.length >= this.#limit(window) ? 'finished' : undefined;
  }

  #planLanguage(window: Window, { rows, sampled }: Planned): void {
    // `fed` > 0: detection is in flight. The step may also be full of other windows' prompts.
    if (window.fed > 0 || rows.length >= MAX_STEP_ROWS) return;
    const { tokens } = this.#runner.model;
    window.fed = 1;
    rows.push({ slot: window.slot!, position: 0, token: tokens.start, sample: { mask: 'languages', first: true } });
    sampled.push({ window, kind: 'language', attempt: 0 });
  }

  #planToken(window: Window, { rows, sampled }: Planned): void {
    if (window.planned >= this.#limit(window) || rows.length >= MAX_STEP_ROWS) return;
    rows.push({ slot: window.slot!, position: window.prompt.length + window.planned - 1, sample: this.#sample(window) });
    sampled.push({ window, kind: 'token', attempt: window.attempts.length });
    window.planned++;
  }

  #planPrompt(window: Window, { rows, sampled }: Planned): void {
    const { tokens } = this.#runner.model;
    const { prompt } = window;
    const slot = window.slot!;
    while (window.fed < prompt.length && rows.length < MAX_STEP_ROWS) {
      const position = window.fed++;
      const token = prompt[position]!;
      if (position === prompt.length - 1) {
        rows.push({ slot, position, token, sample: this.#sample(window) });
        sampled.push({ window, kind: 'token', attempt: window.attempts.length });
        window.planned = 1;
      } else if (token === tokens.start && tokens.noSpeech !== undefined) {
        rows.push({ slot, position, token, sample: { mask: 'text', probe: tokens.noSpeech } });
        sampled.push({ window, kind: 'no speech', attempt: window.attempts.length });
      } else {
        rows.push({ slot, position, token });
      }
    }
  }

  #planBeams(window: Window, search: BeamSearch, { rows, copies, sampled }: Planned): void {
    const { tokens } = this.#runner.model;
    const slot = window.slot!;
    const planned = search.plan({ rows: MAX_STEP_ROWS - rows.length, copies: MAX_STEP_COPIES - copies.length });
    for (const copy of planned.copies) copies.push({ slot, ...copy });
    for (const { history, ...row } of planned.rows) {
      if (history) {
        const sample = { ...this.#sample(window, history.length === 0), history: summarise(history, tokens.timestampBegin) };
        rows.push({ slot, ...row, sample });
        sampled.push({ window, kind: 'beam', attempt: window.attempts.length, lane: row.lane });
      } else if (row.lane === 0 && row.token === tokens.start && tokens.noSpeech !== undefined) {
        rows.push({ slot, ...row, sample: { mask: 'text', probe: tokens.noSpeech } });
        sampled.push({ window, kind: 'no speech', attempt: window.attempts.length });
      } else {
        rows.push({ slot, ...row });
      }
    }
  }

  #sample({ job, seed, planned, temperature, attempts }: Window, first = planned === 0): NonNullable<StepRow['sample']> {
    const timestamps = isTimed(job, this.#runner.model);
    const mask: MaskName = timestamps ? (first ? 'firstTimestamps' : 'timestamps') : first ? 'firstText' : 'text';
    return { mask, timestamps, first, temperature, seed: seed + attempts.length * ATTEMPT_SEED };
  }

  /** Most tokens of a window's transcript. */
  #limit({ prompt }: Window): number {
    const { targetPositions } = this.#runner.model.config;
    return Math.min(Math.floor(targetPositions / 2), targetPositions - prompt.length);
  }
}

/** A plan to which windows add their rows. */
interface Planned {
  readonly rows: StepRow[];
  readonly copies: StepCopy[];
  readonly sampled: SampledRow[];
}

function takeBeam(window: Window, lane: number, chosen: readonly SampledToken[]): Outcome {
  const search = window.search!;
  search.take(lane, chosen);
  if (!search.done) return undefined;
  const best = search.best();
  window.tokens.push(...best.tokens);
  window.logprobs.push(...best.logprobs);
  window.logprob = best.logprob;
  window.ended = search.ended;
  return 'finished';
}
