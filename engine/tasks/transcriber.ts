/**
 * Transcription: windows at pauses -> encoder -> batched decoding -> segments, with the next step submitted before the last one's tokens are read.
 * Windows that are searched with several beams sit out one step in two, or on software adapters wait: their next one depends on the tokens.
 */
import type { ModelInfo, TranscriptionEvent, TranscriptionRequest } from '../api.ts';
import { storageType } from '../config.ts';
import type { EngineConfig, ModelSource } from '../config.ts';
import { EngineError, assert } from '../errors.ts';
import type { Device } from '../gpu/device.ts';
import { transcriptPrompt } from '../models/whisper/config.ts';
import { loadWhisperModel } from '../models/whisper/load.ts';
import type { Platform } from '../platform/platform.ts';
import type { TaskOperations } from '../protocol.ts';
import { summarise } from '../ops/constrained-token.ts';
import { MAX_STEP_COPIES, MAX_STEP_ROWS, WhisperRunner } from '../runner/whisper-runner.ts';
import type { MaskName, SampledToken, StepCopy, StepRow } from '../runner/whisper-runner.ts';
import { Tokenizer } from '../text/tokenizer.ts';
import { AsyncQueue } from '../util/async-queue.ts';
import { openModelFolder } from '../weights/open-model-folder.ts';
import { BeamSearch } from './beam-search.ts';
import { cutWindows, emitDone, isTimed, settle } from './transcription-job.ts';
import type { Job, Window } from './transcription-job.ts';

/** What a sampled row is for. */
interface Sampled {
  readonly window: Window;
  readonly kind: 'token' | 'no speech' | 'language' | 'beam';
  /** Of a beam. */
  readonly lane?: number;
}

/** A step on the device. */
interface Submitted {
  readonly sampled: readonly Sampled[];
  readonly result: { tokens(): Promise<readonly (readonly SampledToken[])[]> };
}

/** Said of a checkpoint that has no token for what precedes the audio, or that knows it from its table of tokens only. */
const PROMPT_IGNORED = "'prompt' is ignored: this model was not trained with prompts";

