import { EngineError, LOAD_AS_F32 } from '../errors.ts';
import type { Device } from '../gpu/device.ts';
import { allocate } from '../gpu/memory.ts';
import type { Recorder } from '../gpu/recorder.ts';
import { ownedTensors } from '../gpu/tensor.ts';
import type { KokoroConfig } from '../models/kokoro/config.ts';
import {
  FRAME_STEP, createFrameWorkspace, createKokoroWorkspace, forwardDecoder, forwardHead, forwardSource, forwardStage, forwardText,
} from '../models/kokoro/model.ts'; // prettier-ignore
import type { FrameWorkspace, KokoroWeights, KokoroWorkspace } from '../models/kokoro/model.ts';
import { voiceStyle } from '../models/kokoro/voices.ts';
import type { Voice } from '../models/kokoro/voices.ts';
import { FairQueue } from '../util/fair-queue.ts';
import { alignUp, indexBeyond } from '../util/math.ts';
import { warmUp } from './warm-up.ts';

/** One piece of text to speak. */
export interface SpeechPiece {
  /** Phoneme ids without the zeros at both ends. */
  readonly ids: readonly number[];
  readonly voice: Voice;
  /** Divides durations. */
  readonly speed: number;
  /** u32 key of the noise. */
  readonly seed: number;
  /** Samples of the utterance before this piece: the noise goes on where it stopped. */
  readonly firstSample: number;
}

export interface SpokenPiece {
  readonly samples: Float32Array;
  readonly frames: number;
}

/** A piece that waits for the workspace. */
interface Waiting {
  readonly piece: SpeechPiece;
  readonly signal: AbortSignal;
  readonly resolve: (spoken: SpokenPiece | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/** A word: as many rows take the kernels of a sentence, and on a software adapter every second of audio takes seconds. */
const WARM_UP_IDS = 8;

/** The longest piece. */
export interface PieceLimits {
  /** Phonemes and the zeros at both ends. */
  readonly maxTokens: number;
  /** Token frames. */
  readonly maxFrames: number;
}

/**
 * Runs pieces one at a time on one workspace, which has room for the longest piece that there was so far: one of the limits' length takes some 500 KB a
 * frame of published Kokoro, and most texts have none. A piece is a few submissions with waits between them, so that a chat step
 * need not wait for a whole sentence; the noise is keyed by sample number, so nothing that runs beside it can change a piece.
 */
export class KokoroRunner {
  readonly config: KokoroConfig;
  readonly maxIds: number;
  readonly #device: Device;
  readonly #weights: KokoroWeights;
  readonly #maxFrames: number;
  #ws: KokoroWorkspace;
  readonly #waiting = new FairQueue<Waiting>();
  #running: Promise<void> | undefined;

  constructor(device: Device, config: KokoroConfig, weights: KokoroWeights, { maxTokens, maxFrames }: PieceLimits) {
    this.config = config;
    this.maxIds = maxTokens - 2;
    this.#device = device;
    this.#weights = weights;
    this.#maxFrames = maxFrames;
    this.#ws = createKokoroWorkspace(device, config, maxTokens, Math.min(FRAME_STEP, maxFrames));
  }

  /** Bytes of the workspace at most. */
  static bytes(device: Device, config: KokoroConfig, { maxTokens, maxFrames }: PieceLimits): number {
    return device.measure(() => void createKokoroWorkspace(device, config, maxTokens, maxFrames));
  }

  /** Compiles every kernel and speaks a first piece, so that later ones compile nothing. */
  async warmUp(voice: Voice): Promise<void> {
    const [tokens, frames] = [4, 8];
    const noise = { seed: 0, firstSample: 0, scale: 1 };
    const piece = (rec: Recorder): void => {
      forwardText(rec, this.#weights, this.config, this.#ws, tokens);
      this.#decode(rec, frames, noise);
      this.config.generator.upsampleRates.forEach((_, stage) => forwardStage(rec, this.#weights, this.#ws, stage, frames));
      forwardHead(rec, this.#weights, this.#ws, frames);
    };
    await warmUp(this.#device, { work: [piece], tryOut: () => this.#tryOut(voice) });
  }

  async #tryOut(voice: Voice): Promise<string | undefined> {
    const ids = new Array<number>(WARM_UP_IDS).fill(0);
    const spoken = await this.run({ ids, voice, speed: 1, seed: 0, firstSample: 0 }, new AbortController().signal);
    return spoken && indexBeyond(spoken.samples) >= 0 ? 'the first samples spoken are not finite' : undefined;
  }

  /**
   * Audio of a piece; undefined when it is longer than the limits. Pieces take fair turns, by how much of their utterances was spoken before.
   */
  run(piece: SpeechPiece, signal: AbortSignal): Promise<SpokenPiece | undefined> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ piece, signal, resolve, reject }, piece.firstSample);
      this.#running ??= this.#runAll();
    });
  }

  /** Resolves when no piece is running. */
  async idle(): Promise<void> {
    await this.#running;
  }

  async #runAll(): Promise<void> {
    for (let next = this.#waiting.take(); next; next = this.#waiting.take()) {
      const { piece, signal, resolve, reject } = next;
      await this.#run(piece, signal).then(resolve, reject);
    }
    this.#running = undefined;
  }

