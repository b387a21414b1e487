import type { WeightStorage } from '../config.ts';
import { EngineError, LOAD_AS_F32 } from '../errors.ts';
import type { Device } from '../gpu/device.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { transposedTaps, tapsOf } from '../ops/conv.ts';
import type { ConvShape } from '../ops/conv.ts';
import { emptyLinear, stackLinear } from '../ops/pack-linear.ts';
import type { LoraWeight } from '../ops/lora.ts';
import { WeightFill } from '../ops/weight-fill.ts';
import type { LinearWeight } from '../ops/weight.ts';
import type { WordPlace } from '../ops/weight-place.ts';
import { indexBeyond, product, sizeOf } from '../util/math.ts';
import type { Range } from '../util/math.ts';
import { shapeOf } from '../weights/checkpoint.ts';
import type { Checkpoint } from '../weights/checkpoint.ts';
import type { BlockType } from '../weights/block-types.ts';
import { keptBlocks, packedType } from '../weights/storage.ts';
import type { FloatType, MatrixRequest, WeightType } from '../weights/storage.ts';
import type { LoraInputs, LoraPart, LoraSet } from './lora-set.ts';
import { WeightStream, chunksOf } from './weight-stream.ts';
import type { BadTensor, Values } from './weight-stream.ts';

/** The part of a matrix [rows, columns] to load; an absent range = all. */
export interface Slice extends Pick<MatrixRequest, 'place'> {
  readonly rows?: Range | undefined;
  readonly columns?: Range | undefined;
}

/** A Linear.weight [outFeatures, inFeatures] within a merged matrix, or some of its rows. */
export interface MatrixPart {
  readonly name: string;
  readonly outFeatures: number;
  readonly rows?: Range | undefined;
  /** Shape of the tensor where it stacks several matrices; default [outFeatures, inFeatures]. */
  readonly shape?: readonly number[] | undefined;
}

/** Where a convolution's weights lie on the device, and values to use instead of the tensor's. */
export interface TapRequest {
  readonly place?: WordPlace;
  readonly values?: Values | undefined;
}

/** Largest integer that rounds to f16's largest number, 65504. */
const LARGEST_F16 = 65519;

/** What the loaders of one checkpoint have loaded together. */
interface Tally {
  /** Number of values by tensor that was taken; 0 for one that is deliberately unused. */
  readonly taken: Map<string, number>;
  /** Device bytes of all matrices so far, by storage type. */
  readonly bytes: Map<WeightType, number>;
  readonly stream: WeightStream;
  /** LoRA adapters that go with the checkpoint; undefined = none. */
  readonly loras: LoraSet | undefined;
}

/**
 * Loads a checkpoint's tensors by name, checks every shape, counts what was taken, and fails on leftovers: a tensor that nobody reads means
 * that the checkpoint is misunderstood.
 */
export class WeightLoader {
  readonly device: Device;
  readonly storage: WeightStorage;
  /** The checkpoint that tensors are read from. */
  readonly checkpoint: Checkpoint;
  readonly #tally: Tally;

  constructor(device: Device, checkpoint: Checkpoint, storage: WeightStorage, tally: Partial<Tally> = {}) {
    this.device = device;
    this.storage = storage;
    this.checkpoint = checkpoint;
    const { taken = new Map(), bytes = new Map(), stream = new WeightStream(device, checkpoint), loras } = tally;
    this.#tally = { taken, bytes, stream, loras };
  }

