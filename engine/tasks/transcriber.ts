/** Transcription: a request becomes a job of windows cut at pauses, the windows are decoded, and their segments are sent in order. */
import type { ModelInfo, SampleFile, TranscriptionEvent, TranscriptionRequest } from '../api.ts';
import { wholeSound } from '../audio/kept-sound.ts';
import { arraySource, soundSource } from '../audio/sample-source.ts';
import { weightStorage } from '../config.ts';
import type { EngineConfig, ModelSource } from '../config.ts';
import { EngineError, engineClosing, namingModel, requestAborted } from '../errors.ts';
import type { Device } from '../gpu/device.ts';
import { languagesOf, transcriptPrompt } from '../models/whisper/config.ts';
import { loadWhisperModel, readWhisperFolder } from '../models/whisper/load.ts';
import type { Platform } from '../platform/platform.ts';
import { sampleFile } from '../platform/sample-file.ts';
import type { TaskOperations } from '../protocol.ts';
import { VadRunner } from '../runner/vad-runner.ts';
import { WhisperRunner } from '../runner/whisper-runner.ts';
import { Tokenizer } from '../text/tokenizer.ts';
import { AsyncQueue } from '../util/async-queue.ts';
import type { ModelDemand } from '../runner/memory-plan.ts';
import { weightDemand } from '../weights/storage.ts';
import { withWeights } from '../weights/model-folder.ts';
import type { ModelFolder } from '../weights/model-folder.ts';
import { openModelFolder } from '../weights/open-model-folder.ts';
import { loadAlone } from './prepared.ts';
import type { Prepared } from './prepared.ts';
import { heardOf } from './speech-gate.ts';
import { cutWindows, emitDone, isTimed } from './transcription-job.ts';
import type { Job } from './transcription-job.ts';
import { WindowDecoder } from './window-decoder.ts';
import type { DetectedLanguage } from './window-steps.ts';

/** Warning for a model without a usable token that introduces a prompt. */
const PROMPT_IGNORED = "'prompt' is ignored: this model was not trained with prompts";

/** Probability from which on the detected language is believed. */
const SURE_LANGUAGE = 0.5;

/** A transcription request, with its samples in memory or in a file. */
type Request = TranscriptionRequest<Float32Array | SampleFile>;

interface Parts {
  readonly runner: WhisperRunner;
  /** Voice activity detection; absent = all audio is transcribed. */
  readonly vad?: VadRunner | undefined;
  readonly tokenizer: Tokenizer;
  /** Opens files of samples. */
  readonly platform: Pick<Platform, 'open'>;
  /** Most transcriptions at once, waiting ones included. */
  readonly maxQueued: number;
  /** Language to assume if the model is not sure; absent = its best guess. */
  readonly fallbackLanguage?: string | undefined;
}

export class Transcriber implements TaskOperations<'transcription'> {
  readonly info: ModelInfo;
  readonly #parts: Parts;
  readonly #decoder: WindowDecoder;
  readonly #jobs = new Set<Job>();
  #closed: EngineError | undefined;
  #resolveLost: (reason: string) => void = () => {};
  /** Resolves with the reason when a step has failed, after which nothing can be transcribed. */
  readonly lost = new Promise<string>((resolve) => (this.#resolveLost = resolve));

  constructor(info: ModelInfo, parts: Parts) {
    this.info = info;
    this.#parts = parts;
    this.#decoder = new WindowDecoder(parts.runner, (ids) => parts.tokenizer.decode(ids), {
      language: (job, detected) => this.#detected(job, detected),
      done: (job) => this.#emit(job),
      failed: (job, error) => job.events.fail(error),
      lost: (error) => {
        this.#fail(error);
        this.#resolveLost(error.message);
      },
    });
  }

