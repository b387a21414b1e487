/**
 * Cross-attention of chosen heads, normalised and smoothed, from which times of words are derived: the encoder position that each decoder
 * row attends to.
 */
import { assert } from '../errors.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { ceilDiv } from '../util/math.ts';
import type { HeadColumns } from './dense-attention.ts';
import { reduceFragment, reduceVariant } from './reduce.ts';

export const ATTENTION_WEIGHTS = defineKernel({
  file: 'attention/attention_weights.wgsl',
  fragments: (v) => [reduceFragment(v), v.texture === undefined ? 'lib/keys_buffer.wgsl' : 'lib/keys_texture.wgsl'],
  bindings: { q: 'read', k: 'read', weights: 'update' },
  params: {
    keys: 'u32', first_key: 'u32', first_row: 'u32', out_at: 'u32', out_stride: 'u32', q_stride4: 'u32', k_stride4: 'u32', head4: 'u32', d4: 'u32',
    scale: 'f32',
  },
  overrides: { WG: 'u32' },
}); // prettier-ignore

export const ALIGNMENT_STATS = defineKernel({
  file: 'attention/alignment_stats.wgsl',
  bindings: { weights: 'read', stats: 'write' },
  params: { rows: 'u32', columns: 'u32', row_stride: 'u32', head_stride: 'u32' },
  overrides: { WG: 'u32' },
});

export const ALIGNMENT_MATRIX = defineKernel({
  file: 'attention/alignment_matrix.wgsl',
  bindings: { weights: 'read', stats: 'read', out: 'write' },
  params: { heads: 'u32', columns: 'u32', row_stride: 'u32', head_stride: 'u32' },
  overrides: { WG: 'u32' },
});

/** Invocations per workgroup in kernels whose invocations are independent. */
const WG = 64;

export interface AttentionWeightsArgs {
  /** [T, >= H D] f32. */
  readonly q: Tensor;
  /** [S, >= H D] f32, in a buffer or a texture; its columns begin with the keys. */
  readonly k: HeadColumns['tensor'];
  /** Index of the head in q and k, and its channels, a multiple of 4. */
  readonly head: number;
  readonly headDim: number;
  readonly keys: { readonly first: number; readonly count: number };
  readonly rows: { readonly first: number; readonly count: number };
  /** [heads, rows, positions] f32. */
  readonly weights: Tensor;
  /** Head and row of `weights` where the first row's weights go. */
  readonly to: { readonly head: number; readonly row: number };
}

/** weights[to.head, to.row + t] = softmax of row t's attention to all the keys, scaled by 1 / sqrt(D). */
export function attentionWeights(rec: Recorder, { q, k, head, headDim, keys, rows, weights, to }: AttentionWeightsArgs): void {
  const [heads, most, positions] = weights.shape as readonly [number, number, number];
  assert(
    headDim % 4 === 0 && keys.count <= positions && to.head < heads && to.row + rows.count <= most,
    'attention_weights: no such place',
  );
  const { wg, variant } = reduceVariant(rec.caps, positions);
  const params = {
    keys: keys.count, first_key: keys.first, first_row: rows.first, out_at: (to.head * most + to.row) * positions, out_stride: positions,
    q_stride4: q.shape.at(-1)! / 4, k_stride4: k.shape.at(-1)! / 4, head4: (head * headDim) / 4, d4: headDim / 4, scale: headDim ** -0.5,
  }; // prettier-ignore
  const inTexture = k.texture && { texture: 'k' };
  rec.dispatch(ATTENTION_WEIGHTS, { ...variant, ...inTexture, overrides: { WG: wg } }, { q, k, weights }, params, [rows.count]);
}

export interface AlignmentMatrixArgs {
  /** [heads, rows, positions] f32 of attentionWeights. */
  readonly weights: Tensor;
  /** [heads, positions, 2] f32 scratch. */
  readonly stats: Tensor;
  /** [>= rows * columns] f32: row after row of `columns`. */
  readonly out: Tensor;
  readonly heads: number;
  readonly rows: number;
  /** Positions that hold audio. */
  readonly columns: number;
}

/**
 * out[t, s] = how much more row t attends to position s than other rows do: each position is standardised over the rows (mean 0, deviation
 * 1), a median filter of width 7 along the positions removes outliers, and the heads are averaged.
 */
export function alignmentMatrix(rec: Recorder, { weights, stats, out, heads, rows, columns }: AlignmentMatrixArgs): void {
  const [all, most, positions] = weights.shape as readonly [number, number, number];
  assert(
    heads <= all && rows <= most && columns <= positions && rows * columns <= out.size,
    `alignment_matrix: ${rows} rows of ${columns}`,
  );
  const strides = { row_stride: positions, head_stride: most * positions };
  const variant = { overrides: { WG } };
  rec.dispatch(ALIGNMENT_STATS, variant, { weights, stats }, { rows, columns, ...strides }, [ceilDiv(columns, WG), heads]);
  rec.dispatch(ALIGNMENT_MATRIX, variant, { weights, stats, out }, { heads, columns, ...strides }, [ceilDiv(columns, WG), rows]);
}