  /** A loader of the same checkpoint that stores matrices as `storage` says. */
  as(storage: WeightStorage): WeightLoader {
    return new WeightLoader(this.device, this.checkpoint, storage, this.#tally);
  }

  /** A loader of the same checkpoint whose matrices no LoRA adapter changes. */
  withoutLoras(): WeightLoader {
    return new WeightLoader(this.device, this.checkpoint, this.storage, { ...this.#tally, loras: undefined });
  }

  /**
   * A loader of another view of the checkpoint, such as a part of it or other names; the bytes that it loads count here too. LoRA adapters
   * go with it only where nothing but names differ: `storedName` gives those of this checkpoint.
   */
  over(checkpoint: Checkpoint, storedName?: (name: string) => string): WeightLoader {
    const { bytes, loras } = this.#tally;
    return new WeightLoader(this.device, checkpoint, this.storage, { bytes, loras: storedName && loras?.under(storedName) });
  }

  /** Number of values handed out so far. */
  get parameters(): number {
    return [...this.#tally.taken.values()].reduce((sum, size) => sum + size, 0);
  }

  /** Device bytes of all matrices so far, by storage type. */
  get matrices(): ReadonlyMap<WeightType, number> {
    return this.#tally.bytes;
  }

  has(name: string): boolean {
    return this.checkpoint.tensor(name) !== undefined;
  }

  /** Shape of a tensor in the checkpoint; throws when it is missing. */
  shape(name: string): readonly number[] {
    return shapeOf(this.checkpoint, name);
  }

  /** Marks a tensor as taken; throws EngineError('invalid_model') unless it has this shape. */
  #take(name: string, shape: readonly number[]): void {
    const found = this.shape(name);
    if (found.length !== shape.length || found.some((size, i) => size !== shape[i])) {
      throw new EngineError('invalid_model', `tensor ${name} has shape [${found.join(', ')}], expected [${shape.join(', ')}]`);
    }
    this.#tally.taken.set(name, product(shape));
  }

  /** Reads a tensor of this shape, or a slice of it, as f32 values for work on the host. Only the slice's rows are read. */
  async data(name: string, shape: readonly number[], slice: Slice = {}): Promise<Float32Array> {
    this.#take(name, shape);
    const [count = 1, ...rest] = shape;
    const width = product(rest);
    const { rows = { from: 0, to: count }, columns } = slice;
    if (!columns) return this.checkpoint.read(name, { from: rows.from * width, to: rows.to * width });
    return this.#columns(name, width, rows, columns);
  }

  async #columns(name: string, width: number, rows: Range, columns: Range): Promise<Float32Array> {
    const kept = sizeOf(columns);
    const out = new Float32Array(sizeOf(rows) * kept);
    for (const { from, to } of chunksOf(rows, width)) {
      const block = await this.checkpoint.read(name, { from: from * width, to: to * width });
      for (let row = from; row < to; row++) {
        const at = (row - from) * width;
        out.set(block.subarray(at + columns.from, at + columns.to), (row - rows.from) * kept);
      }
    }
    return out;
  }

  /** Returns `values`; throws EngineError('invalid_model') if any is not finite or, as `dtype`, would become infinite. */
  storable(name: string, values: Float32Array, dtype: FloatType = this.storage.float): Float32Array {
    const most = dtype === 'f16' ? LARGEST_F16 : Number.MAX_VALUE;
    const bad = indexBeyond(values, most);
    if (bad < 0) return values;
    if (dtype === 'f16' && Number.isFinite(values[bad])) {
      throw new EngineError('invalid_model', `tensor ${name} holds ${values[bad]}, which f16 cannot hold (at most ${LARGEST_F16})`, { remedies: [LOAD_AS_F32] }); // prettier-ignore
    }
    throw new EngineError('invalid_model', `tensor ${name} holds ${values[bad]}, expected finite values`);
  }

  /** Loads a vector or small table as an f32 tensor of (value + offset) * scale. */
  async tensor(name: string, shape: readonly number[], offset = 0, scale = 1): Promise<Tensor> {
    return this.device.upload(name, 'f32', shape, shifted(await this.data(name, shape), offset, scale));
  }

  /** Loads a Linear.weight [outFeatures, inFeatures], or a slice of it, packed for the kernels. */
  async linear(name: string, outFeatures: number, inFeatures: number, { rows, ...request }: Slice = {}): Promise<LinearWeight> {
    return this.#matrix(name, [{ name, outFeatures, rows }], inFeatures, request);
  }

  /** Loads an embedding table [rows, columns], or its rows `kept`, packed for the kernels. */
  async table(name: string, rows: number, columns: number, kept?: Range): Promise<LinearWeight> {
    return this.#matrix(name, [{ name, outFeatures: rows, rows: kept }], columns, { isTable: true });
  }

  /**
   * Loads several Linear.weights that read the same input (q, k, v; gate, up), or parts of them, as one matrix, stacked by output features.
   */
  async mergedLinear(
    label: string,
    parts: readonly MatrixPart[],
    inFeatures: number,
    request: Pick<MatrixRequest, 'columns' | 'place'> = {},
  ): Promise<LinearWeight> {
    return this.#matrix(label, parts, inFeatures, request);
  }

  /**
   * Packs a matrix [outFeatures, inFeatures] from rows computed on the host: each block begins at output feature `first`, with zeros in
   * between. `name` is the tensor that an error message names.
   */
  async computed(
    label: string,
    blocks: readonly { readonly name: string; readonly first: number; readonly rows: Float32Array }[],
    outFeatures: number,
    inFeatures: number,
  ): Promise<LinearWeight> {
    const weight = emptyLinear(this.device, label, outFeatures, inFeatures, packedType(this.storage, inFeatures));
    const columns = { from: 0, to: inFeatures };
    const fill = new WeightFill(this.device, weight);
    for (const { name, first, rows } of blocks) {
      const values: Values = async ({ from, to }) => this.#made(name, rows.subarray(from, to), weight);
      await this.#tally.stream.rows(
        weight,
        fill,
        first,
        { name, rows: { from: 0, to: rows.length / inFeatures }, values },
        inFeatures,
        columns,
      );
    }
    fill.finish();
    return this.#counted(weight);
  }

  /** Loads a Conv1d.weight [outChannels, inChannels, kernel]; with `values` they replace those of the tensor `name`. */
  async conv(label: string, name: string, shape: ConvShape, { place = 'buffer', values }: TapRequest = {}): Promise<LinearWeight> {
    if (!values) this.#take(name, [shape.outChannels, shape.inChannels, shape.kernel]);
    const { float: dtype } = this.storage;
    return this.#counted(await this.#tally.stream.taps(label, name, tapsOf(shape), { dtype, place, values }));
  }

  /** Loads a ConvTranspose1d.weight [inChannels, outChannels, kernel]; with `values` they replace those of the tensor `name`. */
  async convTranspose(
    label: string,
    name: string,
    shape: ConvShape & { readonly stride: number },
    { place = 'buffer', values }: TapRequest = {},
  ): Promise<LinearWeight> {
    if (!values) this.#take(name, [shape.inChannels, shape.outChannels, shape.kernel]);
    const { float: dtype } = this.storage;
    return this.#counted(await this.#tally.stream.taps(label, name, transposedTaps(shape), { dtype, place, values }));
  }

  /** What LoRA adapters add to a matrix that is stacked from parts with the same input; undefined where they add nothing. */
  async lora(label: string, parts: readonly LoraPart[], inputs: LoraInputs): Promise<LoraWeight | undefined> {
    return this.#tally.loras?.load(this.device, label, parts, inputs);
  }

  /** Checks computed values at once: once on the device, no tensor could name the bad one. */
  #made(name: string, values: Float32Array, { parts }: LinearWeight): Float32Array {
    return this.storable(name, values, parts[0]!.dtype === 'f32' ? 'f32' : 'f16');
  }

