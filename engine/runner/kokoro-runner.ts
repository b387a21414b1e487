import { EngineError, LOAD_AS_F32, requestAborted } from '../errors.ts';
import type { Device } from '../gpu/device.ts';
import { allocate } from '../gpu/memory.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Readback } from '../gpu/staging.ts';
import { ownedTensors } from '../gpu/tensor.ts';
import type { KokoroConfig } from '../models/kokoro/config.ts';
import { batchFrames, writeFrames, writeText } from '../models/kokoro/batch.ts';
import type { FrameBatch, FrameSentence, TextBatch } from '../models/kokoro/batch.ts';
import {
  FRAME_STEP, createFrameWorkspace, createKokoroWorkspace, forwardDecoder, forwardHead, forwardSource, forwardStage, forwardText,
} from '../models/kokoro/model.ts'; // prettier-ignore
import type { FrameWorkspace, KokoroWeights, KokoroWorkspace } from '../models/kokoro/model.ts';
import { voiceStyle } from '../models/kokoro/voices.ts';
import type { Voice } from '../models/kokoro/voices.ts';
import { MAX_SENTENCES, projectStyle } from '../models/kokoro/weights.ts';
import type { StyleSizes } from '../models/kokoro/weights.ts';
import { FairQueue } from '../util/fair-queue.ts';
import { alignUp, indexBeyond } from '../util/math.ts';
import { warmUp } from './warm-up.ts';

/** One piece of an utterance to synthesise. */
export interface SpeechPiece {
  /** Phoneme ids, without the zeros at both ends. */
  readonly ids: readonly number[];
  readonly voice: Voice;
  /** Speed, which durations are divided by. */
  readonly speed: number;
  /** u32 key of the noise. */
  readonly seed: number;
  /** Sample of the utterance's noise at which the piece begins: at least the number of samples before it, so that no noise is repeated. */
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

/** A piece whose durations are known. */
interface Sentence extends FrameSentence {
  readonly waiting: Waiting;
}

/**
 * Phonemes per batch on software adapters. There two sentences at once take as long as one after the other, so a larger batch would only
 * make the first wait for the last; in one of this size few dispatches leave cores idle.
 */
const SOFTWARE_TOKENS = 192;
/** How many times longer than the piece whose turn it is other pieces of its batch may be, since it waits for them. */
const LONGER = 2;

/**
 * Phonemes of the warm-up, a word: this many rows take the kernels of a sentence, and on a software adapter every second of audio takes
 * seconds.
 */
const WARM_UP_IDS = 8;

/** Limits of a piece. */
export interface PieceLimits {
  /** Phonemes, with the zeros at both ends. */
  readonly maxTokens: number;
  /** Token frames. */
  readonly maxFrames: number;
}

/**
 * Runs pieces in batches on one workspace, which has room for the longest piece so far: at the limits it takes some 500 KB per frame of
 * published Kokoro, and most pieces are far shorter. A batch is a few submissions with waits in between, so that a chat step need not wait
 * for a whole sentence. Every kernel gives a piece the same bits as alone, and noise is keyed by the piece, so nothing that runs beside a
 * piece can change it.
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
  /** Pending readback of the last batch's samples; the next batch is already queued behind it on the device. */
  #delivering: Promise<void> | undefined;

  constructor(device: Device, config: KokoroConfig, weights: KokoroWeights, { maxTokens, maxFrames }: PieceLimits) {
    this.config = config;
    this.maxIds = maxTokens - 2;
    this.#device = device;
    this.#weights = weights;
    this.#maxFrames = maxFrames;
    this.#ws = createKokoroWorkspace(device, config, weights, maxTokens, Math.min(FRAME_STEP, maxFrames));
  }

  /** Bytes of the workspace at these limits. */
  static bytes(device: Device, config: KokoroConfig, sizes: StyleSizes, { maxTokens, maxFrames }: PieceLimits): number {
    return device.measure(() => void createKokoroWorkspace(device, config, sizes, maxTokens, maxFrames));
  }

