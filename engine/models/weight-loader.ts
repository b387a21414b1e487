import { EngineError, LOAD_AS_F32 } from '../errors.ts';
import type { Device } from '../gpu/device.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { packLinear } from '../ops/linear.ts';
import type { LinearWeight, WeightType } from '../ops/linear.ts';
import { indexBeyond, product, sizeOf } from '../util/math.ts';
import type { Range } from '../util/math.ts';
import { shapeOf } from '../weights/checkpoint.ts';
import type { Checkpoint } from '../weights/checkpoint.ts';

/** The part of a matrix [rows, columns] that is wanted; absent = all. */
export interface Slice {
  readonly rows?: Range | undefined;
  readonly columns?: Range | undefined;
}

/** What still rounds down to f16's largest number, 65504. */
const LARGEST_F16 = 65519;

/** Bytes of a matrix that are read at a time when only some of its columns are kept. */
const BLOCK_BYTES = 16 * 2 ** 20;

/**
 * Hands a checkpoint's tensors to a model by name, checks every shape, counts what was taken, and fails on leftovers: a weight that
 * nobody reads is a misunderstanding of the checkpoint.
 */
export class WeightLoader {
  readonly device: Device;
  /** Storage of matrices. */
  readonly dtype: WeightType;
  readonly #checkpoint: Checkpoint;
  readonly #taken = new Set<string>();
  #parameters = 0;

  constructor(device: Device, checkpoint: Checkpoint, dtype: WeightType) {
    this.device = device;
    this.dtype = dtype;
    this.#checkpoint = checkpoint;
  }

  /** Number of values handed out so far. */
  get parameters(): number {
    return this.#parameters;
  }

  has(name: string): boolean {
    return this.#checkpoint.tensor(name) !== undefined;
  }

  /** Shape in the checkpoint; throws when the tensor is missing. */
  shape(name: string): readonly number[] {
    return shapeOf(this.#checkpoint, name);
  }

  /** Values of a tensor [shape] in f32 for host-side work (packing, folding norms), or of a slice of it. Other ranks' rows are not read. */
  async data(name: string, shape: readonly number[], slice: Slice = {}): Promise<Float32Array> {
    const found = this.shape(name);
    if (found.length !== shape.length || found.some((size, i) => size !== shape[i])) {
      throw new EngineError('invalid_model', `tensor ${name} has shape [${found.join(', ')}], expected [${shape.join(', ')}]`);
    }
    if (!this.#taken.has(name)) {
      this.#taken.add(name);
      this.#parameters += shape.reduce((a, b) => a * b, 1);
    }
    const [count = 1, ...rest] = shape;
    const width = product(rest);
    const { rows = { from: 0, to: count }, columns } = slice;
    if (!columns) return this.#checkpoint.read(name, { from: rows.from * width, to: rows.to * width });
    return this.#columns(name, width, rows, columns);
  }

  async #columns(name: string, width: number, rows: Range, columns: Range): Promise<Float32Array> {
    const kept = sizeOf(columns);
    const out = new Float32Array(sizeOf(rows) * kept);
    const step = Math.max(1, Math.floor(BLOCK_BYTES / 4 / width));
    for (let first = rows.from; first < rows.to; first += step) {
      const last = Math.min(rows.to, first + step);
      const block = await this.#checkpoint.read(name, { from: first * width, to: last * width });
      for (let row = first; row < last; row++) {
        const at = (row - first) * width;
        out.set(block.subarray(at + columns.from, at + columns.to), (row - rows.from) * kept);
      }
    }
    return out;
  }

