/**
 * Alternating updates (AltUp, https://arxiv.org/abs/2301.13310): several residual streams, of which a layer processes the first. All
 * streams are predicted before the layer and corrected after it.
 */
import type { Device } from '../../gpu/device.ts';
import type { Recorder } from '../../gpu/recorder.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import { linear } from '../../ops/linear.ts';
import { matchRms, rmsNorm } from '../../ops/norm.ts';
import { correctFirst, correctStreams, predictStreams } from '../../ops/streams.ts';
import type { LinearWeight } from '../../ops/weight.ts';
import { alignUp } from '../../util/math.ts';
import type { WeightLoader } from '../weight-loader.ts';

export interface AltUpConfig {
  readonly hidden: number;
  /** Number of streams, S. */
  readonly streams: number;
  readonly eps: number;
}

/** AltUp weights of a layer. */
export interface AltUp {
  readonly routerNorm: Tensor; // [C], divided by C
  readonly router: LinearWeight; // [S, C]
  readonly prediction: LinearWeight; // [S S, S]
  readonly correction: LinearWeight; // [S, S]
  readonly scale: Tensor; // [C]
}

/** Projections at the two ends of the stack, one for each stream but the first. */
export interface AltUpEnds {
  readonly expand: readonly LinearWeight[];
  readonly merge: readonly LinearWeight[];
}

export interface AltUpWorkspace {
  /** [S, R, C], where R is the number of rows, rounded up. */
  readonly streams: Tensor;
  readonly predicted: Tensor;
  readonly routed: Tensor; // [T, S]
  readonly coefs: Tensor; // [T, S S]
  readonly corrections: Tensor; // [T, S]
  readonly normed: Tensor; // [T, C]
}

/** Rows of a stream are padded to a multiple of this, so that streams begin at multiples of 256 bytes for any multiple of 4 channels. */
const ROW_UNIT = 16;
/** Least mean square of a projection when it is rescaled to the embedding's magnitude (transformers, Gemma3nTextModel). */
const FLOOR = 1e-5;

export async function loadAltUp(loader: WeightLoader, at: string, { hidden, streams }: AltUpConfig): Promise<AltUp> {
  return {
    routerNorm: await loader.tensor(`${at}.router_norm.weight`, [hidden], 0, 1 / hidden),
    router: await loader.linear(`${at}.modality_router.weight`, streams, hidden),
    prediction: await loader.linear(`${at}.prediction_coefs.weight`, streams * streams, streams),
    correction: await loader.linear(`${at}.correction_coefs.weight`, streams, streams),
    scale: await loader.tensor(`${at}.correct_output_scale`, [hidden]),
  };
}

export async function loadAltUpEnds(loader: WeightLoader, { hidden, streams }: AltUpConfig): Promise<AltUpEnds> {
  const others = streams - 1;
  const load = async (name: string): Promise<LinearWeight[]> => {
    const stacked = `model.${name}.weight`;
    const weights: LinearWeight[] = [];
    for (let i = 0; i < others; i++) {
      const all = { name: stacked, outFeatures: others * hidden, rows: { from: i * hidden, to: (i + 1) * hidden } };
      weights.push(
        await (loader.has(stacked)
          ? loader.mergedLinear(`${name} ${i}`, [all], hidden)
          : loader.linear(`model.${name}.${i}.weight`, hidden, hidden)),
      );
    }
    return weights;
  };
  return { expand: await load('altup_projections'), merge: await load('altup_unembed_projections') };
}

export function altUpWorkspace(device: Device, { hidden, streams }: AltUpConfig, rows: number): AltUpWorkspace {
  const make = (name: string, columns: number): Tensor => device.tensor(name, 'f32', [rows, columns]);
  const room = [streams, alignUp(rows, ROW_UNIT), hidden];
  return {
    streams: device.tensor('streams', 'f32', room),
    predicted: device.tensor('predicted streams', 'f32', room),
    routed: make('routed', streams),
    coefs: make('predictions', streams * streams),
    corrections: make('corrections', streams),
    normed: make('normed for the router', hidden),
  };
}

/** A view of one stream, [R, C]. */
export function streamOf(streams: Tensor, index: number): Tensor {
  const [, room = 0, columns = 0] = streams.shape;
  return streams.rows(index, index + 1).reshape([room, columns]);
}

/** Fills the streams after the first, which is x [T, C], with projections of x rescaled to its magnitude. `branch` [T, C] is scratch. */
export function expandStreams(rec: Recorder, { expand }: AltUpEnds, ws: AltUpWorkspace, x: Tensor, branch: Tensor, rows: number): void {
  expand.forEach((weight, i) => {
    linear(rec, { x, weight, out: branch, rows });
    matchRms(rec, { x: branch, like: x, out: streamOf(ws.streams, i + 1), floor: FLOOR, rows });
  });
}

/**
 * Returns, in one of the two `sums`, the first of `streams` [B, C] plus the projections of the others, rescaled to the first one's
 * magnitude. `branch` [B, C] is scratch.
 */
export function mergeStreams(
  rec: Recorder,
  { merge }: AltUpEnds,
  streams: readonly Tensor[],
  sums: readonly [Tensor, Tensor],
  branch: Tensor,
  rows: number,
): Tensor {
  const [first] = streams as [Tensor];
  return merge.reduce((residual, weight, i) => {
    linear(rec, { x: streams[i + 1]!, weight, out: branch, rows });
    const out = sums[i % 2]!;
    matchRms(rec, { x: branch, like: first, residual, out, floor: FLOOR, rows });
    return out;
  }, first);
}

/** ws.predicted = all streams as predicted before a layer. */
export function recordPrediction(rec: Recorder, weights: AltUp, ws: AltUpWorkspace, eps: number, rows: number): void {
  route(rec, weights, ws, streamOf(ws.streams, 0), eps, rows);
  linear(rec, { x: ws.routed, weight: weights.prediction, out: ws.coefs, rows });
  predictStreams(rec, { x: ws.streams, coefs: ws.coefs, predicted: ws.predicted, rows });
}

/**
 * ws.corrections = coefficients computed from `passed`, the layer's output for the first stream; out [T, C] = the first stream, corrected
 * and scaled.
 */
export function recordCorrection(
  rec: Recorder,
  weights: AltUp,
  ws: AltUpWorkspace,
  passed: Tensor,
  out: Tensor,
  eps: number,
  rows: number,
): void {
  route(rec, weights, ws, passed, eps, rows);
  linear(rec, { x: ws.routed, weight: weights.correction, out: ws.corrections, rows });
  correctFirst(rec, { predicted: ws.predicted, passed, coefs: ws.corrections, scale: weights.scale, out, rows });
}

/** ws.streams = all streams corrected, with `added` [T, C] added to all but the first. */
export function recordCorrected(rec: Recorder, ws: AltUpWorkspace, passed: Tensor, added: Tensor, rows: number): void {
  correctStreams(rec, { predicted: ws.predicted, passed, coefs: ws.corrections, added, out: ws.streams, rows });
}

/** ws.routed = tanh(router(norm(x) / C)). */
function route(
  rec: Recorder,
  { routerNorm, router }: AltUp,
  { normed, routed }: AltUpWorkspace,
  x: Tensor,
  eps: number,
  rows: number,
): void {
  rmsNorm(rec, { x, weight: routerNorm, out: normed, eps, rows });
  linear(rec, { x: normed, weight: router, activation: 'tanh', out: routed, rows });
}
