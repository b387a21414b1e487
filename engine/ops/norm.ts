import { assert } from '../errors.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { rowShape, styleAt } from './row-spans.ts';
import type { Rows, SequenceStyles } from './row-spans.ts';
import { reduceFragment, reduceVariant } from './reduce.ts';

export const RMS_NORM = defineKernel({
  file: 'norm/rms_norm.wgsl',
  fragments: (v) => ['lib/grid.wgsl', reduceFragment(v)],
  bindings: { x: 'read', weight: 'read', residual: 'read', out: 'write' },
  params: { rows: 'u32', columns: 'u32', eps: 'f32', scale: 'f32' },
  overrides: { WG: 'u32', HAS_RESIDUAL: 'bool' },
});

export const LAYER_NORM = defineKernel({
  file: 'norm/layer_norm.wgsl',
  fragments: (v) => ['lib/grid.wgsl', 'lib/row_spans.wgsl', reduceFragment(v)],
  bindings: { x: 'read', weight: 'read', bias: 'read', spans: 'read', out: 'write' },
  params: { rows_unit: 'u32', rows: 'u32', columns: 'u32', weight_first: 'u32', bias_first: 'u32', style_stride: 'u32', eps: 'f32' },
  overrides: { WG: 'u32', SPANS: 'bool' },
});

export interface NormArgs {
  /** [T, C] f32. */
  readonly x: Tensor;
  /** [C] f32. */
  readonly weight: Tensor;
  /** [T, C] f32. */
  readonly out: Tensor;
  readonly eps: number;
  /** Rows to compute; default all. */
  readonly rows?: number;
}

export interface RmsNormArgs extends NormArgs {
  /** [T, C] f32, added after the norm; a tensor other than `out`. */
  readonly residual?: Tensor | undefined;
  /** Factor of the sum of both; default 1. */
  readonly scale?: number | undefined;
}

/** Root-mean-square norm (Zhang & Sennrich 2019). Rows may be heads: x [T * H, D] with weight [D]. */
export function rmsNorm(rec: Recorder, { x, weight, residual, scale = 1, out, eps, rows }: RmsNormArgs): void {
  const columns = weight.size;
  assert(x.size % columns === 0, `rms_norm: ${x.label} [${x.shape.join(', ')}] is not rows of ${columns}`);
  const count = rows ?? x.size / columns;
  const { wg, variant } = reduceVariant(rec.caps, columns);
  const overrides = { WG: wg, HAS_RESIDUAL: residual ? 1 : 0 };
  rec.dispatch(RMS_NORM, { ...variant, overrides }, { x, weight, residual: residual ?? x, out }, { rows: count, columns, eps, scale }, [
    count,
  ]);
}

export const MATCH_RMS = defineKernel({
  file: 'norm/match_rms.wgsl',
  fragments: (v) => ['lib/grid.wgsl', reduceFragment(v)],
  bindings: { x: 'read', like: 'read', residual: 'read', out: 'write' },
  params: { rows: 'u32', columns: 'u32', floor: 'f32' },
  overrides: { WG: 'u32', HAS_RESIDUAL: 'bool' },
});

export interface MatchRmsArgs {
  /** [T, C]. */
  readonly x: Tensor;
  /** [T, C]: rows whose magnitudes the output gets. */
  readonly like: Tensor;
  /** [T, C], added after rescaling; a tensor other than `out`. */
  readonly residual?: Tensor | undefined;
  readonly out: Tensor;
  /** Least mean square of a row of x. */
  readonly floor: number;
  readonly rows: number;
}

/** out = x with each row rescaled to the root mean square of the same row of `like`, plus the residual (Gemma 3n's streams). */
export function matchRms(rec: Recorder, { x, like, residual, out, floor, rows }: MatchRmsArgs): void {
  const columns = x.shape.at(-1) ?? 0;
  const { wg, variant } = reduceVariant(rec.caps, columns);
  const overrides = { WG: wg, HAS_RESIDUAL: residual ? 1 : 0 };
  rec.dispatch(MATCH_RMS, { ...variant, overrides }, { x, like, residual: residual ?? x, out }, { rows, columns, floor }, [rows]);
}

export interface LayerNormArgs extends Omit<NormArgs, 'rows'> {
  /** [C] f32. */
  readonly bias: Tensor;
  /** Rows to compute; default all. */
  readonly rows?: Rows;
}

/** Layer norm (Ba et al. 2016) with scale and shift. */
export function layerNorm(rec: Recorder, args: LayerNormArgs): void {
  dispatchLayerNorm(rec, args, { weight_first: 0, bias_first: 0, style_stride: 0 });
}

export interface StyledNormArgs extends Omit<NormArgs, 'rows' | 'weight'> {
  /** A sequence's scale [C] from value `weightFirst` on, its shift from `biasFirst` on. */
  readonly style: SequenceStyles;
  readonly weightFirst: number;
  readonly biasFirst: number;
  readonly rows: Rows;
}

/** Layer norm with a scale and shift per sequence. */
export function styledLayerNorm(rec: Recorder, { style, weightFirst, biasFirst, ...args }: StyledNormArgs): void {
  const [weight, bias] = [styleAt(style, weightFirst), styleAt(style, biasFirst)];
  const where = { weight_first: weight.first, bias_first: bias.first, style_stride: weight.stride };
  dispatchLayerNorm(rec, { ...args, weight: style.tensor, bias: style.tensor }, where);
}

function dispatchLayerNorm(
  rec: Recorder,
  { x, weight, bias, out, eps, rows }: LayerNormArgs,
  where: { readonly weight_first: number; readonly bias_first: number; readonly style_stride: number },
): void {
  const columns = x.shape.at(-1) ?? 0;
  assert(weight.size >= where.weight_first + columns, `layer_norm: ${weight.label} has ${weight.size} values for ${columns} columns`);
  assert(bias.size >= where.bias_first + columns, `layer_norm: ${bias.label} has ${bias.size} values for ${columns} columns`);
  const shape = rowShape(rows ?? x.size / columns);
  const { wg, variant } = reduceVariant(rec.caps, columns);
  const overrides = { WG: wg, SPANS: shape.table ? 1 : 0 };
  const params = { rows_unit: shape.unit, rows: shape.rows, columns, ...where, eps };
  const bindings = { x, weight, bias, spans: shape.table ?? x, out };
  rec.dispatch(LAYER_NORM, { ...variant, overrides }, bindings, params, [shape.longest, 1, shape.count]);
}
