/** Gated delta-net (https://arxiv.org/abs/2412.06464) as in Qwen3.5: a short convolution, the gated delta rule and a gated norm. */
import type { Device } from '../../gpu/device.ts';
import type { Recorder } from '../../gpu/recorder.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import { linear } from '../../ops/linear.ts';
import { causalConv, gatedDeltaRule, rmsNormGated } from '../../ops/recurrent.ts';
import { gatherRows } from '../../ops/sample.ts';
import type { LinearWeight } from '../../ops/weight.ts';
import { alignUp, transposed } from '../../util/math.ts';
import type { WeightLoader } from '../weight-loader.ts';
import type { ForwardInput } from '../forward-input.ts';
import type { Recurrent, RecurrentStep } from './recurrent.ts';

export interface DeltaNetConfig {
  readonly hidden: number;
  readonly keyHeads: number;
  /** Value heads, Hv. */
  readonly heads: number;
  readonly keyDim: number;
  readonly valueDim: number;
  /** Taps of the short convolution. */
  readonly taps: number;
  /** Value head h uses key head h mod Hk; by default consecutive value heads share a key head. */
  readonly isTiled?: boolean;
}

export interface DeltaNet {
  /** Rows of qkv, z, beta and alpha, merged because they read the same input. */
  readonly projection: LinearWeight;
  /** [taps, channels]. */
  readonly conv: Tensor;
  /** [2, Hv]: -exp(A_log), then dt_bias. */
  readonly decay: Tensor;
  /** [Dv]: weights of the gated norm. */
  readonly norm: Tensor;
  readonly output: LinearWeight;
}

export interface DeltaNetWorkspace {
  readonly projected: Tensor; // [T, widest]
  readonly mixed: Tensor; // [T, channels] after the convolution
  readonly remembered: Tensor; // [T, Hv Dv]
  readonly normed: Tensor; // [T, Hv Dv]
  readonly gathered: Tensor; // [B, Hv Dv] of the rows that give logits
}

/** Gated delta-net layers of these sizes. */
export function deltaNet(config: DeltaNetConfig): Recurrent<DeltaNet, DeltaNetWorkspace> {
  const { keyHeads, heads, keyDim, valueDim, taps } = config;
  const values = heads * valueDim;
  const channels = 2 * keyHeads * keyDim + values;
  const widest = alignUp(channels + values + 2 * heads, 4);
  return {
    state: { tail: (taps - 1) * channels, matrix: values * keyDim },
    widest,
    load: (loader, at) => loadDeltaNet(loader, `${at}.linear_attn`, config, channels),
    workspace: (device, rows, logitRows) => createWorkspace(device, rows, logitRows, { widest, channels, values }),
    record: (rec, weights, ws, step, input) => recordDeltaNet(rec, config, channels, weights, ws, step, input),
  };
}

async function loadDeltaNet(
  loader: WeightLoader,
  at: string,
  { hidden, heads, valueDim, taps }: DeltaNetConfig,
  channels: number,
): Promise<DeltaNet> {
  const values = heads * valueDim;
  const parts = [
    ['qkv', channels],
    ['z', values],
    ['b', heads],
    ['a', heads],
  ] as const;
  const conv = await loader.data(`${at}.conv1d.weight`, [channels, 1, taps]);
  const slope = await loader.data(`${at}.A_log`, [heads]);
  const bias = await loader.data(`${at}.dt_bias`, [heads]);
  const decay = Float32Array.from([...slope.map((value) => -Math.exp(value)), ...bias]);
  return {
    projection: await loader.mergedLinear(
      `${at}.in_proj`,
      parts.map(([name, outFeatures]) => ({ name: `${at}.in_proj_${name}.weight`, outFeatures })),
      hidden,
    ),
    conv: loader.device.upload(`${at}.conv1d`, 'f32', [taps, channels], transposed(conv, channels, taps)),
    decay: loader.device.upload(`${at}.decay`, 'f32', [2, heads], loader.storable(`${at}.A_log`, decay, 'f32')),
    norm: await loader.tensor(`${at}.norm.weight`, [valueDim]),
    output: await loader.linear(`${at}.out_proj.weight`, hidden, values),
  };
}

function createWorkspace(
  device: Device,
  rows: number,
  logitRows: number,
  { widest, channels, values }: Readonly<Record<'widest' | 'channels' | 'values', number>>,
): DeltaNetWorkspace {
  const make = (name: string, width: number, count = rows): Tensor => device.tensor(name, 'f32', [count, width]);
  return {
    projected: make('delta projected', widest),
    mixed: make('delta mixed', channels),
    remembered: make('delta remembered', values),
    normed: make('delta normed', values),
    gathered: make('gathered delta', values, logitRows),
  };
}

function recordDeltaNet(
  rec: Recorder,
  { keyHeads, heads, keyDim, valueDim, isTiled }: DeltaNetConfig,
  channels: number,
  weights: DeltaNet,
  ws: DeltaNetWorkspace,
  { x, state, eps, indices, kept, residual, out }: RecurrentStep,
  { rows, spans }: ForwardInput,
): void {
  const betaColumn = channels + heads * valueDim;
  const columns = { betaColumn, alphaColumn: betaColumn + heads };
  linear(rec, { x, weight: weights.projection, out: ws.projected, rows });
  causalConv(rec, { x: ws.projected, weight: weights.conv, spans, state, out: ws.mixed });
  gatedDeltaRule(rec, {
    qkv: ws.mixed,
    keyHeads,
    heads,
    keyDim,
    valueDim,
    isTiled,
    gates: ws.projected,
    ...columns,
    decay: weights.decay,
    spans,
    state,
    out: ws.remembered,
  });
  rmsNormGated(rec, { x: ws.remembered, weight: weights.norm, gate: ws.projected, gateColumn: channels, out: ws.normed, eps, rows });
  if (indices) gatherRows(rec, { x: ws.normed, indices, out: ws.gathered, rows: kept });
  linear(rec, { x: indices ? ws.gathered : ws.normed, weight: weights.output, residual, out, rows: kept });
}
