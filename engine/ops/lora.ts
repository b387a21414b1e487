/** Products of low rank that LoRA adapters (Hu et al. 2021, https://arxiv.org/abs/2106.09685) add to those of a model's matrices. */
import { assert } from '../errors.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Device } from '../gpu/device.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { ceilDiv } from '../util/math.ts';
import { reduceFragment, reduceVariant } from './reduce.ts';

export const LORA_SHRINK = defineKernel({
  file: 'lora/lora_shrink.wgsl',
  fragments: (v) => ['lib/grid.wgsl', reduceFragment(v)],
  bindings: { x: 'read', loras: 'read', table: 'read', a: 'read', out: 'write' },
  params: { rows: 'u32', segments: 'u32', ranks: 'u32', k4: 'u32', out_stride4: 'u32' },
  overrides: { WG: 'u32' },
});

export const LORA_EXPAND = defineKernel({
  file: 'lora/lora_expand.wgsl',
  bindings: { h: 'read', loras: 'read', table: 'read', b: 'read', out: 'update' },
  params: { segments: 'u32', ranks: 'u32', end0: 'u32', end1: 'u32', n4: 'u32', h_stride4: 'u32', out_stride4: 'u32' },
  overrides: { WG: 'u32' },
});

/** Invocations per workgroup of LORA_EXPAND: a SIMD register of a software adapter, or two subgroups of most GPUs. */
const EXPAND_WG = { cpu: 8, generic: 64 } as const;
/** Matrices with a common input that are stacked in one product: q, k and v at most. */
export const MOST_SEGMENTS = 3;
/** Ranks are padded to a multiple of this, a vec4. */
const QUAD = 4;
/** u32 words of the table for an adapter and a segment: first vec4 of A, first vec4 of B, quads of the rank, nothing. */
const TABLE_WORDS = 4;

/** What one adapter adds to one matrix: scale * B A, with the scale in B. */
export interface LoraMatrices {
  readonly rank: number;
  /** [rank, K]. */
  readonly a: Float32Array;
  /** [N, rank]. */
  readonly b: Float32Array;
}

/** What all adapters add to a matrix [N, K] that is stacked from segments with the same input. */
export interface LoraWeight {
  /** [1 + adapters, segments, TABLE_WORDS] u32: where an adapter's matrices lie; 0 is no adapter. */
  readonly table: Tensor;
  readonly a: Tensor;
  readonly b: Tensor;
  /** Quads of output features before which each segment ends. */
  readonly ends: readonly number[];
  /** Quads of the largest rank. */
  readonly ranks: number;
  readonly inFeatures: number;
}

/** The adapters of a batch's rows. */
export interface LoraRows {
  /** [T] u32: 1 + the index of the row's adapter, 0 for none. */
  readonly loras: Tensor;
  /** [T, loraColumns(largest rank)] f32, scratch. */
  readonly shrunk: Tensor;
}

/** Columns of LoraRows.shrunk for adapters of this rank. */
export function loraColumns(rank: number): number {
  return MOST_SEGMENTS * QUAD * ceilDiv(rank, QUAD);
}

/** Device bytes of an adapter's part of a matrix [outFeatures, inFeatures]. */
export function loraBytes(rank: number, outFeatures: number, inFeatures: number): number {
  return 4 * QUAD * ceilDiv(rank, QUAD) * (outFeatures + inFeatures);
}