  /** Compiles every kernel and synthesises a first piece, so that later ones compile nothing. */
  async warmUp(voice: Voice): Promise<void> {
    const frames = { index: new Uint32Array(8), seed: 0, firstSample: 0 };
    const piece = (rec: Recorder): void => {
      const text = this.#writeText([{ ids: [0, 0], voice, speed: 1, seed: 0, firstSample: 0 }]);
      forwardText(rec, this.#weights, this.config, this.#ws, text);
      const batch = writeFrames(this.#device, this.#ws.frameInput, text, 0, [frames]);
      this.#decode(rec, batch);
      this.config.generator.upsampleRates.forEach((_, stage) => forwardStage(rec, this.#weights, this.#ws, stage, batch));
      forwardHead(rec, this.#weights, this.#ws, batch);
    };
    // Row counts for which there are different kernels.
    const sizes = [MAX_SENTENCES, 3, 2].map(
      (sentences) => (rec: Recorder) => projectStyle(rec, this.#weights.decoderStyle, this.#ws.decoderStyles, sentences),
    );
    await warmUp(this.#device, { work: [piece], sizes, tryOut: () => this.#tryOut(voice) });
  }

  /** Runs two pieces at once, because some matrix products have kernels for one row. */
  async #tryOut(voice: Voice): Promise<string | undefined> {
    const piece = { ids: new Array<number>(WARM_UP_IDS).fill(0), voice, speed: 1, seed: 0, firstSample: 0 };
    const never = new AbortController().signal;
    const spoken = await Promise.all([piece, piece].map((one) => this.run(one, never)));
    const broken = spoken.some((one) => one && indexBeyond(one.samples) >= 0);
    return broken ? 'the first samples spoken are not finite' : undefined;
  }

  /**
   * Synthesises a piece; undefined when it is longer than the limits. Pieces take fair turns by how much of their utterances was spoken
   * before; other waiting pieces join the batch of the one whose turn it is.
   */
  run(piece: SpeechPiece, signal: AbortSignal): Promise<SpokenPiece | undefined> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ piece, signal, resolve, reject }, piece.firstSample);
      // Start after this tick, so that pieces that arrive together run together.
      this.#running ??= Promise.resolve().then(() => this.#runAll());
    });
  }

  /** Resolves when no piece is running. */
  async idle(): Promise<void> {
    await this.#running;
  }

  async #runAll(): Promise<void> {
    for (;;) {
      const batch = this.#takeBatch();
      if (batch.length > 0) await this.#run(batch).catch((error: unknown) => batch.forEach(({ reject }) => reject(error)));
      else if (this.#delivering) await this.#delivering;
      else break;
    }
    this.#running = undefined;
  }

  /**
   * Takes the next batch: the piece whose turn it is and those that may go with it, shortest first. No piece has more than LONGER times as
   * long ones beside it.
   */
  #takeBatch(): Waiting[] {
    const first = this.#waiting.take();
    if (!first) return [];
    const longest = LONGER * first.piece.ids.length;
    const most = this.#device.caps.family === 'cpu' ? Math.min(SOFTWARE_TOKENS, this.#ws.maxTokens) : this.#ws.maxTokens;
    const batch = [first];
    let tokens = first.piece.ids.length + 2;
    const companions = this.#waiting.takeWhere(({ piece: { ids } }) => {
      const fits = batch.length < MAX_SENTENCES && ids.length <= longest && tokens + ids.length + 2 <= most;
      if (fits) tokens += ids.length + 2;
      return fits;
    });
    batch.push(...companions);
    return batch.sort((a, b) => a.piece.ids.length - b.piece.ids.length);
  }

  async #run(batch: readonly Waiting[]): Promise<void> {
    const live = batch.filter((waiting) => !gone(waiting));
    if (live.length === 0) return;
    const pieces = live.map(({ piece }) => piece);
    const text = this.#writeText(pieces);
    const durations = await this.#durations(text);
    const sentences = pieces.map((piece, i) => {
      const { ids, seed, firstSample } = piece;
      const own = durations.subarray(text.first[i], text.first[i]! + ids.length + 2);
      return { index: frameIndex(own, piece.speed), seed, firstSample, waiting: live[i]! };
    });
    for (const { from, to } of groupsOf(sentences, this.#maxFrames)) {
      await this.#speak(text, from, sentences.slice(from, to));
    }
  }

  /** Synthesises consecutive sentences of a text batch. */
  async #speak(text: TextBatch, from: number, sentences: readonly Sentence[]): Promise<void> {
    const counts = sentences.map(({ index }) => index.length);
    const frames = batchFrames(counts);
    if (frames > this.#maxFrames) return sentences.forEach(({ waiting }) => waiting.resolve(undefined));
    const refused = frames > this.#ws.maxFrames ? await this.#grow(frames) : undefined;
    if (refused && sentences.length === 1) return sentences[0]!.waiting.reject(refused);
    if (refused) {
      // Each may fit by itself.
      for (const [i, sentence] of sentences.entries()) await this.#speak(text, from + i, [sentence]);
      return;
    }
    const batch = writeFrames(this.#device, this.#ws.frameInput, text, from, sentences);
    const waiting = sentences.map((sentence) => sentence.waiting);
    await this.#step('speech decoder', waiting, (rec) => this.#decode(rec, batch));
    const stages = this.config.generator.upsampleRates.length;
    for (let stage = 0; stage < stages - 1; stage++) {
      await this.#step(`speech stage ${stage}`, waiting, (rec) => forwardStage(rec, this.#weights, this.#ws, stage, batch));
    }
    if (waiting.filter((one) => !gone(one)).length === 0) return;
    const rec = this.#device.record('speech head');
    forwardStage(rec, this.#weights, this.#ws, stages - 1, batch);
    forwardHead(rec, this.#weights, this.#ws, batch);
    // Read the whole tensor, whatever the pieces' length: staging buffers have sizes of powers of two, and a new size would be a new
    // buffer.
    const readback = rec.readback(this.#ws.generator.audio);
    rec.submit();
    await this.#delivering;
    const delivering = this.#deliver(readback, batch, sentences).finally(() => {
      if (this.#delivering === delivering) this.#delivering = undefined;
    });
    this.#delivering = delivering;
  }

  async #deliver(readback: Readback, { first }: FrameBatch, sentences: readonly Sentence[]): Promise<void> {
    const samples = 2 * this.config.samplesPerF0Frame;
    try {
      const audio = new Float32Array(await readback.data());
      sentences.forEach(({ index, waiting }, i) => {
        const at = first[i]! * samples;
        waiting.resolve({ samples: audio.slice(at, at + index.length * samples), frames: index.length });
      });
    } catch (error) {
      sentences.forEach(({ waiting }) => waiting.reject(error));
    }
  }

  /**
   * Grows the frame workspace to `frames`; returns the error when the device has no memory, and then leaves as much room as before. The
   * text side stays; nothing is in flight once the last batch's samples have been read.
   */
  async #grow(frames: number): Promise<EngineError | undefined> {
    await this.#delivering;
    const { generator, curves, decoder, scratch, frameInput, frameGates, maxFrames } = this.#ws;
    // Freed before the larger one is allocated, so that both need not fit.
    if (maxFrames > 0) this.#device.destroy(...ownedTensors({ generator, curves, decoder, scratch, frameInput, frameGates }));
    this.#ws = { ...this.#ws, maxFrames: 0 };
    const refused = await this.#makeFrames(Math.min(alignUp(frames, FRAME_STEP), this.#maxFrames));
    if (refused && maxFrames > 0) await this.#makeFrames(maxFrames);
    return refused;
  }

  /** Allocates a frame workspace where there is none; returns the error when the device cannot. */
  async #makeFrames(maxFrames: number): Promise<EngineError | undefined> {
    let made: FrameWorkspace | undefined;
    const make = (): FrameWorkspace => (made = createFrameWorkspace(this.#device, this.config, maxFrames));
    try {
      this.#ws = { ...this.#ws, ...(await allocate(this.#device, 'room for a longer sentence', make)) };
      return undefined;
    } catch (error) {
      // The device may have allocated part of it.
      if (made) this.#device.destroy(...ownedTensors(made));
      if (error instanceof EngineError) return error;
      throw error;
    }
  }

  #writeText(pieces: readonly SpeechPiece[]): TextBatch {
    const sentences = pieces.map(({ ids, voice }) => ({
      ids: Uint32Array.from([0, ...ids, 0]),
      ...voiceStyle(voice, ids.length, this.config.styleDim),
    }));
    return writeText(this.#device, this.config, this.#ws, sentences);
  }

  /** Durations of the tokens, in frames at speed 1, not yet rounded. */
  async #durations(text: TextBatch): Promise<Float32Array> {
    const rec = this.#device.record('speech text');
    forwardText(rec, this.#weights, this.config, this.#ws, text);
    const readback = rec.readback(this.#ws.prosody.durations);
    rec.submit();
    const durations = new Float32Array(await readback.data());
    if (indexBeyond(durations) < 0) return durations;
    throw new EngineError('invalid_model', `the durations of ${text.tokens.spans.end} phonemes are not finite: the weights are damaged, or too large for f16`, { remedies: [LOAD_AS_F32] }); // prettier-ignore
  }

  #decode(rec: Recorder, batch: FrameBatch): void {
    forwardDecoder(rec, this.#weights, this.config, this.#ws, batch);
    forwardSource(rec, this.#weights, this.config, this.#ws, batch);
  }

  /** Does nothing when the waiter has gone. */
  async #step(label: string, waiting: readonly Waiting[], forward: (rec: Recorder) => void): Promise<void> {
    if (waiting.filter((one) => !gone(one)).length === 0) return;
    const rec = this.#device.record(label);
    forward(rec);
    await rec.submit().finished();
  }
}

/** Whether a waiter's request was aborted; rejects it if so. */
function gone({ signal, reject }: Waiting): boolean {
  if (signal.aborted) reject(requestAborted());
  return signal.aborted;
}

/** Groups consecutive sentences so that each group has at most `most` frames; a sentence with more is alone. */
function groupsOf(sentences: readonly Sentence[], most: number): { readonly from: number; readonly to: number }[] {
  const groups: { from: number; to: number }[] = [];
  let frames = Infinity;
  sentences.forEach(({ index }, i) => {
    frames += index.length + 1;
    if (frames <= most) groups.at(-1)!.to = i + 1;
    else {
      groups.push({ from: i, to: i + 1 });
      frames = index.length;
    }
  });
  return groups;
}

/** The token of each frame: durations divided by speed, rounded half to even as in PyTorch, at least one frame per token. */
function frameIndex(durations: Float32Array, speed: number): Uint32Array<ArrayBuffer> {
  const counts = Array.from(durations, (duration) => Math.max(1, roundHalfToEven(duration / speed)));
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
