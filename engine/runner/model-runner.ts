import type { BlockTable } from '../cache/block-table.ts';
import { assert } from '../errors.ts';
import type { Device } from '../gpu/device.ts';
import type { Plan, Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import type { ForwardInput } from '../models/forward-input.ts';
import type { Decoder, DecoderWorkspace } from '../models/registry.ts';
import { NO_SLOT } from '../ops/kv.ts';
import type { KVCache } from '../ops/kv.ts';
import { ATTENTION_SPLIT, attentionTileRows } from '../ops/paged-attention.ts';
import { FROM_DEVICE } from '../ops/sample.ts';
import type { Batch, BatchItem } from '../scheduler/batch.ts';
import { ceilDiv, nextPowerOfTwo } from '../util/math.ts';
import { LogitProcessors } from './logit-processors.ts';
import type { LogitStep, TokenLogprobs } from './logit-processors.ts';
import { Sampler } from './sampler.ts';

/** Workgroups of decode attention below which a sequence's positions are spread over several (SPEED.md). */
const BUSY_WORKGROUPS = { cpu: 8, generic: 256, tensor: 256 } as const;
const MAX_PARTIAL_BYTES = 64 * 2 ** 20;

export interface RunnerOptions {
  readonly maxRunning: number;
  readonly prefillChunk: number;
  /** Guesses verified in one step: rows that yield tokens beside one a sequence; they count as prompt tokens too. */
  readonly draftRows: number;
  /** Longest sequence in tokens. */
  readonly context: number;
}

/** A submitted step. */
export interface StepResult {
  /** The sampled tokens, one for each of batch.sampled; resolves when the step has completed. */
  tokens(): Promise<Uint32Array>;
  /** By row of batch.sampled, of the sequences that asked for them. */
  logprobs?(): Promise<readonly (TokenLogprobs | undefined)[]>;
}

/** How a step ends: largest logit, a draw, or outside the captured plan because a sequence asks for more. */
type Sampling = 'greedy' | 'sampled' | 'processed';

interface CapturedDecode {
  readonly plan: Plan;
  readonly logits: Tensor;
}

/** Host copies of what a step reads, uploaded with one write each. */
interface HostRows {
  readonly tokens: Uint32Array;
  readonly positions: Uint32Array;
  readonly slots: Uint32Array;
  readonly tiles: Uint32Array;
  readonly logitIndices: Uint32Array;
}

/**
 * Turns batches into submissions. Decode-only batches are padded to a power of two of rows and replay a captured plan: no JavaScript of
 * the model runs and no GPU object is made. Batches with prompt chunks are recorded as they come.
 */
export class ModelRunner {
  readonly #device: Device;
  readonly #decoder: Decoder;
  readonly #kv: KVCache;
  readonly #table: BlockTable;
  readonly #options: RunnerOptions;
  readonly #workspace: DecoderWorkspace;
  readonly #sampler: Sampler;
  readonly #processors: LogitProcessors;
  readonly #host: HostRows;
  readonly #tensors: Readonly<Record<keyof HostRows | 'ids' | 'blockTable', Tensor>>;
  readonly #partials: Tensor | undefined;
  readonly #plans = new Map<string, CapturedDecode>();
  readonly #tileRows: number;

  /** `workspace` holds maxRunning + prefillChunk rows, of which maxRunning + draftRows give logits. */
  constructor(device: Device, decoder: Decoder, workspace: DecoderWorkspace, kv: KVCache, table: BlockTable, options: RunnerOptions) {
    this.#device = device;
    this.#decoder = decoder;
    this.#kv = kv;
    this.#table = table;
    this.#options = options;
    const { maxRunning, prefillChunk, draftRows } = options;
    const rows = maxRunning + prefillChunk;
    const sampledRows = maxRunning + draftRows;
    const { heads, kvHeads, headDim, vocabulary } = decoder.shape;
    this.#tileRows = attentionTileRows(device.caps, heads, kvHeads, headDim);
    // Every sequence may end with a tile that is not full.
    const tiles = 2 * maxRunning + ceilDiv(prefillChunk, this.#tileRows);
    const make = (name: string, shape: readonly number[]): Tensor => device.tensor(name, 'u32', shape);
    const words = (count: number): Uint32Array => new Uint32Array(count);
    this.#host = { tokens: words(rows), positions: words(rows), slots: words(rows), tiles: words(tiles * 4), logitIndices: words(sampledRows) }; // prettier-ignore
    this.#tensors = {
      tokens: make('tokens', [rows]),
      ids: make('ids', [rows]),
      positions: make('positions', [rows]),
      slots: make('slots', [rows]),
      tiles: make('tiles', [tiles, 4]),
      logitIndices: make('logit rows', [sampledRows]),
      blockTable: make('block table', [table.rows, table.columns]),
    };
    this.#workspace = workspace;
    this.#sampler = new Sampler(device, vocabulary, maxRunning, sampledRows);
    this.#processors = new LogitProcessors(device, vocabulary, maxRunning, sampledRows);
    const partialRows = this.#buckets().map((bucket) => bucket * this.#maxParts(bucket));
    const largest = Math.max(0, ...partialRows.filter((_, i) => this.#maxParts(this.#buckets()[i]!) > 1));
    this.#partials = largest > 0 ? device.tensor('attention partials', 'f32', [largest * heads, headDim + 4]) : undefined;
  }

  /** Compiles every kernel and captures the decode plans. */
  async warmUp(): Promise<void> {
    const { rows, slots } = { rows: this.#host.slots.length, slots: this.#host.slots.fill(NO_SLOT) };
    this.#device.write(this.#tensors.slots, slots);
    this.#sampler.prepare([], this.#options.maxRunning);
    for (const bucket of this.#buckets().slice(0, 2)) {
      for (const sampling of ['greedy', 'sampled'] as const) {
        await this.#device.warmUp((rec) => void this.#recordDecode(rec, bucket, this.#maxParts(bucket), sampling));
        await this.#device.warmUp((rec) => void this.#recordDecode(rec, bucket, 1, sampling));
      }
    }
    const prefillRows = Math.min(rows, 2 * this.#tileRows);
    await this.#device.warmUp((rec) => void this.#record(rec, this.#input(prefillRows, 0, 1, undefined, true, 1), 'greedy'));
    for (const bucket of this.#buckets()) {
      for (let parts = 1; parts <= this.#maxParts(bucket); parts *= 2) {
        for (const sampling of ['greedy', 'sampled', 'processed'] as const) this.#plan(bucket, parts, sampling);
      }
    }
  }

  /** Submits one step; its tokens are read later. */
  run(batch: Batch): StepResult {
    for (const { row, from, pages } of this.#table.takeDirty()) {
      this.#device.write(this.#tensors.blockTable, pages, row * this.#table.columns + from);
    }
    const rec = this.#device.record('chat step');
    const count = batch.sampled.length;
    const step = this.#processors.prepare(batch.sampled);
    const logits = batch.prefills.length === 0 ? this.#decode(rec, batch, step) : this.#mixed(rec, batch, step);
    if (count === 0) {
      const { finished } = rec.submit();
      return { tokens: () => finished().then(() => new Uint32Array(0)) };
    }
    const reported = step && this.#processors.finish(rec, step, logits, this.#sampler.sampled, count);
    const readback = rec.readback(this.#sampler.sampled, count * 4);
    rec.submit();
    const tokens = async (): Promise<Uint32Array> => new Uint32Array(await readback.data());
    if (!step || !reported) return { tokens };
    return { tokens, logprobs: async () => this.#processors.parse(step, batch.sampled, await reported.data()) };
  }

  #decode(rec: Recorder, { decodes, sampled }: Batch, step: LogitStep | undefined): Tensor {
    const bucket = this.#buckets().find((size) => size >= decodes.length)!;
    this.#fill(decodes, [], bucket);
    const greedy = this.#sampler.prepare(sampled, bucket);
    const longest = decodes.reduce((most, { start }) => Math.max(most, start + 1), 0);
    const parts = Math.min(this.#maxParts(bucket), nextPowerOfTwo(ceilDiv(longest, ATTENTION_SPLIT)));
    const { plan, logits } = this.#plan(bucket, parts, step ? 'processed' : greedy ? 'greedy' : 'sampled');
    rec.replay(plan);
    if (step) this.#sampler.record(rec, this.#processors.process(rec, step, logits, bucket), bucket, greedy);
    return logits;
  }

  #mixed(rec: Recorder, { decodes, prefills, sampled }: Batch, step: LogitStep | undefined): Tensor {
    const rows = decodes.length + prefills.reduce((sum, { count }) => sum + count, 0);
    const tiles = this.#fill(decodes, prefills, rows);
    const greedy = this.#sampler.prepare(sampled, sampled.length);
    const input = this.#input(rows, decodes.length, tiles - decodes.length, undefined, true, sampled.length);
    if (!step) return this.#record(rec, input, greedy ? 'greedy' : 'sampled');
    const logits = this.#record(rec, input, 'processed');
    this.#sampler.record(rec, this.#processors.process(rec, step, logits, sampled.length), sampled.length, greedy);
    return logits;
  }

  /** Writes rows, tiles and logit rows of a batch, padded with rows that do nothing; returns the number of tiles. */
  #fill(decodes: readonly BatchItem[], prefills: readonly BatchItem[], rows: number): number {
    const { tokens, positions, slots, tiles, logitIndices } = this.#host;
    const { pageSize } = this.#kv;
    let row = 0;
    let tile = 0;
    let sampled = 0;
    const put = ({ sequence, start, count, samples, fromDevice, drafts }: BatchItem, tileRows: number): void => {
      for (let i = 0; i < count; i += tileRows) tiles.set([row + i, Math.min(tileRows, count - i), sequence.row, start + i], tile++ * 4);
      for (let position = start; position < start + count; position++) {
        // Guesses lie beyond the tokens that are known; what is known ends before the first.
        tokens[row] = fromDevice ? FROM_DEVICE + sequence.row : (sequence.tokens[position] ?? drafts[position - start - 1]!);
        positions[row] = position;
        slots[row] = sequence.pages[Math.floor(position / pageSize)]! * pageSize + (position % pageSize);
        row++;
      }
      for (let i = row - samples; i < row; i++) logitIndices[sampled++] = i;
    };
    for (const item of decodes) put(item, 1);
    for (const item of prefills) put(item, this.#tileRows);
    for (; row < rows; row++) {
      [tokens[row], positions[row], slots[row]] = [0, 0, NO_SLOT];
      tiles.fill(0, tile * 4, ++tile * 4);
    }
    assert(row === rows, `${row} rows in a batch of ${rows}`);
    this.#device.write(this.#tensors.tokens, tokens.subarray(0, rows));
    this.#device.write(this.#tensors.positions, positions.subarray(0, rows));
    this.#device.write(this.#tensors.slots, slots.subarray(0, rows));
    this.#device.write(this.#tensors.tiles, tiles.subarray(0, tile * 4));
    if (prefills.length > 0 && sampled > 0) this.#device.write(this.#tensors.logitIndices, logitIndices.subarray(0, sampled));
    return tile;
  }

  #plan(bucket: number, parts: number, sampling: Sampling): CapturedDecode {
    const key = `decode ${bucket}, parts ${parts}, ${sampling}`;
    let captured = this.#plans.get(key);
    if (!captured) {
      let logits: Tensor | undefined;
      const plan = this.#device.capture(key, (rec) => {
        logits = this.#recordDecode(rec, bucket, parts, sampling);
      });
      captured = { plan, logits: logits! };
      this.#plans.set(key, captured);
    }
    return captured;
  }

  #recordDecode(rec: Recorder, bucket: number, parts: number, sampling: Sampling): Tensor {
    const split = parts > 1 ? parts : undefined;
    return this.#record(rec, this.#input(bucket, bucket, 0, split, false, bucket), sampling);
  }

  /** Appends a forward pass and, unless the logits are processed first, sampling; returns the logits. */
  #record(rec: Recorder, input: ForwardInput, sampling: Sampling): Tensor {
    this.#sampler.resolve(rec, this.#tensors.tokens, input.tokens, input.rows);
    const logits = this.#workspace.forward(rec, input, this.#kv);
    if (input.logitRows > 0 && sampling !== 'processed') this.#sampler.record(rec, logits, input.logitRows, sampling === 'greedy');
    return logits;
  }

  #input(
    rows: number,
    decodeTiles: number,
    prefillTiles: number,
    parts: number | undefined,
    gather: boolean,
    logitRows: number,
  ): ForwardInput {
    // prettier-ignore
    const { ids, positions, slots, blockTable, tiles, logitIndices } = this.#tensors;
    return {
      rows,
      tokens: ids,
      positions,
      slots,
      blockTable,
      tiles,
      decodeTiles,
      prefillTiles,
      prefillTileRows: this.#tileRows,
      split: parts === undefined ? undefined : { partials: this.#partials!, positions, parts, rows },
      logitIndices: gather ? logitIndices : undefined,
      logitRows,
    };
  }

  /** Rows of decode batches: powers of two, and the maximum. */
  #buckets(): number[] {
    const { maxRunning } = this.#options;
    const buckets: number[] = [];
    for (let size = 1; size < maxRunning; size *= 2) buckets.push(size);
    return [...buckets, maxRunning];
  }

  /** Parts that decode attention of a bucket may use: 1 when its rows keep the device busy by themselves. */
  #maxParts(bucket: number): number {
    const { heads, kvHeads, headDim } = this.#decoder.shape;
    const { caps } = this.#device;
    const parts = nextPowerOfTwo(ceilDiv(this.#options.context, ATTENTION_SPLIT));
    const bytes = bucket * heads * parts * (headDim + 4) * 4;
    const busy = bucket * kvHeads >= BUSY_WORKGROUPS[caps.family];
    return busy || bytes > Math.min(MAX_PARTIAL_BYTES, caps.maxBindingBytes) ? 1 : parts;
  }
}
