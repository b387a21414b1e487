/** Predicts durations, pitch and energy (modules.py DurationEncoder and ProsodyPredictor). */
import { assert } from '../../errors.ts';
import type { Device } from '../../gpu/device.ts';
import type { Recorder } from '../../gpu/recorder.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import { conv1d } from '../../ops/conv.ts';
import type { ConvWeight } from '../../ops/conv.ts';
import { linear } from '../../ops/linear.ts';
import { packLinear } from '../../ops/pack-linear.ts';
import type { LinearWeight } from '../../ops/weight.ts';
import { lstm } from '../../ops/lstm.ts';
import { styledLayerNorm } from '../../ops/norm.ts';
import { rowShape } from '../../ops/row-spans.ts';
import type { SequenceStyles, SpanRows } from '../../ops/row-spans.ts';
import { expandRows } from '../../ops/rows.ts';
import { alignUp } from '../../util/math.ts';
import { adainResBlock, loadAdainResBlock } from './blocks.ts';
import type { AdainResBlock, BlockScratch } from './blocks.ts';
import type { KokoroConfig } from './config.ts';
import { STYLE_STEP, loadConv, loadLstm } from './weights.ts';
import type { KokoroLoader, StyledLstm } from './weights.ts';

const EPS = 1e-5;
/** Columns of the F0 and energy curves: one value and three zeros, because kernels read four channels at a time. */
const CURVE_COLUMNS = 4;

export interface ProsodyWeights {
  readonly layers: readonly { readonly lstm: StyledLstm; readonly norm: number }[];
  readonly durationLstm: StyledLstm;
  readonly durationProjection: { readonly weight: LinearWeight; readonly bias: Tensor };
  /** A row of ones: a token's duration is the sum of its sigmoids, which this computes as a product by `linear`. */
  readonly sum: LinearWeight;
  readonly shared: StyledLstm;
  readonly f0: Curve;
  readonly energy: Curve;
}

interface Curve {
  readonly blocks: readonly AdainResBlock[];
  readonly projection: ConvWeight;
}

/** Loads `predictor.*`. */
export async function loadProsody(loader: KokoroLoader, { hidden, layers, maxDuration }: KokoroConfig): Promise<ProsodyWeights> {
  const { weights, style } = loader;
  const styledLstm = (name: string): Promise<StyledLstm> => loadLstm(loader, `predictor.${name}`, hidden, hidden / 2, true);
  const stack: ProsodyWeights['layers'][number][] = [];
  for (let i = 0; i < layers; i++) {
    stack.push({
      lstm: await styledLstm(`text_encoder.lstms.${2 * i}`),
      norm: await style.addNorm(weights, `predictor.text_encoder.lstms.${2 * i + 1}`, hidden, STYLE_STEP),
    });
  }
  const curve = async (name: string): Promise<Curve> => ({
    blocks: [
      await loadAdainResBlock(loader, `predictor.${name}.0`, { dimIn: hidden, dimOut: hidden }),
      await loadAdainResBlock(loader, `predictor.${name}.1`, { dimIn: hidden, dimOut: hidden / 2, upsample: true }),
      await loadAdainResBlock(loader, `predictor.${name}.2`, { dimIn: hidden / 2, dimOut: hidden / 2 }),
    ],
    projection: await loadConv(loader, `predictor.${name}_proj`, { outChannels: 1, inChannels: hidden / 2, kernel: 1 }),
  });
  return {
    layers: stack,
    durationLstm: await styledLstm('lstm'),
    durationProjection: {
      weight: await weights.linear('predictor.duration_proj.linear_layer.weight', maxDuration, hidden),
      bias: await weights.tensor('predictor.duration_proj.linear_layer.bias', [maxDuration]),
    },
    sum: packLinear(weights.device, 'duration sum', new Float32Array(maxDuration).fill(1), 1, maxDuration),
    shared: await styledLstm('shared'),
    f0: await curve('F0'),
    energy: await curve('N'),
  };
}

/** Activations of the duration prediction. */
export interface ProsodyWorkspace {
  /** [tokens, hidden]: the duration encoder's output d (without the style's columns). */
  readonly encoded: Tensor;
  readonly mid: Tensor;
  /** [tokens, maxDuration padded to 4]: zeros in the padding. */
  readonly bins: Tensor;
  /** [tokens, 1]: frames of each token at speed 1. */
  readonly durations: Tensor;
}

/** Activations of the F0 and energy prediction. */
export interface CurvesWorkspace {
  /** [frames, hidden]. */
  readonly expanded: Tensor;
  readonly shared: Tensor;
  /** [2 frames, hidden]: outputs of the residual blocks. */
  readonly a: Tensor;
  readonly b: Tensor;
  /** [2 frames, CURVE_COLUMNS]: Hz in column 0. */
  readonly f0: Tensor;
  /** [2 frames, CURVE_COLUMNS]: log energy in column 0. */
  readonly energy: Tensor;
}