  /** `values` of a matrix; throws EngineError('invalid_model') for those that its storage turns into infinity (or that folding made so). */
  storable(name: string, values: Float32Array, dtype: WeightType = this.dtype): Float32Array {
    const most = dtype === 'f16' ? LARGEST_F16 : Number.MAX_VALUE;
    const bad = indexBeyond(values, most);
    if (bad < 0) return values;
    if (dtype === 'f16' && Number.isFinite(values[bad])) {
      throw new EngineError('invalid_model', `tensor ${name} holds ${values[bad]}, which f16 cannot hold (at most ${LARGEST_F16})`, { remedies: [LOAD_AS_F32] }); // prettier-ignore
    }
    throw new EngineError('invalid_model', `tensor ${name} holds ${values[bad]}, expected finite values`);
  }

  /** A vector or small table as an f32 tensor. */
  async tensor(name: string, shape: readonly number[]): Promise<Tensor> {
    return this.device.upload(name, 'f32', shape, await this.data(name, shape));
  }

  /** A Linear.weight [outFeatures, inFeatures] or a slice of it, packed. */
  async linear(name: string, outFeatures: number, inFeatures: number, slice: Slice = {}): Promise<LinearWeight> {
    const { rows = { from: 0, to: outFeatures }, columns = { from: 0, to: inFeatures } } = slice;
    const data = this.storable(name, await this.data(name, [outFeatures, inFeatures], slice));
    return packLinear(this.device, name, data, sizeOf(rows), sizeOf(columns), this.dtype);
  }

  /** An embedding table [V, C] or a slice of its rows, packed; never below f16, because it is looked up and not multiplied. */
  async table(name: string, rows: number, columns: number, kept: Range = { from: 0, to: rows }): Promise<LinearWeight> {
    const dtype = this.dtype === 'f32' ? 'f32' : 'f16';
    const data = this.storable(name, await this.data(name, [rows, columns], { rows: kept }), dtype);
    return packLinear(this.device, name, data, sizeOf(kept), columns, dtype);
  }

  /** Several Linear.weights that read the same input (q, k, v; gate, up), or some of their rows, as one matrix, stacked by output. */
  async mergedLinear(
    label: string,
    parts: readonly { readonly name: string; readonly outFeatures: number; readonly rows?: Range }[],
    inFeatures: number,
  ): Promise<LinearWeight> {
    const total = parts.reduce((sum, { outFeatures, rows }) => sum + (rows ? sizeOf(rows) : outFeatures), 0);
    const merged = new Float32Array(total * inFeatures);
    let at = 0;
    for (const { name, outFeatures, rows } of parts) {
      const data = this.storable(name, await this.data(name, [outFeatures, inFeatures], { rows }));
      merged.set(data, at);
      at += data.length;
    }
    return packLinear(this.device, label, merged, total, inFeatures, this.dtype);
  }

  /** Several vectors, or some of their values, one after the other; names that are `undefined` give zeros (Whisper's keys have no bias). */
  async mergedVector(
    label: string,
    parts: readonly { readonly name: string | undefined; readonly size: number; readonly rows?: Range }[],
  ): Promise<Tensor> {
    const merged = new Float32Array(parts.reduce((sum, { size, rows }) => sum + (rows ? sizeOf(rows) : size), 0));
    let at = 0;
    for (const { name, size, rows } of parts) {
      if (name !== undefined) merged.set(await this.data(name, [size], { rows }), at);
      at += rows ? sizeOf(rows) : size;
    }
    return this.device.upload(label, 'f32', [merged.length], merged);
  }

  /** Says that a tensor is known and deliberately unused. */
  skip(name: string): void {
    this.#taken.add(name);
  }

  /** The same of every tensor whose name starts with `prefix`. */
  skipAll(prefix: string): void {
    for (const name of this.#checkpoint.names()) if (name.startsWith(prefix)) this.#taken.add(name);
  }

  /** Throws when the checkpoint holds tensors that nobody took. */
  finish(): void {
    const left = this.#checkpoint.names().filter((name) => !this.#taken.has(name));
    if (left.length > 0) {
      const shown = left.slice(0, 8).join(', ');
      throw new EngineError('invalid_model', `the checkpoint has ${left.length} tensors this architecture does not use: ${shown}`);
    }
  }
}
