/** Text to speech: splits a text into pieces (speech-pieces.ts) and synthesises them in order. */
import type { ModelInfo, SpeechEvent, SpeechRequest } from '../api.ts';
import { weightStorage } from '../config.ts';
import type { EngineConfig, ModelSource } from '../config.ts';
import { joinable } from '../audio/pauses.ts';
import { EngineError, engineClosing, stepFailed } from '../errors.ts';
import type { Device } from '../gpu/device.ts';
import { expectFamily } from '../model-types.ts';
import { parseKokoroConfig } from '../models/kokoro/config.ts';
import { kokoroStorage, loadKokoro, maxKokoroFrames } from '../models/kokoro/model.ts';
import { readSpellings } from '../models/kokoro/spellings.ts';
import { blendVoices, loadVoices } from '../models/kokoro/voices.ts';
import type { Voice } from '../models/kokoro/voices.ts';
import { styleValues } from '../models/kokoro/weights.ts';
import type { Platform } from '../platform/platform.ts';
import type { TaskOperations } from '../protocol.ts';
import { SAMPLING } from '../sampling.ts';
import { KokoroRunner } from '../runner/kokoro-runner.ts';
import type { ModelDemand } from '../runner/memory-plan.ts';
import { Phonemizer } from '../text/phonemizer.ts';
import { withWeights } from '../weights/model-folder.ts';
import { SPEECH_LANGUAGES, languageOfVoice, speechLanguage, spokenAs } from '../util/speech-languages.ts';
import type { SpeechLanguage } from '../util/speech-languages.ts';
import { parseBlend } from '../util/voices.ts';
import type { ModelFolder } from '../weights/model-folder.ts';
import { openModelFolder } from '../weights/open-model-folder.ts';
import { weightDemand } from '../weights/storage.ts';
import { loadAlone } from './prepared.ts';
import type { Prepared } from './prepared.ts';
import { SpeechCutter, shownText } from './speech-pieces.ts';
import type { Manner, SpeechPiece } from './speech-pieces.ts';

/** Longest audio of a piece, in seconds. */
const MAX_PIECE_SECONDS = 20;
/** Most pieces of a request in flight, which can be synthesised in one batch. */
const AHEAD = 4;

const SPEED_RANGE = [0.25, 4] as const;

interface Speaker {
  readonly voice: Voice;
  readonly language: SpeechLanguage;
}

interface Parts {
  readonly runner: KokoroRunner;
  readonly voices: ReadonlyMap<string, Voice>;
  readonly phonemizer: Phonemizer;
  readonly cutter: SpeechCutter;
  /** Most requests that are served at once; further ones are refused. */
  readonly maxQueued: number;
}