  #counted(weight: LinearWeight): LinearWeight {
    const { bytes } = this.#tally;
    for (const { dtype, weight: tensor } of weight.parts) bytes.set(dtype, (bytes.get(dtype) ?? 0) + tensor.byteLength);
    return weight;
  }

  /** Consecutive parts with the same storage type become one part of the weight. */
  async #matrix(label: string, parts: readonly MatrixPart[], inFeatures: number, request: MatrixRequest): Promise<LinearWeight> {
    const runs: { readonly blocks: BlockType | undefined; readonly parts: MatrixPart[] }[] = [];
    for (const part of parts) {
      this.#take(part.name, part.shape ?? [part.outFeatures, inFeatures]);
      const blocks = keptBlocks(this.checkpoint.tensor(part.name)!, this.storage, request);
      const last = runs.at(-1);
      if (last && last.blocks === blocks) last.parts.push(part);
      else runs.push({ blocks, parts: [part] });
    }
    const weights: LinearWeight[] = [];
    for (const { blocks, parts } of runs) weights.push(await this.#streamed(label, parts, inFeatures, blocks, request));
    return this.#counted(stackLinear(weights));
  }

  /** Streams rows in the file's quantised blocks if `blocks` is given, else as values, which are stored as floats or quantised. */
  #streamed(
    label: string,
    parts: readonly MatrixPart[],
    inFeatures: number,
    blocks: BlockType | undefined,
    { columns = { from: 0, to: inFeatures }, isTable, place }: MatrixRequest,
  ): Promise<LinearWeight> {
    const rows = parts.map(({ name, outFeatures, rows = { from: 0, to: outFeatures } }) => ({ name, rows }));
    const { stream } = this.#tally;
    if (blocks) return stream.blocks(label, rows, inFeatures, columns, blocks);
    return stream.matrix(label, rows, inFeatures, columns, packedType(this.storage, sizeOf(columns), isTable), place);
  }

  /**
   * Concatenates vectors, or ranges of them, with `offset` added to every value, as one f32 tensor. A name that is undefined gives zeros
   * (Whisper's keys have no bias).
   */
  async mergedVector(
    label: string,
    parts: readonly { readonly name: string | undefined; readonly size: number; readonly rows?: Range }[],
    offset = 0,
  ): Promise<Tensor> {
    const merged = new Float32Array(parts.reduce((sum, { size, rows }) => sum + (rows ? sizeOf(rows) : size), 0));
    let at = 0;
    for (const { name, size, rows } of parts) {
      if (name !== undefined) merged.set(await this.data(name, [size], { rows }), at);
      at += rows ? sizeOf(rows) : size;
    }
    return this.device.upload(label, 'f32', [merged.length], shifted(merged, offset));
  }

  /** Marks a tensor as known and deliberately unused. */
  skip(name: string): void {
    if (!this.#tally.taken.has(name)) this.#tally.taken.set(name, 0);
  }

  /** Marks every tensor whose name starts with `prefix` as deliberately unused. */
  skipAll(prefix: string): void {
    for (const name of this.checkpoint.names()) if (name.startsWith(prefix)) this.skip(name);
  }

  /**
   * Ends loading; throws EngineError('invalid_model') when the checkpoint holds tensors that nobody took, or values that could not be
   * stored.
   */
  async finish(): Promise<void> {
    const left = this.checkpoint.names().filter((name) => !this.#tally.taken.has(name));
    if (left.length > 0) {
      const shown = left.slice(0, 8).join(', ');
      throw new EngineError('invalid_model', `the checkpoint has ${left.length} tensors this architecture does not use: ${shown}`);
    }
    for (const bad of await this.#tally.stream.bad()) await this.#explain(bad);
  }

  /**
   * Throws for the first bad value of a tensor; the device only reported the tensor. A report about quantised blocks may be false: it is
   * about their scales, and the values need not be bad.
   */
  async #explain({ name, limit }: BadTensor): Promise<void> {
    const all = { from: 0, to: product(this.shape(name)) };
    for (const elements of chunksOf(all, 1)) this.storable(name, await this.checkpoint.read(name, elements), limit);
  }
}

function shifted(values: Float32Array, offset: number, scale = 1): Float32Array {
  return offset === 0 && scale === 1 ? values : values.map((value) => Math.fround(value + offset) * scale);
}
