/** Small tensors with known contents, for the cases of the self-test. */
import type { Device } from '../gpu/device.ts';
import type { Variant } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import { ownedTensors } from '../gpu/tensor.ts';
import type { Tensor, TypedArray } from '../gpu/tensor.ts';
import { ACTIVATIONS } from '../ops/activation.ts';
import type { Activation } from '../ops/activation.ts';
import { packBlocks, uploadGrid } from '../ops/pack-blocks.ts';
import { emptyLinear, packLinear } from '../ops/pack-linear.ts';
import { spanRows } from '../ops/row-spans.ts';
import type { Rows, SpanRows } from '../ops/row-spans.ts';
import { WeightFill } from '../ops/weight-fill.ts';
import type { LinearWeight } from '../ops/weight.ts';
import { f32ToF16Bits, fromF16, toF16 } from '../util/f16.ts';
import type { Range } from '../util/math.ts';
import { createRng } from '../util/rng.ts';
import type { Rng } from '../util/rng.ts';
import { setHalfScale, widenBlocks } from '../weights/block-format.ts';
import type { BlockFormat } from '../weights/block-format.ts';
import { BLOCK_FORMATS } from '../weights/block-types.ts';
import type { BlockType } from '../weights/block-types.ts';
import { isBlockType } from '../weights/storage.ts';
import type { WeightType } from '../weights/storage.ts';

/** A self-test case of one pipeline. */
export interface KernelCheck {
  record(rec: Recorder): void;
  readonly out: Tensor;
  /** Maps the values of `out` to those that are compared; absent = themselves. */
  readonly seen?: (values: TypedArray) => ArrayLike<number>;
  readonly expected: ArrayLike<number>;
  /** Largest allowed sum of squared differences over the sum of squares. */
  readonly tolerance: number;
}

/** Makes a check for a kernel variant; undefined where no small case takes it. */
export type CheckMaker = (variant: Variant, bench: Workbench) => KernelCheck | undefined;

/** Columns for which kernels that reduce rows take a workgroup of a size. */
export const REDUCED_COLUMNS: Readonly<Record<number, number>> = { 8: 200, 64: 64, 128: 200, 256: 1100 };

/** Makes the tensors of checks, and frees them when the checks are over. */
export class Workbench {
  readonly device: Device;
  readonly rng: Rng = createRng(1);
  readonly #made: Tensor[] = [];

  constructor(device: Device) {
    this.device = device;
  }

  floats(shape: readonly number[], scale = 1): { readonly values: Float32Array; readonly tensor: Tensor } {
    const values = Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => this.rng.normal() * scale);
    return { values, tensor: this.keep(this.device.upload('check', 'f32', shape, values)) };
  }

  words(values: readonly number[], shape: readonly number[] = [values.length]): Tensor {
    return this.keep(this.device.upload('check', 'u32', shape, Uint32Array.from(values)));
  }

  /** Sequences of these numbers of rows, one after the other unless their beginnings are given. */
  spans(counts: readonly number[], first = counts.map((_, s) => counts.slice(0, s).reduce((a, b) => a + b, 0))): SpanRows {
    const table = this.words(
      counts.flatMap((count, s) => [first[s]!, count, 0, 0]),
      [counts.length, 4],
    );
    return spanRows({ table, count: counts.length, longest: Math.max(...counts), end: first.at(-1)! + counts.at(-1)! }, 1);
  }

  /**
   * Rows of several sequences where a variant knows them, of one else; and where each sequence begins and ends. The last of several begins
   * at row `last`, as far behind the others as a product of as many rows must be.
   */
  runs(variant: Variant, counts: readonly number[], last?: number): { readonly rows: Rows; readonly ranges: readonly Range[] } {
    const first = counts.map((_, s) => counts.slice(0, s).reduce((a, b) => a + b, 0));
    const end = first.at(-1)! + counts.at(-1)!;
    if (variant.overrides?.['SPANS'] !== 1) return { rows: end, ranges: [{ from: 0, to: end }] };
    if (last !== undefined) first[first.length - 1] = last;
    return { rows: this.spans(counts, first), ranges: counts.map((count, s) => ({ from: first[s]!, to: first[s]! + count })) };
  }

  /** A tensor of NaN, so that values that are not written show. */
  out(shape: readonly number[]): Tensor {
    const count = shape.reduce((a, b) => a * b, 1);
    return this.keep(this.device.upload('check out', 'f32', shape, new Float32Array(count).fill(NaN)));
  }

  keep(tensor: Tensor): Tensor {
    this.#made.push(tensor);
    return tensor;
  }

  /** The grid of a block type that has one. */
  grid(type: BlockType): Tensor | undefined {
    const grid = uploadGrid(this.device, type);
    return grid && this.keep(grid);
  }

  /** Registers all tensors in an object, to be freed. */
  keepAll<T extends object>(made: T): T {
    this.#made.push(...ownedTensors(made));
    return made;
  }

  clear(): void {
    this.device.destroy(...this.#made.splice(0));
  }
}

