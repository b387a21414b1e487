/** Runs Whisper: encodes windows into slots and steps the decoder over the tokens of any of them. */
import { EngineError, assert } from '../errors.ts';
import type { Device } from '../gpu/device.ts';
import { allocateNow } from '../gpu/memory.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Readback } from '../gpu/staging.ts';
import type { Tensor } from '../gpu/tensor.ts';
import {
  copyCacheRows, createDecoderCache, createDecoderSlots, createDecoderWorkspace, decode, decodeLayers, decoderSlotBytes, destroyDecoderSlots,
  growDecoderCache,
} from '../models/whisper/decoder.ts'; // prettier-ignore
import type { DecoderArgs, DecoderCache, DecoderWorkspace } from '../models/whisper/decoder.ts';
import { windowFrames } from '../models/whisper/config.ts';
import { createEncoderWorkspace, encodeAudio, encodeKeyValues } from '../models/whisper/encoder.ts';
import type { EncoderWorkspace } from '../models/whisper/encoder.ts';
import type { WhisperModel, WhisperShape } from '../models/whisper/load.ts';
import { NO_TOKEN, constrainedToken, tokenCandidates, tokenMask } from '../ops/constrained-token.ts';
import type { TokenRules } from '../ops/constrained-token.ts';
import { denseTileRows } from '../ops/dense-attention.ts';
import { resolveTokens } from '../ops/sample.ts';
import { melInput } from '../ops/spectral.ts';
import { indexBeyond } from '../util/math.ts';
import { warmUp } from './warm-up.ts';
import { WhisperAligner } from './whisper-aligner.ts';
import { MASKS, MAX_STEP_COPIES, MAX_STEP_ROWS, WhisperStepUpload } from './whisper-step.ts';
import type { MaskName, StepCopy, StepLayout, StepRow } from './whisper-step.ts';

/** A sampled row's token. */
export interface SampledToken {
  readonly token: number;
  /** Log-probability of the token among those allowed; for `probe` over the whole vocabulary. */
  readonly logprob: number;
}

/** Rows of the largest step of the warm-up. */
const WARM_UP_ROWS = 16;

/** Most windows that decode in parallel. */
const MAX_SLOTS = 16;
/** Bytes of the decoder's caches, unless the operator says how much memory there is. */
const DEFAULT_CACHE_BYTES = { software: 128 * 2 ** 20, gpu: 2 ** 30 } as const;
/** Share of the memory of all three tasks that transcription's caches may take. */
const CACHE_SHARE = 1 / 8;
/** Mel frames of the warm-up: enough for every kernel, a fraction of a window's work. */
const WARM_UP_FRAMES = 32;

export class WhisperRunner {
  readonly model: WhisperModel;
  /** Windows that decode in parallel, each with up to `beams` transcripts. */
  readonly slots: number;
  readonly beams: number;
  /** Whether the adapter computes on the host's cores. */
  readonly software: boolean;
  readonly #device: Device;
  readonly #encoder: EncoderWorkspace;
  readonly #decoder: DecoderWorkspace;
  readonly #cache: DecoderCache;
  readonly #rules: TokenRules;
  readonly #masks: Tensor;
  readonly #state: Tensor;
  readonly #lastTokens: Tensor;
  readonly #results: Tensor;
  readonly #candidates: Tensor;
  readonly #ids: Tensor;
  readonly #upload: WhisperStepUpload;
  /** Created when word timestamps are first asked for. */
  #aligner: ReturnType<typeof allocateNow<WhisperAligner>> | undefined;
  /** Encoder positions of the window in each slot. */
  readonly #positions: number[];

