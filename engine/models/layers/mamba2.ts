/** Mamba 2 (https://arxiv.org/abs/2405.21060): a short convolution, the selective scan, a gate and mostly a norm. */
import type { Device } from '../../gpu/device.ts';
import type { Recorder } from '../../gpu/recorder.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import { gateSlice } from '../../ops/activation.ts';
import { linear } from '../../ops/linear.ts';
import { causalConv, rmsNormGated, selectiveScan } from '../../ops/recurrent.ts';
import { gatherRows } from '../../ops/sample.ts';
import type { LinearWeight } from '../../ops/weight.ts';
import { alignUp, transposed } from '../../util/math.ts';
import type { WeightLoader } from '../weight-loader.ts';
import type { ForwardInput } from '../forward-input.ts';
import type { Recurrent, RecurrentStep } from './recurrent.ts';

export interface Mamba2Config {
  readonly hidden: number;
  readonly heads: number;
  /** Channels of a head, P. */
  readonly headDim: number;
  /** Groups of consecutive heads, G, that share B and C, and are normed together. */
  readonly groups: number;
  /** Channels of B and C, N. */
  readonly stateDim: number;
  /** Taps of the short convolution. */
  readonly taps: number;
  readonly hasConvBias: boolean;
  /** Whether a norm follows the gate; default true. */
  readonly hasNorm?: boolean | undefined;
  /** Of that norm. */
  readonly eps: number;
}

export interface Mamba2 {
  /** Rows of x, B and C, which the convolution reads; then of z, the gate, where there is a norm; then of the heads' time steps. */
  readonly projection: LinearWeight;
  /** Rows of z, where there is no norm. */
  readonly gate: LinearWeight | undefined;
  /** [taps, channels], with a row more for the bias. */
  readonly conv: Tensor;
  /** [3, H]: -exp(A_log), dt_bias, D. */
  readonly heads: Tensor;
  /** [H P]: weights of the gated norm. */
  readonly norm: Tensor | undefined;
  readonly output: LinearWeight;
}

export interface Mamba2Workspace {
  readonly projected: Tensor; // [T, widest]
  readonly mixed: Tensor; // [T, channels] after the convolution
  readonly scanned: Tensor; // [T, H P]
  readonly gate: Tensor | undefined; // [T, H P]
  readonly normed: Tensor; // [T, H P], or gated alone
  readonly gathered: Tensor; // [B, H P] of the rows that give logits
}

interface Sizes {
  /** H P. */
  readonly inner: number;
  /** Channels of the convolution: x, B and C. */
  readonly channels: number;
  /** Column of the first head's time step in the projection. */
  readonly stepColumn: number;
  readonly widest: number;
}

/** Mamba 2 layers of these sizes; a layer's weights stand below `mamba`. */
export function mamba2(config: Mamba2Config): Recurrent<Mamba2, Mamba2Workspace> & { readonly config: Mamba2Config } {
  const { heads, headDim, groups, stateDim, taps, hasNorm = true } = config;
  const inner = heads * headDim;
  const channels = inner + 2 * groups * stateDim;
  const stepColumn = hasNorm ? channels + inner : channels;
  const sizes = { inner, channels, stepColumn, widest: alignUp(stepColumn + heads, 4) };
  return {
    config,
    state: { tail: (taps - 1) * channels, matrix: inner * stateDim },
    widest: sizes.widest,
    load: (loader, at) => loadMamba2(loader, `${at}.mamba`, config, sizes),
    workspace: (device, rows, logitRows) => createWorkspace(device, rows, logitRows, config, sizes),
    record: (rec, weights, ws, step, input) => recordMamba2(rec, config, sizes, weights, ws, step, input),
  };
}

