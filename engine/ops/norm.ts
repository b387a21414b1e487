import { assert } from '../errors.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
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
  fragments: (v) => ['lib/grid.wgsl', reduceFragment(v)],
  bindings: { x: 'read', weight: 'read', bias: 'read', out: 'write' },
  params: { rows: 'u32', columns: 'u32', eps: 'f32' },
  overrides: { WG: 'u32' },
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
  /** [T, C] f32, added behind the norm; a tensor other than `out`. */
  readonly residual?: Tensor | undefined;
  /** What the sum of both is multiplied with; default 1. */
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

/** Layer norm (Ba et al. 2016) with scale and shift. */
export function layerNorm(rec: Recorder, { x, weight, bias, out, eps, rows }: NormArgs & { readonly bias: Tensor }): void {
  const columns = weight.size;
  assert(x.size % columns === 0, `layer_norm: ${x.label} [${x.shape.join(', ')}] is not rows of ${columns}`);
  const count = rows ?? x.size / columns;
  const { wg, variant } = reduceVariant(rec.caps, columns);
  rec.dispatch(LAYER_NORM, { ...variant, overrides: { WG: wg } }, { x, weight, bias, out }, { rows: count, columns, eps }, [count]);
}