  constructor(device: Device, model: WhisperModel, { maxRunning, memory }: { maxRunning: number; memory?: number | undefined }) {
    const { config, tokens } = model;
    this.model = model;
    this.beams = tokens.beams;
    this.slots = slotsFor(device, model, maxRunning, memory);
    this.software = device.caps.software;
    this.#device = device;
    this.#encoder = createEncoderWorkspace(device, config, config.windows.frames);
    this.#decoder = createDecoderWorkspace(device, config, MAX_STEP_ROWS, sampledRows(this.slots, this.beams));
    const positions = config.windows.frames / 2;
    this.#positions = new Array<number>(this.slots).fill(positions);
    this.#cache = createDecoderCache(device, config, { slots: 1, most: this.slots, lanes: this.beams, copies: MAX_STEP_COPIES, positions });
    const { timestampBegin, eos, maxInitialTimestamp } = tokens;
    this.#rules = { vocabulary: config.vocabulary, timestampBegin, eos, maxInitialTimestamp };
    const masks = MASKS.map((name) => tokenMask(config.vocabulary, banned(name, model)));
    const words = masks[0]!.length;
    const all = new Uint32Array(masks.length * words);
    masks.forEach((mask, i) => all.set(mask, i * words));
    this.#masks = device.upload('token masks', 'u32', [masks.length, words], all);
    this.#state = device.tensor('timestamp state', 'u32', [this.slots * this.beams, 4]);
    this.#lastTokens = device.tensor('last tokens', 'u32', [this.slots * this.beams]);
    this.#results = device.tensor('sampled tokens', 'u32', [MAX_STEP_ROWS, 2]);
    // One more candidate than there are beams, since one of the best may be the end.
    this.#candidates = device.tensor('token candidates', 'u32', [MAX_STEP_ROWS, this.beams + 1, 2]);
    this.#ids = device.tensor('decoder ids', 'u32', [MAX_STEP_ROWS]);
    const { selfRows, crossRows } = this.#cache;
    const tileRows = denseTileRows(device.caps, config.channels / config.decoder.heads);
    const samples = this.#decoder.logits.shape[0]!;
    this.#upload = new WhisperStepUpload(device, { slots: this.slots, lanes: this.beams, selfRows, crossRows, tileRows, samples });
  }

  /** Device bytes of everything but the weights. */
  static bytes(device: Device, shape: WhisperShape, options: ConstructorParameters<typeof WhisperRunner>[2]): number {
    // The tensors' sizes depend on nothing else.
    const make = (): WhisperRunner => new WhisperRunner(device, shape as WhisperModel, options);
    let slots = 0;
    const withOne = device.measure(() => {
      slots = make().slots;
      void new WhisperAligner(device, shape);
    });
    return withOne + (slots - 1) * decoderSlotBytes(shape.config, shape.tokens.beams, shape.config.windows.frames / 2);
  }