export class Synthesizer implements TaskOperations<'speech'> {
  readonly info: ModelInfo;
  readonly #parts: Parts;
  #closed: EngineError | undefined;
  /** Requests that are being served. */
  #requests = 0;
  #resolveLost: (reason: string) => void = () => {};
  /** Resolves with the reason when a step has failed, after which nothing can be synthesised. */
  readonly lost = new Promise<string>((resolve) => (this.#resolveLost = resolve));

  constructor(info: ModelInfo, parts: Parts) {
    this.info = info;
    this.#parts = parts;
  }

  /** Reads a model folder's configuration and headers, and plans its memory; `load` then loads weights and voices, compiles the kernels and warms them up. */
  static async prepare(device: Device, platform: Platform, source: ModelSource, config: EngineConfig): Promise<Prepared<Synthesizer>> {
    const folder = await openModelFolder(platform, source.path, source.id);
    const configJson = await folder.json('config.json');
    const architecture = expectFamily(configJson, 'speech');
    const kokoro = parseKokoroConfig(configJson);
    const storage = weightStorage(config);
    const wanted = Math.ceil((MAX_PIECE_SECONDS * kokoro.sampleRate) / (2 * kokoro.samplesPerF0Frame));
    const limits = { maxTokens: kokoro.bert.positions, maxFrames: maxKokoroFrames(device, kokoro, wanted) };
    const demand: ModelDemand = {
      id: folder.id,
      task: 'speech',
      ...(await withWeights(folder, async (checkpoint) => ({
        ...weightDemand(checkpoint, storage, { storage: kokoroStorage }),
        activations: KokoroRunner.bytes(device, kokoro, styleValues(checkpoint, kokoro), limits),
      }))),
    };
    const load = async (): Promise<Synthesizer> => {
      const before = device.stats.bufferBytes;
      const weights = await withWeights(folder, (checkpoint) => loadKokoro(device, checkpoint, kokoro, storage));
      const weightBytes = device.stats.bufferBytes - before;
      const voices = await withWeights(folder, (opened) => loadVoices(opened, kokoro.styleDim), 'voices.safetensors');
      const runner = new KokoroRunner(device, kokoro, weights, limits);
      return Synthesizer.#warm(folder, runner, voices, platform, config, { architecture, parameters: weights.parameters, weightBytes });
    };
    return { demand, load };
  }

  /** Prepares and loads a model that shares the device with no other. */
  static async load(device: Device, platform: Platform, source: ModelSource, config: EngineConfig): Promise<Synthesizer> {
    return loadAlone(device, platform, config, await Synthesizer.prepare(device, platform, source, config));
  }

  static async #warm(
    folder: ModelFolder,
    runner: KokoroRunner,
    voices: ReadonlyMap<string, Voice>,
    platform: Platform,
    config: EngineConfig,
    known: Pick<ModelInfo, 'architecture' | 'parameters' | 'weightBytes'>,
  ): Promise<Synthesizer> {
    const { config: kokoro } = runner;
    const spellings = await readSpellings(folder, kokoro.vocab);
    const [anyVoice] = voices.values();
    if (anyVoice) await runner.warmUp(anyVoice);
    const phonemizer = new Phonemizer(platform, spellings, kokoro.vocab);
    try {
      // The first call starts espeak-ng.
      await phonemizer.ids('Ready.');
    } catch (error) {
      await phonemizer.close();
      throw error;
    }
    const { sampleRate } = kokoro;
    const { id, format } = folder;
    const info: ModelInfo = {
      id,
      task: 'speech',
      ...known,
      ...(format !== undefined && { format }),
      voices: [...voices.keys()],
      languages: phonemizer.languages,
      sampleRate,
    };
    const cutter = new SpeechCutter({ phonemizer, maxIds: runner.maxIds, maxPhonemes: config.maxSpeechPhonemes });
    return new Synthesizer(info, { runner, voices, phonemizer, cutter, maxQueued: config.maxQueuedRequests });
  }

  /**
   * Speaks a text. Throws EngineError('invalid_request') before the first event for an unknown voice, a language that the model does not speak, a speed or seed out of range, and a text that has nothing to
   * speak or too many phonemes, and EngineError('queue_full') where too many are spoken already. Equal (seed, text, voice, language, speed) give equal samples, whatever else is running.
   */
  async *synthesize(request: SpeechRequest, signal: AbortSignal): AsyncGenerator<SpeechEvent> {
    if (this.#closed) throw this.#closed;
    if (this.#requests >= this.#parts.maxQueued)
      throw new EngineError('queue_full', `${this.#requests} texts are being spoken; try again later`);
    this.#requests++;
    try {
      yield* this.#events(request, signal);
    } finally {
      this.#requests--;
    }
  }

  async *#events(request: SpeechRequest, signal: AbortSignal): AsyncGenerator<SpeechEvent> {
    const { speed = 1, seed = randomSeed() } = request;
    const { voice, language } = this.#speaker(request);
    if (!(speed >= SPEED_RANGE[0] && speed <= SPEED_RANGE[1])) {
      throw new EngineError('invalid_request', `speed must be between ${SPEED_RANGE[0]} and ${SPEED_RANGE[1]}, got ${speed}`, {
        param: 'speed',
      });
    }
    if (!Number.isInteger(seed) || seed < SAMPLING.seed.min || seed > SAMPLING.seed.max)
      throw new EngineError('invalid_request', `seed must be an integer of 64 bits, got ${seed}`, { param: 'seed' });
    const pieces = await this.#parts.cutter.pieces(request.text, { speed, language }, signal);
    const { value: first } = await pieces.next();
    if (!first) throw new EngineError('invalid_request', 'the text holds nothing that can be spoken', { param: 'text' });
    const sampleRate = this.info.sampleRate!;
    yield { type: 'start', seed, sampleRate };
    const manner = { voice, language, speed, seed: noiseKey(seed) };
    const total = { samples: 0, frames: 0, ids: 0 };
    for await (const { text, samples, frames, ids } of this.#inOrder(first, pieces, manner, signal)) {
      total.samples += samples.length;
      total.frames += frames;
      total.ids += ids;
      yield { type: 'audio', text, samples };
    }
    yield { type: 'finish', inputTokens: total.ids, frames: total.frames, seconds: total.samples / sampleRate };
  }

  /** Yields the audio of the pieces in order. The first piece is synthesised alone, so that it is heard soon, the others up to AHEAD at once. */
  async *#inOrder(
    first: SpeechPiece,
    pieces: AsyncGenerator<SpeechPiece, undefined>,
    manner: Delivery,
    signal: AbortSignal,
  ): AsyncGenerator<Spoken> {
    const begun: Promise<Spoken[]>[] = [];
    let ids = 0;
    const begin = (piece: SpeechPiece): void => {
      const spoken = this.#speak(piece, ids, manner, signal);
      spoken.catch(() => undefined);
      ids += piece.ids.length;
      begun.push(spoken);
    };
    begin(first);
    // The next piece's phonemes are found while the device is busy.
    let next = pieces.next();
    next.catch(() => undefined);
    for (let spoken = begun.shift(); spoken; spoken = begun.shift()) {
      yield* await spoken;
      while (begun.length < AHEAD) {
        const { value: piece } = await next;
        if (!piece) break;
        next = pieces.next();
        next.catch(() => undefined);
        begin(piece);
      }
    }
  }

  /** Refuses new requests and waits until the device is idle. */
  async close(): Promise<void> {
    this.#closed = engineClosing();
    await this.#parts.runner.idle();
    await this.#parts.phonemizer.close();
  }

  /** Refuses new requests from now on; returns the error to throw. */
  #lose(error: EngineError): EngineError {
    this.#closed ??= error;
    this.#resolveLost(error.message);
    return error;
  }