export class Transcriber implements TaskOperations<'transcription'> {
  readonly info: ModelInfo;
  readonly #runner: WhisperRunner;
  readonly #tokenizer: Tokenizer;
  readonly #maxQueued: number;
  /** Windows without a slot, in order of arrival, and those with one. */
  #waiting: Window[] = [];
  readonly #active = new Set<Window>();
  readonly #freeSlots: number[];
  readonly #jobs = new Set<Job>();
  #closed: EngineError | undefined;
  #running: Promise<void> | undefined;
  #resolveLost: (reason: string) => void = () => {};
  /** Resolves with the reason when nothing can be answered any more, because a step failed. */
  readonly lost = new Promise<string>((resolve) => (this.#resolveLost = resolve));

  constructor(info: ModelInfo, runner: WhisperRunner, tokenizer: Tokenizer, maxQueued: number) {
    this.info = info;
    this.#runner = runner;
    this.#tokenizer = tokenizer;
    this.#maxQueued = maxQueued;
    this.#freeSlots = Array.from({ length: runner.slots }, (_, slot) => slot);
  }

  /** Loads a model folder, allocates its slots, compiles and warms up. */
  static async load(device: Device, platform: Platform, source: ModelSource, config: EngineConfig): Promise<Transcriber> {
    const folder = await openModelFolder(platform, source.path, source.id);
    const dtype = storageType(config.dtype);
    const model = await loadWhisperModel(device, folder, dtype);
    const tokenizer = await Tokenizer.load(folder, model.config.vocabulary);
    const memory = config.deviceMemory === undefined ? undefined : config.deviceMemory * config.memFractionStatic;
    const runner = new WhisperRunner(device, model, { maxRunning: config.maxRunningRequests, memory });
    await runner.warmUp();
    const { id } = folder;
    const { windows, mel } = model.config;
    platform.log(`${id}: ${runner.slots} windows of ${windows.samples / mel.sampleRate} s side by side`);
    const { parameters, weightBytes } = model;
    const translates = model.tokens.translate !== undefined;
    const info: ModelInfo = { id, task: 'transcription', architecture: 'whisper', parameters, weightBytes, translates };
    return new Transcriber(info, runner, tokenizer, config.maxQueuedRequests);
  }

  /** Transcribes a request; throws EngineError before the first event when it cannot be served. Ending the iteration aborts. */
  async *transcribe(request: TranscriptionRequest, signal: AbortSignal): AsyncGenerator<TranscriptionEvent> {
    if (signal.aborted) throw new EngineError('aborted', 'the request was aborted');
    const job = this.#enqueue(request);
    const aborted = (): void => job.events.fail(new EngineError('aborted', 'the request was aborted'));
    signal.addEventListener('abort', aborted, { once: true });
    try {
      this.#flush(job);
      this.#wake();
      yield* job.events;
    } finally {
      signal.removeEventListener('abort', aborted);
      this.#drop(job);
    }
  }

  /** Aborts what runs and waits for the last step. */
  async close(): Promise<void> {
    this.#fail(new EngineError('shutting_down', 'the engine is closing'));
    await this.#running;
  }

  #enqueue(options: TranscriptionRequest): Job {
    if (this.#closed) throw this.#closed;
    const { config, tokens } = this.#runner.model;
    const { hop } = config.mel;
    if (options.samples.length === 0) throw new EngineError('invalid_audio', 'the audio has no samples', { param: 'samples' });
    if (this.#jobs.size >= this.#maxQueued) throw new EngineError('queue_full', `${this.#jobs.size} transcriptions are waiting`);
    if (options.task === 'translate' && tokens.translate === undefined) {
      throw new EngineError('unsupported', 'this model cannot translate: it was trained for transcripts only', { param: 'task' });
    }
    const language = this.#language(options.language);
    const text = options.prompt?.trim();
    // As in OpenAI's decoder, half of the positions are for the prompt and half for the transcript.
    const room = Math.floor(config.targetPositions / 2) - 1;
    const hint = text && tokens.previous !== undefined ? this.#tokenizer.encode(` ${text}`).slice(-room) : [];
    const warnings = text && tokens.previous === undefined ? [PROMPT_IGNORED] : [];
    const job: Job = {
      options, hint, warnings, language, events: new AsyncQueue(), windows: [], emitted: 0, segments: 0, text: '', outputTokens: 0,
      inputTokens: Math.ceil(options.samples.length / (2 * hop)),
    }; // prettier-ignore
    job.windows.push(...cutWindows(job, this.#runner.model));
    this.#waiting.push(...job.windows.filter(({ done }) => !done));
    // Nothing to hear a language in.
    if (job.windows.every(({ done }) => done)) job.language ??= [...tokens.languages.keys()][0] ?? 'en';
    this.#jobs.add(job);
    if (job.language !== undefined) this.#start(job, job.language);
    return job;
  }

  /** The language asked for or the model's only one; undefined = to be detected. */
  #language(asked: string | undefined): string | undefined {
    const known = [...this.#runner.model.tokens.languages.keys()];
    if (known.length === 0) known.push('en');
    if (asked !== undefined && !known.includes(asked)) {
      const message = `this model does not know the language '${asked}'; it knows ${known.slice(0, 8).join(', ')}${known.length > 8 ? ', ...' : ''}`;
      throw new EngineError('invalid_request', message, { param: 'language' });
    }
    return asked ?? (known.length === 1 ? known[0] : undefined);
  }

  #start(job: Job, language: string): void {
    const { tokens, config } = this.#runner.model;
    job.language = language;
    const prefix = job.hint.length > 0 ? [tokens.previous!, ...job.hint] : [];
    const prompt = [...prefix, ...transcriptPrompt(tokens, language, isTimed(job, this.#runner.model), job.options.task)];
    for (const window of job.windows) this.#prepare(window, prompt);
    const duration = job.options.samples.length / config.mel.sampleRate;
    job.events.push({ type: 'start', duration, language, ...(job.warnings.length > 0 && { warnings: job.warnings }) });
  }

  /** Gives a window its prompt and, where the model wants one, its search. */
  #prepare(window: Window, prompt: readonly number[]): void {
    window.prompt = prompt;
    if (window.done) return;
    window.job.inputTokens += prompt.length;
    const { beams } = this.#runner;
    if (beams === 1 || window.job.options.temperature) return;
    window.search = new BeamSearch({ width: beams, prompt, eos: this.#runner.model.tokens.eos, limit: this.#limit(window) });
  }

  /** Starts the loop unless it runs. */
  #wake(): void {
    this.#running ??= this.#loop().catch((error: unknown) => {
      const lost = new EngineError('device_lost', `a step of the transcription model failed: ${String(error)}`, { cause: error });
      this.#fail(lost);
      this.#resolveLost(lost.message);
    });
  }

  /** Steps until nothing is left. One window is encoded a turn, so that others' steps (and other tasks) wait for no more than that. */
  async #loop(): Promise<void> {
    let submitted: Submitted | undefined;
    try {
      await Promise.resolve();
      while (submitted || this.#active.size + this.#waiting.length > 0) {
        this.#admit();
        if (submitted && this.#waitsForTokens()) {
          await this.#takeAll(submitted);
          submitted = undefined;
          if (this.#active.size === 0) continue;
        }
        const rows: StepRow[] = [];
        const copies: StepCopy[] = [];
        const sampled: Sampled[] = [];
        for (const window of this.#active) this.#plan(window, rows, copies, sampled);
        assert(rows.length > 0 || submitted, `nothing to do for ${this.#active.size} active and ${this.#waiting.length} waiting windows`);
        const current = rows.length > 0 ? { sampled, result: this.#runner.step(rows, copies) } : undefined;
        if (submitted) await this.#takeAll(submitted);
        submitted = current;
      }
    } finally {
      this.#running = undefined;
    }
  }

  /**
   * Searched windows sit out the step after theirs. On a GPU half of them step while the host ponders the others' tokens; a software adapter shares
   * its cores with the host, and one step for all is less work than two.
   */
  #waitsForTokens(): boolean {
    return this.#runner.software && [...this.#active].some(({ search }) => search !== undefined);
  }

  async #takeAll({ sampled, result }: Submitted): Promise<void> {
    const tokens = await result.tokens();
    sampled.forEach((row, i) => this.#take(row, tokens[i]!));
  }

  /** Gives the next window a slot. A request's language is detected in its first window before the others follow. */
  #admit(): void {
    const detecting = new Set([...this.#active].filter(({ prompt }) => prompt.length === 0).map(({ job }) => job));
    const next = this.#waiting.findIndex(({ job }) => !detecting.has(job));
    if (next < 0 || this.#freeSlots.length === 0) return;
    const [window] = this.#waiting.splice(next, 1) as [Window];
    window.slot = this.#freeSlots.pop()!;
    this.#active.add(window);
    this.#runner.encode(window.slot, window.samples);
  }

  /** Appends the rows of a window's next step. */
  #plan(window: Window, rows: StepRow[], copies: StepCopy[], sampled: Sampled[]): void {
    const { tokens } = this.#runner.model;
    const slot = window.slot!;
    const { prompt } = window;
    if (prompt.length === 0) {
      if (window.fed > 0) return;
      window.fed = 1;
      rows.push({ slot, position: 0, token: tokens.start, sample: { mask: 'languages', probe: tokens.eos } });
      sampled.push({ window, kind: 'language' });
      return;
    }
    if (window.search) {
      this.#planBeams(window, window.search, rows, copies, sampled);
      return;
    }
    if (window.planned > 0) {
      if (window.planned >= this.#limit(window) || rows.length >= MAX_STEP_ROWS) return;
      rows.push({ slot, position: prompt.length + window.planned - 1, sample: this.#sample(window) });
      sampled.push({ window, kind: 'token' });
      window.planned++;
      return;
    }
    while (window.fed < prompt.length && rows.length < MAX_STEP_ROWS) {
      const position = window.fed++;
      const token = prompt[position]!;
      if (position === prompt.length - 1) {
        rows.push({ slot, position, token, sample: this.#sample(window) });
        sampled.push({ window, kind: 'token' });
        window.planned = 1;
      } else if (token === tokens.start && tokens.noSpeech !== undefined) {
        rows.push({ slot, position, token, sample: { mask: 'text', probe: tokens.noSpeech } });
        sampled.push({ window, kind: 'no speech' });
      } else {
        rows.push({ slot, position, token });
      }
    }
  }

  #planBeams(window: Window, search: BeamSearch, rows: StepRow[], copies: StepCopy[], sampled: Sampled[]): void {
    const { tokens } = this.#runner.model;
    const slot = window.slot!;
    const planned = search.plan({ rows: MAX_STEP_ROWS - rows.length, copies: MAX_STEP_COPIES - copies.length });
    for (const copy of planned.copies) copies.push({ slot, ...copy });
    for (const { history, ...row } of planned.rows) {
      if (history) {
        const sample = { ...this.#sample(window, history.length === 0), history: summarise(history, tokens.timestampBegin) };
        rows.push({ slot, ...row, sample });
        sampled.push({ window, kind: 'beam', lane: row.lane });
      } else if (row.lane === 0 && row.token === tokens.start && tokens.noSpeech !== undefined) {
        rows.push({ slot, ...row, sample: { mask: 'text', probe: tokens.noSpeech } });
        sampled.push({ window, kind: 'no speech' });
      } else {
        rows.push({ slot, ...row });
      }
    }
  }

  #sample({ job, seed, planned }: Window, first = planned === 0): NonNullable<StepRow['sample']> {
    const timestamps = isTimed(job, this.#runner.model);
    const mask: MaskName = timestamps ? (first ? 'firstTimestamps' : 'timestamps') : first ? 'firstText' : 'text';
    return { mask, timestamps, first, temperature: job.options.temperature ?? 0, seed };
  }

  /** Tokens a window may have. */
  #limit({ prompt }: Window): number {
    const { targetPositions } = this.#runner.model.config;
    return Math.min(Math.floor(targetPositions / 2), targetPositions - prompt.length);
  }

  #take({ window, kind, lane = 0 }: Sampled, chosen: readonly SampledToken[]): void {
    if (window.done) return;
    const { tokens } = this.#runner.model;
    if (kind === 'beam') {
      const search = window.search!;
      search.take(lane, chosen);
      if (!search.done) return;
      const best = search.best();
      window.tokens.push(...best.tokens);
      window.logprobs = best.logprob;
      this.#finish(window);
      return;
    }
    const { token, logprob } = chosen[0]!;
    if (kind === 'no speech') {
      window.noSpeechProb = Math.exp(logprob);
    } else if (kind === 'language') {
      window.fed = 0;
      this.#start(window.job, [...tokens.languages].find(([, id]) => id === token)![0]);
    } else {
      window.logprobs += logprob;
      if (token !== tokens.eos) window.tokens.push(token);
      if (token === tokens.eos || window.tokens.length >= this.#limit(window)) this.#finish(window);
    }
  }

  /** Ends a window; what it left unheard is next. */
  #finish(window: Window): void {
    this.#release(window);
    const rest = settle(window, this.#runner.model);
    if (rest) {
      this.#prepare(rest, window.prompt);
      this.#waiting.unshift(rest);
    }
    this.#flush(window.job);
  }

  /** Takes a window's slot back; a step still in flight may write there, before whatever comes next. */
  #release(window: Window): void {
    window.done = true;
    if (!this.#active.delete(window)) return;
    this.#freeSlots.push(window.slot!);
  }

  #flush(job: Job): void {
    if (emitDone(job, this.#runner.model, (ids) => this.#tokenizer.decode(ids))) this.#jobs.delete(job);
  }

  /** Forgets a request. */
  #drop(job: Job): void {
    this.#jobs.delete(job);
    this.#waiting = this.#waiting.filter((window) => window.job !== job);
    for (const window of job.windows) this.#release(window);
  }

  /** Ends every request with an error and refuses new ones. */
  #fail(error: EngineError): void {
    this.#closed = error;
    for (const job of [...this.#jobs]) {
      job.events.fail(error);
      this.#drop(job);
    }
  }
}