  /** Compiles and runs every kernel once, and checks the logits of one token. */
  async warmUp(): Promise<void> {
    await warmUp(this.#device, { work: this.#work(), tryOut: () => this.#tryOut() });
  }

  /** Work of every kind: a short window, and steps of one row, of several, and of as many as several windows have. */
  async *#work(): AsyncGenerator<(rec: Recorder) => void> {
    const sample = { mask: 'text' } as const;
    const plans = (this.beams > 1 ? [1, 2, 1 + this.beams, WARM_UP_ROWS] : [1, 2, WARM_UP_ROWS]).map((rows) => {
      const wanted = this.beams > 1 && rows > 2 ? { ...sample, history: 0 } : sample;
      return Array.from({ length: rows }, (_, position) => ({ slot: 0, position, token: 0, sample: wanted }));
    });
    const aligner = new WhisperAligner(this.#device, this.model, 1);
    const align = (layout: StepLayout) => (rec: Recorder) => {
      this.#recordAlignment(rec, layout, aligner, { slot: 0, first: 0, row: 0 });
      aligner.align(rec, 1, 1);
    };
    const alone = [{ slot: 0, position: 0, token: 0 }];
    const window = (rec: Recorder): void => void this.#recordWindow(rec, 0, WARM_UP_FRAMES, 1);
    // Everything is compiled in parallel, the largest first; each kernel runs once its inputs have been written.
    this.#device.compile(window);
    for (const plan of plans.toReversed()) {
      const layout = this.#write(plan);
      this.#device.compile((rec) => this.#recordStep(rec, layout));
    }
    this.#device.compile(align(this.#write(alone)));
    yield window;
    for (const plan of plans) {
      const layout = this.#write(plan);
      yield (rec) => this.#recordStep(rec, layout);
      await this.step(plan).tokens();
    }
    yield align(this.#write(alone));
    aligner.destroy(this.#device);
  }

  async #tryOut(): Promise<string | undefined> {
    const layout = this.#write([{ slot: 0, position: 0, token: 0, sample: { mask: 'text' } }]);
    const rec = this.#device.record('first token');
    this.#recordStep(rec, layout);
    const logits = rec.readback(this.#decoder.logits, this.model.config.vocabulary * 4);
    rec.submit();
    return indexBeyond(new Float32Array(await logits.data())) < 0 ? undefined : "the first token's logits are not finite";
  }

  /**
   * Encodes one window (mono samples at the model's rate, at most a window long) and leaves its cross-attention keys and values in `slot`,
   * which must have room.
   */
  encode(slot: number, samples: Float32Array): void {
    const { config } = this.model;
    assert(slot < this.#cache.slots, `a window in slot ${slot}; there is room for ${this.#cache.slots}`);
    const frames = windowFrames(config, samples.length);
    this.#device.write(this.#encoder.samples, melInput(config.mel, samples, frames * config.mel.hop));
    const rec = this.#device.record('encode window');
    this.#positions[slot] = this.#recordWindow(rec, slot, frames, Math.ceil(samples.length / config.mel.hop));
    rec.submit();
  }

  /**
   * Submits one step. Its copies come first, and none of them may read what another writes; the rows of one lane must be in order of
   * position. Resolves to the sampled rows' tokens, in order of the rows: one token each or, with a history, the best ones in order.
   */
  step(rows: readonly StepRow[], copies: readonly StepCopy[] = []): { tokens(): Promise<readonly (readonly SampledToken[])[]> } {
    const layout = this.#write(rows, copies);
    const rec = this.#device.record('transcription step');
    this.#recordStep(rec, layout);
    const results = rec.readback(this.#results, Math.max(8, layout.samples * 8));
    const perRow = this.beams + 1;
    const candidates = layout.candidates ? rec.readback(this.#candidates, layout.samples * perRow * 8) : undefined;
    rec.submit();
    const wanted = rows.flatMap(({ sample }) => (sample ? [sample] : []));
    return {
      tokens: async () => {
        const [one, some] = await Promise.all([results.data(), candidates?.data()]);
        return wanted.map(({ history }, i) =>
          history === undefined ? readTokens(one, i, 1) : readTokens(some!, i * perRow, perRow).filter(({ token }) => token !== NO_TOKEN),
        );
      },
    };
  }

  /**
   * Encoder positions that a window's tokens attend to, from the token at `from` on: alignmentMatrix over the first `positions` of the
   * encoder, row by row. The tokens go through the decoder again, in the slot's first lane, whose keys and values are overwritten. Rejects
   * with EngineError('out_of_memory') when the device has no memory for it; the next call tries again.
   */
  align(slot: number, tokens: readonly number[], { from, positions }: { from: number; positions: number }): Promise<Float32Array> {
    const { made: aligner, given } = (this.#aligner ??= this.#makeAligner());
    let matrix: Readback | undefined;
    for (let first = 0; first < tokens.length; first += MAX_STEP_ROWS) {
      const rows = tokens.slice(first, first + MAX_STEP_ROWS).map((token, i): StepRow => ({ slot, position: first + i, token }));
      const layout = this.#write(rows);
      const rec = this.#device.record('times of words');
      const skipped = Math.min(Math.max(0, from - first), rows.length);
      this.#recordAlignment(rec, layout, aligner, { slot, first: skipped, row: Math.max(0, first - from) });
      if (first + rows.length === tokens.length) matrix = aligner.read(rec, tokens.length - from, positions);
      rec.submit();
    }
    return (async () => {
      // Read whatever comes of it, so that its buffer is used again.
      const [data] = await Promise.all([matrix!.data(), given]);
      return new Float32Array(data).subarray(0, (tokens.length - from) * positions);
    })();
  }

  #makeAligner(): ReturnType<typeof allocateNow<WhisperAligner>> {
    const { made, given } = allocateNow(this.#device, 'times of words', () => new WhisperAligner(this.#device, this.model));
    const kept = given.catch((error: unknown) => {
      this.#aligner = undefined;
      // The device may have given some of it.
      made.destroy(this.#device);
      throw error;
    });
    return { made, given: kept };
  }

  /**
   * Makes room for a window in `slot`: the caches grow to that, or to twice as many windows as there is room for. Few requests have more
   * than one window at once, and each takes tens of MiB. Returns whether there is room; without memory for more the caches stay as they are.
   */
  async makeRoom(slot: number): Promise<boolean> {
    const [device, cache] = [this.#device, this.#cache];
    if (slot < cache.slots) return true;
    const wanted = Math.min(this.slots, Math.max(slot + 1, 2 * cache.slots));
    const { made: more, given } = allocateNow(device, 'room for more windows', () => createDecoderSlots(device, cache, wanted));
    try {
      await given;
    } catch (error) {
      destroyDecoderSlots(device, more);
      if (!(error instanceof EngineError)) throw error;
      device.platform.log(`no more than ${cache.slots} windows side by side: ${error.message}`);
      return false;
    }
    growDecoderCache(device, cache, more);
    return true;
  }

  /** Encodes the uploaded samples into a slot; returns the number of encoder positions. */
  #recordWindow(rec: Recorder, slot: number, frames: number, heard: number): number {
    const { config, weights, logMel } = this.model;
    const args = { config, weights, logMel, workspace: this.#encoder, frames: Math.min(frames, config.windows.frames), heard };
    const rows = encodeAudio(rec, args);
    const { cross, crossRows } = this.#cache;
    encodeKeyValues(rec, args, { out: cross, first: slot * crossRows, rows });
    return rows;
  }

  #recordStep(rec: Recorder, layout: StepLayout): void {
    const { copies, samples, candidates } = layout;
    const { settings, copyFrom, copyTo } = this.#upload.tensors;
    if (copies > 0) copyCacheRows(rec, { cache: this.#cache, from: copyFrom, to: copyTo, rows: copies });
    const lastTokens = this.#lastTokens;
    decode(rec, this.#prepare(rec, layout));
    const { logits } = this.#decoder;
    const choice = { logits, rules: this.#rules, masks: this.#masks, settings, rows: samples };
    constrainedToken(rec, { ...choice, state: this.#state, lastTokens, results: this.#results });
    if (candidates) tokenCandidates(rec, { ...choice, candidates: this.#candidates });
  }

  /** Resolves the rows' tokens; returns the decoder's input. */
  #prepare(rec: Recorder, { rows, samples, crossTiles }: StepLayout): DecoderArgs {
    const { config, weights } = this.model;
    const { tensors } = this.#upload;
    const { tokens, positions, cacheRows, sampledRows } = tensors;
    const selfTiles = { tiles: tensors.selfTiles, count: rows, rows: 1 };
    const input = {
      positions, cacheRows, selfTiles, sampledRows, ids: this.#ids, rows, samples,
      crossTiles: { tiles: tensors.crossTiles, ...crossTiles },
    }; // prettier-ignore
    resolveTokens(rec, { tokens, lastTokens: this.#lastTokens, ids: this.#ids, rows });
    return { config, weights, workspace: this.#decoder, cache: this.#cache, input };
  }

  /** Runs rows through the decoder, keeping the attention of rows from `first` on, which are the window's rows from `row` on. */
  #recordAlignment(
    rec: Recorder,
    layout: StepLayout,
    aligner: WhisperAligner,
    { slot, first, row }: { slot: number; first: number; row: number },
  ): void {
    const keys = { first: slot * this.#cache.crossRows, count: this.#positions[slot]! };
    const rows = { first, count: layout.rows - first };
    decodeLayers(rec, this.#prepare(rec, layout), (layer) => {
      aligner.keep(rec, layer, { query: this.#decoder.query, cache: this.#cache.cross[layer]!, keys, rows, row });
    });
  }

  /** Uploads a step, with the encoder positions of the windows now in the slots. */
  #write(rows: readonly StepRow[], copies: readonly StepCopy[] = []): StepLayout {
    return this.#upload.write(rows, copies, this.#positions);
  }
}

/** Reads `count` pairs of a token and its log-probability. */
function readTokens(data: ArrayBuffer, first: number, count: number): SampledToken[] {
  const [ids, logprobs] = [new Uint32Array(data), new Float32Array(data)];
  return Array.from({ length: count }, (_, i) => ({ token: ids[2 * (first + i)]!, logprob: logprobs[2 * (first + i) + 1]! }));
}

/** Token ids that a mask forbids. Timestamps are never text: without them asked for they would only be dropped again. */
function banned(name: MaskName, { tokens, config }: WhisperModel): (token: number) => boolean {
  if (name === 'languages') {
    const languages = new Set(tokens.languages.values());
    return (token) => !languages.has(token);
  }
  const first = name.startsWith('first');
  const never = new Set([...tokens.suppress, ...(first ? tokens.beginSuppress : [])]);
  if (tokens.noTimestamps !== undefined) never.add(tokens.noTimestamps);
  const end = name === 'text' || name === 'firstText' ? tokens.timestampBegin : config.vocabulary;
  return (token) => never.has(token) || token >= end;
}

/** Most rows that a step samples: every window's beams, or its first token and the speech probability. */
function sampledRows(slots: number, beams: number): number {
  return Math.min(MAX_STEP_ROWS, Math.max(WARM_UP_ROWS, slots * (beams + 1)));
}

function slotsFor(device: Device, { config, tokens }: WhisperModel, maxRunning: number, memory: number | undefined): number {
  const bytes = decoderSlotBytes(config, tokens.beams, config.windows.frames / 2);
  const budget = memory === undefined ? DEFAULT_CACHE_BYTES[device.caps.software ? 'software' : 'gpu'] : memory * CACHE_SHARE;
  const bindable = Math.floor((device.caps.maxBindingBytes * config.decoder.layers) / bytes);
  if (bindable < 1) throw new EngineError('out_of_memory', `one window's keys and values exceed this adapter's bindings`);
  return Math.max(1, Math.min(MAX_SLOTS, maxRunning, bindable, Math.floor(budget / bytes)));
}