/** Allocates activations for at most `tokens` tokens. */
export function createProsodyWorkspace(device: Device, { hidden, maxDuration }: KokoroConfig, tokens: number): ProsodyWorkspace {
  const tensor = (label: string, rows: number, columns: number): Tensor => device.tensor(`prosody ${label}`, 'f32', [rows, columns]);
  return {
    encoded: tensor('encoded', tokens, hidden),
    mid: tensor('mid', tokens, hidden),
    bins: tensor('bins', tokens, alignUp(maxDuration, 4)),
    durations: tensor('durations', tokens, 1),
  };
}

/** Allocates activations for at most `frames` token frames. */
export function createCurvesWorkspace(device: Device, { hidden }: KokoroConfig, frames: number): CurvesWorkspace {
  const tensor = (label: string, rows: number, columns: number): Tensor => device.tensor(`curves ${label}`, 'f32', [rows, columns]);
  return {
    expanded: tensor('expanded', frames, hidden),
    shared: tensor('shared', frames, hidden),
    a: tensor('a', 2 * frames, hidden),
    b: tensor('b', 2 * frames, hidden),
    f0: tensor('f0', 2 * frames, CURVE_COLUMNS),
    energy: tensor('energy', 2 * frames, CURVE_COLUMNS),
  };
}

function styledLstm(
  rec: Recorder,
  { lstm: weight, styleBias }: StyledLstm,
  { style, ...args }: { x: Tensor; out: Tensor; inputs: Tensor; rows: SpanRows; style: SequenceStyles },
): void {
  assert(styleBias !== undefined, 'the prosody LSTMs read the style');
  lstm(rec, { ...args, weight, style: { of: style, first: styleBias } });
}

/** Computes ws.encoded and ws.durations from x [tokens, hidden] (d_en). `gates` is LSTM scratch [tokens, 4 hidden]. */
export function predictDurations(
  rec: Recorder,
  w: ProsodyWeights,
  ws: ProsodyWorkspace,
  { x, style, gates, tokens }: { readonly x: Tensor; readonly style: SequenceStyles; readonly gates: Tensor; readonly tokens: SpanRows },
): void {
  const hidden = ws.encoded.shape[1]!;
  const { end } = rowShape(tokens);
  let input = x;
  for (const { lstm: layer, norm } of w.layers) {
    styledLstm(rec, layer, { x: input, out: ws.mid, inputs: gates, rows: tokens, style });
    const where = { weightFirst: norm, biasFirst: norm + alignUp(hidden, STYLE_STEP) };
    styledLayerNorm(rec, { x: ws.mid, style, ...where, out: ws.encoded, eps: EPS, rows: tokens });
    input = ws.encoded;
  }
  styledLstm(rec, w.durationLstm, { x: input, out: ws.mid, inputs: gates, rows: tokens, style });
  linear(rec, { x: ws.mid, ...w.durationProjection, out: ws.bins, activation: 'sigmoid', rows: end });
  linear(rec, { x: ws.bins, weight: w.sum, out: ws.durations, rows: end });
}

export interface CurvesArgs {
  /** [tokens, hidden]: the duration encoder's output. */
  readonly encoded: Tensor;
  /** [frames] u32: the token of each frame. */
  readonly index: Tensor;
  readonly style: SequenceStyles;
  /** LSTM scratch [frames, 4 hidden]. */
  readonly gates: Tensor;
  /** A row for each frame. */
  readonly frames: SpanRows;
  readonly scratch: BlockScratch;
}

/** Computes ws.f0 and ws.energy [2 frames, CURVE_COLUMNS] from `encoded`, expanded to frames by `index`. */
export function predictCurves(rec: Recorder, w: ProsodyWeights, ws: CurvesWorkspace, args: CurvesArgs): void {
  const { encoded, index, style, gates, frames, scratch } = args;
  expandRows(rec, { x: encoded, index, out: ws.expanded, rows: rowShape(frames).end });
  styledLstm(rec, w.shared, { x: ws.expanded, out: ws.shared, inputs: gates, rows: frames, style });
  for (const [{ blocks, projection }, out] of [
    [w.f0, ws.f0],
    [w.energy, ws.energy],
  ] as const) {
    let x = ws.shared;
    let rows = frames;
    blocks.forEach((block, i) => {
      const next = (i % 2 === 0 ? ws.a : ws.b).reshape([ws.a.shape[0]!, block.dimOut]);
      rows = adainResBlock(rec, block, { x, out: next, rows, style, scratch });
      x = next;
    });
    conv1d(rec, { x, texels: scratch.normed, weight: projection, out, rows });
  }
}