/** Uploads what adapters add to a matrix: for each of its segments the output features, and each adapter's matrices, if it has any. */
export function uploadLora(
  device: Device,
  label: string,
  inFeatures: number,
  segments: readonly { readonly outFeatures: number; readonly loras: readonly (LoraMatrices | undefined)[] }[],
): LoraWeight {
  const quads = (rank: number): number => ceilDiv(rank, QUAD);
  assert(segments.length <= MOST_SEGMENTS, `${label}: ${segments.length} segments, at most ${MOST_SEGMENTS}`);
  const isWhole = inFeatures % QUAD === 0 && segments.every(({ outFeatures }) => outFeatures % QUAD === 0);
  assert(isWhole, `${label}: ${inFeatures} inputs and ${segments.map((one) => one.outFeatures).join(', ')} outputs are no quads`);
  const count = segments[0]!.loras.length;
  const table = new Uint32Array((1 + count) * segments.length * TABLE_WORDS);
  const parts = Array.from({ length: count }, (_, lora) => segments.map(({ outFeatures, loras }) => ({ outFeatures, of: loras[lora] })));
  const all = parts.flat().filter(({ of }) => of);
  const size = (width: (part: (typeof all)[number]) => number): number =>
    all.reduce((sum, part) => sum + QUAD * quads(part.of!.rank) * width(part), 0);
  const a = new Float32Array(size(() => inFeatures));
  const b = new Float32Array(size(({ outFeatures }) => outFeatures));
  let [atA, atB] = [0, 0];
  for (const [lora, of] of parts.entries()) {
    for (const [segment, { outFeatures: n, of: given }] of of.entries()) {
      if (!given) continue;
      const { rank } = given;
      table.set([atA / QUAD, atB / QUAD, quads(rank)], ((1 + lora) * segments.length + segment) * TABLE_WORDS);
      a.set(given.a, atA);
      for (let row = 0; row < n; row++) for (let j = 0; j < rank; j++) b[atB + j * n + row] = given.b[row * rank + j]!;
      atA += QUAD * quads(rank) * inFeatures;
      atB += QUAD * quads(rank) * n;
    }
  }
  let end = 0;
  return {
    table: device.upload(`${label} lora table`, 'u32', [1 + count, segments.length, TABLE_WORDS], table),
    a: device.upload(`${label} lora a`, 'f32', [a.length], a),
    b: device.upload(`${label} lora b`, 'f32', [b.length], b),
    ends: segments.map(({ outFeatures }) => (end += outFeatures / QUAD)),
    ranks: all.reduce((most, { of }) => Math.max(most, quads(of!.rank)), 0),
    inFeatures,
  };
}

export interface AddLoraArgs extends LoraRows {
  /** [T, K] f32: what the product reads. */
  readonly x: Tensor;
  readonly weight: LoraWeight;
  /** [T, N] f32: the product, to which each row's adapter is added. */
  readonly out: Tensor;
  readonly rows: number;
}

/** out += scale * x A^T B^T by the adapter of each row. A row depends on itself alone, and one without an adapter keeps its bits. */
export function addLora(rec: Recorder, { x, loras, shrunk, weight, out, rows }: AddLoraArgs): void {
  if (rows === 0) return;
  const { table, a, b, ends, ranks, inFeatures } = weight;
  const segments = ends.length;
  const n4 = ends.at(-1)!;
  const [hStride, outStride] = [shrunk.shape.at(-1) ?? 0, out.shape.at(-1) ?? 0];
  assert(x.shape.at(-1) === inFeatures, `lora: ${x.label} has ${x.shape.at(-1)} columns, the adapters ${inFeatures}`);
  assert(outStride % QUAD === 0 && QUAD * n4 <= outStride, `lora: ${QUAD * n4} outputs in ${outStride} columns of ${out.label}`);
  assert(QUAD * segments * ranks <= hStride, `lora: ${segments} times ${ranks} quads in ${hStride} columns of ${shrunk.label}`);
  const { wg, variant } = reduceVariant(rec.caps, inFeatures);
  const sizes = { segments, ranks };
  rec.dispatch(
    LORA_SHRINK,
    { ...variant, overrides: { WG: wg } },
    { x, loras, table, a, out: shrunk },
    { rows, ...sizes, k4: inFeatures / QUAD, out_stride4: hStride / QUAD },
    [rows * segments * ranks],
  );
  const wide = EXPAND_WG[rec.caps.family];
  rec.dispatch(
    LORA_EXPAND,
    { overrides: { WG: wide } },
    { h: shrunk, loras, table, b, out },
    { ...sizes, end0: ends[0]!, end1: ends[1] ?? n4, n4, h_stride4: hStride / QUAD, out_stride4: outStride / QUAD },
    [ceilDiv(n4, wide), rows],
  );
}