/** Floats as a storage type stores them. */
export function storedAs(dtype: string | undefined, values: Float32Array): Float32Array {
  return dtype === 'f16' ? fromF16(toF16(values)) : values;
}

/** A matrix [n, k] stored as a variant reads it, and the values that it stands for; `fill` records what puts it on the device. */
export function checkedMatrix(
  bench: Workbench,
  { storage, texture }: { readonly storage: string | undefined; readonly texture: string | undefined },
  n: number,
  k: number,
): { weight: LinearWeight; values: Float32Array; fill(rec: Recorder): void } {
  const { device, rng } = bench;
  const dtype = storage as WeightType;
  const place = texture === undefined ? 'buffer' : 'texture';
  if (!isBlockType(dtype)) {
    const floats = Float32Array.from({ length: n * k }, () => rng.normal() / Math.sqrt(k));
    const weight = packLinear(device, 'check', floats, n, k, dtype, place);
    for (const part of weight.parts) bench.keep(part.weight);
    return { weight, values: storedAs(dtype, floats), fill: () => undefined };
  }
  const weight = emptyLinear(device, 'check', n, k, dtype, place);
  const bytes = someBlocks(rng, dtype, n * k);
  const values = new Float32Array(n * k);
  widenBlocks(BLOCK_FORMATS[dtype], bytes, values);
  const raw = bench.keep(device.upload('check', 'u32', [Math.ceil(bytes.length / 4)], wordsOf(bytes)));
  const flags = bench.words([0]);
  const grid = bench.grid(dtype);
  const part = weight.parts[0]!;
  bench.keep(part.weight);
  const fill = (rec: Recorder): void => {
    const filling = new WeightFill(device, weight);
    for (const { into, from, count } of filling.pieces(rec, 0, n)) {
      packBlocks(rec, { raw, grid, width: k, firstRow: from, rows: count, column: 0, columns: k, into, flags, tensor: 0 });
    }
    for (const window of filling.end(rec)) bench.keep(window);
  };
  return { weight, values, fill };
}

/** Bytes padded to whole words. */
export function wordsOf(bytes: Uint8Array): Uint32Array {
  const padded = new Uint8Array(Math.ceil(bytes.length / 4) * 4);
  padded.set(bytes);
  return new Uint32Array(padded.buffer);
}

const smallHalf = (rng: Rng): number => f32ToF16Bits(0.001 + rng.uniform() * 0.01);

/** Stored blocks with random codes and scales of a moderate size. */
export function someBlocks(rng: Rng, type: BlockType, count: number): Uint8Array {
  const { values, bytes, scales, places }: BlockFormat = BLOCK_FORMATS[type];
  const out = Uint8Array.from({ length: (count / values) * bytes }, () => rng.integer(256));
  const view = new DataView(out.buffer);
  for (let at = 0; at < out.length; at += bytes) {
    if (scales === 'exponent') out[at + places.scale] = 122 + rng.integer(4);
    // One scale for all rows.
    else if (scales === 'row' || scales === 'e4m3') view.setFloat32(at + places.scale, 0.01, true);
    else {
      setHalfScale(view, at, places, smallHalf(rng));
      if (places.offset !== undefined) view.setUint16(at + places.offset, smallHalf(rng), true);
    }
  }
  return out;
}

/** The activation that an override stands for. */
export function activationOf(number: number | undefined): Activation {
  return (Object.keys(ACTIVATIONS) as Activation[]).find((name) => ACTIVATIONS[name] === number) ?? 'none';
}