  /**
   * Finds a voice by name, or makes a blend such as `a(0.5)+b(0.5)`, and the language that it speaks: the one that is asked for, else that of the largest share, else
   * American English. Throws EngineError('invalid_request') for an unknown voice or language.
   */
  #speaker({ voice: name, language: asked }: SpeechRequest): Speaker {
    const { voices } = this.#parts;
    const blend = voices.has(name) ? new Map([[name, 1]]) : (parseBlend(name) ?? new Map<string, number>());
    const parts = [...blend].flatMap(([part, share]) => (voices.has(part) ? [[voices.get(part)!, share] as const] : []));
    if (parts.length === 0 || parts.length < blend.size) {
      const known = [...voices.keys()].join(', ');
      throw new EngineError('invalid_request', `there is no voice '${name}'; voices: ${known}`, { param: 'voice' });
    }
    const [[loudest] = ['']] = [...blend].sort(([, a], [, b]) => b - a);
    const voice = parts.length === 1 ? parts[0]![0] : blendVoices(parts);
    const { languages } = this.#parts.phonemizer;
    const language = spokenAs(asked === undefined ? languageOfVoice(loudest) : speechLanguage(asked), languages);
    if (asked !== undefined && language === undefined) {
      const known = languages.map((tag) => `${tag} (${SPEECH_LANGUAGES[tag].name})`).join(', ');
      throw new EngineError('invalid_request', `'${asked.slice(0, 60)}' is no language that the model speaks; it speaks ${known}`, {
        param: 'language',
      });
    }
    return { voice, language: language ?? 'en-us' };
  }

  /** Synthesises a piece and the pause after it; `before` is the number of phonemes before it. A piece whose audio does not fit the workspace is split. */
  async #speak(piece: SpeechPiece, before: number, manner: Delivery, signal: AbortSignal): Promise<Spoken[]> {
    const { runner, cutter } = this.#parts;
    const { voice, speed, seed, language } = manner;
    const { ids, pause, silence } = piece;
    const text = shownText(piece);
    const { sampleRate = 0 } = this.info;
    if (ids.length === 0) return [{ text, samples: new Float32Array(Math.round((silence ?? 0) * sampleRate)), frames: 0, ids: 0 }];
    const { maxDuration, samplesPerF0Frame } = runner.config;
    // An upper bound of the samples before the piece, so that its noise does not depend on how long the pieces before turned out.
    const firstSample = (before * maxDuration * 2 * samplesPerF0Frame) >>> 0;
    const spoken = await runner.run({ ids, voice, speed, seed, firstSample }, signal).catch((error: unknown) => {
      throw error instanceof EngineError ? error : this.#lose(stepFailed('speech', error));
    });
    if (spoken) {
      const samples = joinable(spoken.samples, sampleRate, { pause, speed, silence });
      return [{ text, samples, frames: spoken.frames, ids: ids.length }];
    }
    const shorter = cutter.halve(piece, language);
    if (!shorter) {
      const message = `'${text}' takes more than ${MAX_PIECE_SECONDS} seconds at speed ${speed}`;
      throw new EngineError('invalid_request', message, { param: 'text' });
    }
    const parts: Spoken[] = [];
    let at = before;
    for await (const part of shorter) {
      parts.push(...(await this.#speak({ ...part, silence: at === before ? silence : undefined }, at, manner, signal)));
      at += part.ids.length;
    }
    return parts;
  }
}

interface Delivery extends Speaker, Manner {
  /** u32 key of the noise. */
  readonly seed: number;
}

interface Spoken {
  readonly text: string;
  readonly samples: Float32Array;
  readonly frames: number;
  readonly ids: number;
}

function randomSeed(): number {
  return Math.floor(Math.random() * 2 ** 32);
}

/** Reduces a seed to the 32-bit key of the noise generator; seeds below 2^32 are their own key. */
function noiseKey(seed: number): number {
  const high = Math.floor(seed / 2 ** 32);
  return (seed ^ Math.imul(high, 0x9e3779b1)) >>> 0;
}