async function loadMamba2(
  loader: WeightLoader,
  at: string,
  { hidden, heads, taps, hasConvBias, hasNorm = true }: Mamba2Config,
  { inner, channels }: Sizes,
): Promise<Mamba2> {
  // A checkpoint has z first.
  const ends = [0, inner, inner + channels, inner + channels + heads];
  const rowsOf = (parts: readonly number[]) => parts.map((i) => ({ name: `${at}.in_proj.weight`, outFeatures: ends[3]!, rows: { from: ends[i]!, to: ends[i + 1]! } })); // prettier-ignore
  const filters = transposed(await loader.data(`${at}.conv1d.weight`, [channels, 1, taps]), channels, taps);
  const bias = hasConvBias ? await loader.data(`${at}.conv1d.bias`, [channels]) : [];
  const slope = (await loader.data(`${at}.A_log`, [heads])).map((value) => -Math.exp(value));
  const ofHeads = Float32Array.from([
    ...slope,
    ...(await loader.data(`${at}.dt_bias`, [heads])),
    ...(await loader.data(`${at}.D`, [heads])),
  ]);
  return {
    projection: await loader.mergedLinear(`${at}.in_proj`, rowsOf(hasNorm ? [1, 0, 2] : [1, 2]), hidden),
    gate: hasNorm ? undefined : await loader.mergedLinear(`${at}.in_proj z`, rowsOf([0]), hidden),
    conv: loader.device.upload(`${at}.conv1d`, 'f32', [hasConvBias ? taps + 1 : taps, channels], Float32Array.from([...filters, ...bias])),
    heads: loader.device.upload(`${at}.heads`, 'f32', [3, heads], loader.storable(`${at}.A_log`, ofHeads, 'f32')),
    norm: hasNorm ? await loader.tensor(`${at}.norm.weight`, [inner]) : undefined,
    output: await loader.linear(`${at}.out_proj.weight`, hidden, inner),
  };
}

function createWorkspace(
  device: Device,
  rows: number,
  logitRows: number,
  { hasNorm = true }: Mamba2Config,
  { inner, channels, widest }: Sizes,
): Mamba2Workspace {
  const make = (name: string, width: number, count = rows): Tensor => device.tensor(name, 'f32', [count, width]);
  return {
    projected: make('mamba projected', widest),
    mixed: make('mamba mixed', channels),
    scanned: make('mamba scanned', inner),
    gate: hasNorm ? undefined : make('mamba gate', inner),
    normed: make('mamba normed', inner),
    gathered: make('gathered mamba', inner, logitRows),
  };
}

function recordMamba2(
  rec: Recorder,
  { heads, headDim, groups, stateDim, hasConvBias, eps }: Mamba2Config,
  { inner, channels, stepColumn }: Sizes,
  weights: Mamba2,
  ws: Mamba2Workspace,
  { x, state, indices, kept, residual, out }: RecurrentStep,
  { rows, spans }: ForwardInput,
): void {
  linear(rec, { x, weight: weights.projection, out: ws.projected, rows });
  causalConv(rec, { x: ws.projected, weight: weights.conv, hasBias: hasConvBias, spans, state, out: ws.mixed });
  const steps = { steps: ws.projected, stepColumn };
  selectiveScan(rec, { xbc: ws.mixed, heads, headDim, groups, stateDim, ...steps, ofHeads: weights.heads, spans, state, out: ws.scanned });
  if (weights.norm) {
    const gate = { gate: ws.projected, gateColumn: channels, gateFirst: true, columns: inner / groups };
    rmsNormGated(rec, { x: ws.scanned, weight: weights.norm, ...gate, out: ws.normed, eps, rows });
  } else {
    linear(rec, { x, weight: weights.gate!, out: ws.gate!, rows });
    gateSlice(rec, { gate: ws.gate!, x: ws.scanned, first: 0, out: ws.normed, activation: 'silu', rows });
  }
  if (indices) gatherRows(rec, { x: ws.normed, indices, out: ws.gathered, rows: kept });
  linear(rec, { x: indices ? ws.gathered : ws.normed, weight: weights.output, residual, out, rows: kept });
}
