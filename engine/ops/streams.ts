/** Kernels of AltUp (https://arxiv.org/abs/2301.13310): S residual streams [S, R, C], of which a layer processes the first. */
import { assert } from '../errors.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { ceilDiv } from '../util/math.ts';

const WG = 64;

export const PREDICT_STREAMS = defineKernel({
  file: 'streams/predict_streams.wgsl',
  fragments: () => ['lib/grid.wgsl'],
  consts: ['STREAMS'],
  bindings: { x: 'read', coefs: 'read', predicted: 'write' },
  params: { count4: 'u32', columns4: 'u32', stream4: 'u32' },
  overrides: { WG: 'u32' },
});

export const CORRECT_STREAMS = defineKernel({
  file: 'streams/correct_streams.wgsl',
  fragments: () => ['lib/grid.wgsl'],
  consts: ['STREAMS'],
  bindings: { predicted: 'read', passed: 'read', coefs: 'read', other: 'read', out: 'write' },
  params: PREDICT_STREAMS.spec.params,
  overrides: { WG: 'u32', FIRST: 'bool' },
});

/** Sizes of a dispatch over streams [S, R, C], of which the first `rows` of R rows are used. */
function sizesOf(streams: Tensor, rows: number) {
  const [count = 0, room = 0, columns = 0] = streams.shape;
  assert(columns % 4 === 0 && rows <= room, `streams [${streams.shape.join(', ')}] for ${rows} rows, expected a multiple of 4 channels`);
  const columns4 = columns / 4;
  const count4 = rows * columns4;
  return { consts: { STREAMS: count }, params: { count4, columns4, stream4: room * columns4 }, grid: [ceilDiv(count4, WG)] };
}

export interface PredictArgs {
  /** [S, R, C]. */
  readonly x: Tensor;
  /** [T, S S]: coefficients of every stream in every predicted stream. */
  readonly coefs: Tensor;
  /** [S, R, C]. */
  readonly predicted: Tensor;
  readonly rows: number;
}

/** predicted[k] = x[k] + the sum of all streams, weighted by coefs. */
export function predictStreams(rec: Recorder, { x, coefs, predicted, rows }: PredictArgs): void {
  const { consts, params, grid } = sizesOf(x, rows);
  rec.dispatch(PREDICT_STREAMS, { consts, overrides: { WG } }, { x, coefs, predicted }, params, grid);
}

export interface CorrectArgs {
  /** [S, R, C]. */
  readonly predicted: Tensor;
  /** [T, C]: the layer's output for the first stream. */
  readonly passed: Tensor;
  /** [T, S]: a coefficient for each stream. */
  readonly coefs: Tensor;
  readonly rows: number;
}

/**
 * out [S, R, C] = the predicted streams, each corrected by its share of the layer's change; `added` [T, C] is added to all but the first.
 */
export function correctStreams(
  rec: Recorder,
  { added, out, ...args }: CorrectArgs & { readonly added: Tensor; readonly out: Tensor },
): void {
  correct(rec, args, added, out, false);
}

/** out [T, C] = the first corrected stream, times `scale` [C]. */
export function correctFirst(rec: Recorder, { scale, out, ...args }: CorrectArgs & { readonly scale: Tensor; readonly out: Tensor }): void {
  correct(rec, args, scale, out, true);
}

function correct(rec: Recorder, { predicted, passed, coefs, rows }: CorrectArgs, other: Tensor, out: Tensor, first: boolean): void {
  const { consts, params, grid } = sizesOf(predicted, rows);
  const overrides = { WG, FIRST: first ? 1 : 0 };
  rec.dispatch(CORRECT_STREAMS, { consts, overrides }, { predicted, passed, coefs, other, out }, params, grid);
}