  /** Reads a model folder's configuration and headers, and plans its memory; `load` then loads the weights, allocates the slots, compiles the kernels and warms them up. */
  static async prepare(device: Device, platform: Platform, source: ModelSource, config: EngineConfig): Promise<Prepared<Transcriber>> {
    const folder = await openModelFolder(platform, source.path, source.id);
    const storage = weightStorage(config);
    const memory = config.deviceMemory === undefined ? undefined : config.deviceMemory * config.memFractionStatic;
    const options = { maxRunning: config.maxRunningRequests, memory };
    const shape = await readWhisperFolder(folder);
    const own = await withWeights(folder, async (checkpoint) => weightDemand(checkpoint, storage));
    const gate = config.vad ? VadRunner.demand(device) : { weights: 0, activations: 0 };
    const demand: ModelDemand = {
      id: folder.id,
      task: 'transcription',
      ...own,
      weights: own.weights + gate.weights,
      activations: WhisperRunner.bytes(device, shape, options) + gate.activations,
    };
    const load = async (): Promise<Transcriber> => {
      const model = await loadWhisperModel(device, folder, storage);
      return Transcriber.#warm(device, folder, new WhisperRunner(device, model, options), platform, config);
    };
    return { demand, load };
  }

  /** Prepares and loads a model that shares the device with no other. */
  static async load(device: Device, platform: Platform, source: ModelSource, config: EngineConfig): Promise<Transcriber> {
    return loadAlone(device, platform, config, await Transcriber.prepare(device, platform, source, config));
  }