  async #run({ ids, voice, speed, seed, firstSample }: SpeechPiece, signal: AbortSignal): Promise<SpokenPiece | undefined> {
    if (ids.length > this.maxIds) return undefined;
    const tokens = ids.length + 2;
    const index = frameIndex(await this.#durations(ids, voice, signal), tokens, speed);
    const frames = index.length;
    if (frames > this.#maxFrames) return undefined;
    if (frames > this.#ws.maxFrames) await this.#grow(frames);
    this.#device.write(this.#ws.index, index);
    await this.#step('speech decoder', signal, (rec) => this.#decode(rec, frames, { seed, firstSample, scale: 1 }));
    const stages = this.config.generator.upsampleRates.length;
    for (let stage = 0; stage < stages - 1; stage++) {
      await this.#step(`speech stage ${stage}`, signal, (rec) => forwardStage(rec, this.#weights, this.#ws, stage, frames));
    }
    throwIfAborted(signal);
    const rec = this.#device.record('speech head');
    forwardStage(rec, this.#weights, this.#ws, stages - 1, frames);
    const samples = forwardHead(rec, this.#weights, this.#ws, frames);
    // All of the tensor, whatever the piece's length: staging buffers come in powers of two, and a new size would be a new buffer.
    const readback = rec.readback(this.#ws.generator.audio);
    rec.submit();
    return { samples: new Float32Array(await readback.data()).slice(0, samples), frames };
  }

  /** Makes room for `frames`. What was computed a token stays; nothing is in flight, because pieces run one at a time. */
  async #grow(frames: number): Promise<void> {
    const make = (maxFrames: number): Promise<FrameWorkspace> =>
      allocate(this.#device, 'room for a longer sentence', () => createFrameWorkspace(this.#device, this.config, maxFrames));
    const { generator, curves, decoder, scratch, index, frameGates, maxFrames } = this.#ws;
    // Before the larger one is made, so that both need not fit.
    this.#device.destroy(...ownedTensors({ generator, curves, decoder, scratch, index, frameGates }));
    const larger = await make(Math.min(alignUp(frames, FRAME_STEP), this.#maxFrames)).catch((error: unknown) => error as EngineError);
    this.#ws = { ...this.#ws, ...(larger instanceof EngineError ? await make(maxFrames) : larger) };
    if (larger instanceof EngineError) throw larger;
  }

  /** Frames of each token at speed 1, not yet rounded. */
  async #durations(ids: readonly number[], voice: Voice, signal: AbortSignal): Promise<Float32Array> {
    throwIfAborted(signal);
    const { decoder, prosody } = voiceStyle(voice, ids.length, this.config.styleDim);
    this.#device.write(this.#ws.ids, Uint32Array.from([0, ...ids, 0]));
    this.#device.write(this.#weights.decoderStyle.input, decoder);
    this.#device.write(this.#weights.prosodyStyle.input, prosody);
    const rec = this.#device.record('speech text');
    forwardText(rec, this.#weights, this.config, this.#ws, ids.length + 2);
    const readback = rec.readback(this.#ws.prosody.durations);
    rec.submit();
    const durations = new Float32Array(await readback.data());
    if (indexBeyond(durations) < 0) return durations;
    throw new EngineError('invalid_model', `the durations of ${ids.length} phonemes are not finite: the weights are damaged, or too large for f16`, { remedies: [LOAD_AS_F32] }); // prettier-ignore
  }

  #decode(rec: Recorder, frames: number, noise: Parameters<typeof forwardSource>[5]): void {
    forwardDecoder(rec, this.#weights, this.config, this.#ws, frames);
    forwardSource(rec, this.#weights, this.config, this.#ws, frames, noise);
  }

  async #step(label: string, signal: AbortSignal, forward: (rec: Recorder) => void): Promise<void> {
    throwIfAborted(signal);
    const rec = this.#device.record(label);
    forward(rec);
    await rec.submit().finished();
  }
}

function throwIfAborted(signal: AbortSignal): void {
  if (signal.aborted) throw new EngineError('aborted', 'the request was aborted');
}

/** The token of each frame: durations over speed, rounded half to even as PyTorch does, at least one frame a token. */
function frameIndex(durations: Float32Array, tokens: number, speed: number): Uint32Array<ArrayBuffer> {
  const counts = Array.from({ length: tokens }, (_, token) => Math.max(1, roundHalfToEven(durations[token]! / speed)));
  const index = new Uint32Array(counts.reduce((a, b) => a + b, 0));
  let at = 0;
  counts.forEach((count, token) => {
    index.fill(token, at, at + count);
    at += count;
  });
  return index;
}

function roundHalfToEven(value: number): number {
  const rounded = Math.round(value);
  return rounded - value === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded;
}