  static async #warm(
    device: Device,
    folder: ModelFolder,
    runner: WhisperRunner,
    platform: Platform,
    config: EngineConfig,
  ): Promise<Transcriber> {
    const { model } = runner;
    const tokenizer = await Tokenizer.load(folder, model.config.vocabulary);
    await runner.warmUp();
    const vad = config.vad && (await namingModel(config.vad.path, VadRunner.load(device, config.vad.path)));
    const { id, format } = folder;
    const { windows, mel } = model.config;
    platform.log(`${id}: ${runner.slots} windows of ${windows.samples / mel.sampleRate} s side by side`);
    const { parameters, weightBytes } = model;
    const translates = model.tokens.translate !== undefined;
    const languages = languagesOf(model.tokens);
    const wanted = config.transcriptionLanguage;
    const fallbackLanguage = languages.includes(wanted) ? wanted : undefined;
    if (wanted !== 'auto' && !fallbackLanguage)
      platform.log(`${id}: does not know the language '${wanted}', so the one it hears is taken, however unsure`);
    const info: ModelInfo = { id, task: 'transcription', architecture: 'whisper', ...(format !== undefined && { format }), parameters, weightBytes, languages, translates }; // prettier-ignore
    return new Transcriber(info, { runner, vad, tokenizer, platform, maxQueued: config.maxQueuedRequests, fallbackLanguage });
  }

  /** Transcribes a request with a stream of events. Throws EngineError before the first event if it cannot be served. Leaving the iteration early aborts it. */
  async *transcribe(request: Request, signal: AbortSignal): AsyncGenerator<TranscriptionEvent> {
    if (signal.aborted) throw requestAborted();
    const job = this.#accept(request);
    const aborted = (): void => job.events.fail(requestAborted());
    signal.addEventListener('abort', aborted, { once: true });
    try {
      await this.#cut(job, signal);
      this.#decoder.add(job);
      this.#emit(job);
      yield* job.events;
    } finally {
      signal.removeEventListener('abort', aborted);
      this.#drop(job);
      await job.sound.close();
    }
  }

  /** Ends every request with an error and waits for the step in flight. */
  async close(): Promise<void> {
    this.#fail(engineClosing());
    await this.#decoder.idle();
  }

  /** Validates a request and makes it a job, whose windows are still to be cut. Throws EngineError. */
  #accept({ samples, ...request }: Request): Job {
    if (this.#closed) throw this.#closed;
    const { runner, vad, tokenizer, maxQueued, platform } = this.#parts;
    const { config, tokens } = runner.model;
    if (samples.length === 0) throw new EngineError('invalid_audio', 'the audio has no samples', { param: 'samples' });
    if (this.#jobs.size >= maxQueued) throw new EngineError('queue_full', `${this.#jobs.size} transcriptions are waiting`);
    if (request.task === 'translate' && tokens.translate === undefined) {
      throw new EngineError('unsupported', 'this model cannot translate: it was trained for transcripts only', { param: 'task' });
    }
    if (typeof request.vad === 'object' && !vad)
      throw new EngineError('unsupported', 'no model that finds speech is loaded, so there is nothing to give rules to', { param: 'vad' });
    const language = this.#language(request.language);
    const text = request.prompt?.trim();
    // As in OpenAI's decoder, half of the positions are for the prompt and half for the transcript.
    const room = Math.floor(config.targetPositions / 2) - 1;
    const hint = text && tokens.previous !== undefined ? hintOf(text, tokenizer).slice(-room) : [];
    const warnings = text && tokens.previous === undefined ? [PROMPT_IGNORED] : [];
    const sound = soundSource(samples instanceof Float32Array ? arraySource(samples) : sampleFile(platform, samples));
    const audioTokens = Math.ceil(sound.length / (2 * config.mel.hop));
    const job: Job = {
      request, sound, heard: wholeSound(sound), hint, warnings, language, events: new AsyncQueue(), windows: [], emitted: 0, segments: 0, text: '', outputTokens: 0,
      audioTokens, inputTokens: audioTokens,
    }; // prettier-ignore
    this.#jobs.add(job);
    return job;
  }

  /** Finds the speech of a job and cuts it into windows. Starts the job if its language is known. Throws if the engine is closed meanwhile. */
  async #cut(job: Job, signal: AbortSignal): Promise<void> {
    const { runner, vad } = this.#parts;
    if (vad) job.heard = await heardOf(job, vad, signal);
    await cutWindows(job, runner.model, signal);
    if (this.#closed) throw this.#closed;
    // In silence no language can be detected.
    if (job.windows.every(({ done }) => done)) job.language ??= languagesOf(runner.model.tokens)[0]!;
    if (job.language !== undefined) this.#start(job, job.language);
  }

  /** The language asked for, or the model's only one; undefined = to be detected. Throws EngineError('invalid_request') for a language that the model lacks. */
  #language(asked: string | undefined): string | undefined {
    const known = languagesOf(this.#parts.runner.model.tokens);
    if (asked !== undefined && !known.includes(asked)) {
      const message = `this model does not know the language '${asked}'; it knows ${known.slice(0, 8).join(', ')}${known.length > 8 ? ', ...' : ''}`;
      throw new EngineError('invalid_request', message, { param: 'language' });
    }
    return asked ?? (known.length === 1 ? known[0] : undefined);
  }

  /** Starts a job whose language was detected. If the model is not sure, the fallback language is likelier than its guess. */
  #detected(job: Job, detected: DetectedLanguage): void {
    const { fallbackLanguage } = this.#parts;
    const language = detected.probability < SURE_LANGUAGE ? (fallbackLanguage ?? detected.language) : detected.language;
    this.#start(job, language, detected);
  }

  #start(job: Job, language: string, detected?: DetectedLanguage): void {
    const { model } = this.#parts.runner;
    const { tokens, config } = model;
    job.language = language;
    const prefix = job.hint.length > 0 ? [tokens.previous!, ...job.hint] : [];
    this.#decoder.prompt(job, [...prefix, ...transcriptPrompt(tokens, language, isTimed(job, model), job.request.task)]);
    const duration = job.sound.length / config.mel.sampleRate;
    job.events.push({
      type: 'start',
      duration,
      language,
      ...(detected && { detected }),
      ...(job.warnings.length > 0 && { warnings: job.warnings }),
    });
  }

  /** Sends the segments of the windows that are done. */
  #emit(job: Job): void {
    const { runner, tokenizer } = this.#parts;
    const text = { decode: (ids: readonly number[]) => tokenizer.decode(ids), bytes: (id: number) => tokenizer.bytes(id) };
    if (emitDone(job, runner.model, text)) this.#jobs.delete(job);
  }

  /** Forgets a request. */
  #drop(job: Job): void {
    this.#jobs.delete(job);
    this.#decoder.drop(job);
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

/** Encodes the prompt. Pasted transcripts may contain timestamps and other control tokens, which are dropped, because they would derail the decoder. */
function hintOf(text: string, tokenizer: Tokenizer): number[] {
  const { special } = tokenizer.vocabulary;
  return tokenizer.encode(` ${text}`).filter((id) => !special.has(id));
}
