import type { Recorder } from '../../gpu/recorder.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import { packConv1d, packConvTranspose1d } from '../../ops/conv.ts';
import type { ConvShape, ConvTransposeWeight, ConvWeight } from '../../ops/conv.ts';
import { packDepthwise } from '../../ops/depthwise.ts';
import type { DepthwiseWeight } from '../../ops/depthwise.ts';
import { linear } from '../../ops/linear.ts';
import { packLinear } from '../../ops/pack-linear.ts';
import type { LinearWeight } from '../../ops/weight.ts';
import { packedType } from '../../weights/storage.ts';
import type { FloatType } from '../../weights/storage.ts';
import { packLstm } from '../../ops/lstm.ts';
import type { LstmDirection, LstmWeight } from '../../ops/lstm.ts';
import { alignUp } from '../../util/math.ts';
import type { WeightLoader } from '../weight-loader.ts';

/** What the parts of the model load from: the checkpoint and the two projections of the style that they add their rows to. */
export interface KokoroLoader {
  readonly weights: WeightLoader;
  readonly dtype: FloatType;
  readonly style: StyleBuilder;
}

/** Values of a convolution; weight_norm (w = g v / |v|, the norm over all dimensions but the first) is folded here. */
async function convData(weights: WeightLoader, name: string, shape: readonly [number, number, number]): Promise<Float32Array> {
  if (!weights.has(`${name}.weight_g`)) return weights.storable(`${name}.weight`, await weights.data(`${name}.weight`, shape));
  const [rows, columns, kernel] = shape;
  const g = await weights.data(`${name}.weight_g`, [rows, 1, 1]);
  const v = await weights.data(`${name}.weight_v`, shape);
  const size = columns * kernel;
  const folded = new Float32Array(v.length);
  for (let r = 0; r < rows; r++) {
    let squares = 0;
    for (let i = r * size; i < (r + 1) * size; i++) squares += v[i]! * v[i]!;
    // A row of zeros has no direction; 0 / 0 would spread as NaN.
    const scale = squares > 0 ? g[r]! / Math.sqrt(squares) : 0;
    for (let i = r * size; i < (r + 1) * size; i++) folded[i] = v[i]! * scale;
  }
  return weights.storable(name, folded);
}

async function biasData(weights: WeightLoader, name: string, size: number): Promise<Float32Array | undefined> {
  return weights.has(`${name}.bias`) ? weights.data(`${name}.bias`, [size]) : undefined;
}

/** A Conv1d with or without weight_norm and bias. */
export async function loadConv({ weights, dtype }: KokoroLoader, name: string, shape: ConvShape): Promise<ConvWeight> {
  const data = await convData(weights, name, [shape.outChannels, shape.inChannels, shape.kernel]);
  return packConv1d(weights.device, name, data, shape, await biasData(weights, name, shape.outChannels), dtype);
}

/** A ConvTranspose1d. */
export async function loadConvTranspose(
  { weights, dtype }: KokoroLoader,
  name: string,
  shape: ConvShape & { readonly stride: number },
): Promise<ConvTransposeWeight> {
  const data = await convData(weights, name, [shape.inChannels, shape.outChannels, shape.kernel]);
  return packConvTranspose1d(weights.device, name, data, shape, await biasData(weights, name, shape.outChannels), dtype);
}

/** A ConvTranspose1d with groups = channels. */
export async function loadDepthwise({ weights }: KokoroLoader, name: string, channels: number, kernel: number): Promise<DepthwiseWeight> {
  const data = await convData(weights, name, [channels, 1, kernel]);
  const bias = (await biasData(weights, name, channels)) ?? new Float32Array(channels);
  return packDepthwise(weights.device, name, data, channels, kernel, bias);
}

/** A bidirectional LSTM; `styleBias` is where in the style's projection its input bias lies. */
export interface StyledLstm {
  readonly lstm: LstmWeight;
  readonly styleBias: number | undefined;
}

/**
 * nn.LSTM(inFeatures [+ styleDim], hidden, bidirectional). The reference appends the style to every step of the input; W [x; s] + b is
 * W_x x + (W_s s + b), so the style's columns become rows of the style's projection and the input stays narrow.
 */
export async function loadLstm(
  loader: KokoroLoader,
  name: string,
  inFeatures: number,
  hidden: number,
  styled: boolean,
): Promise<StyledLstm> {
  const { weights, style, dtype } = loader;
  const gates = 4 * hidden;
  const width = inFeatures + (styled ? style.styleDim : 0);
  const styleRows = new Float32Array(2 * gates * style.styleDim);
  const styleBias = new Float32Array(2 * gates);
  const directions: LstmDirection[] = [];
  const matrix = async (tensor: string, columns: number): Promise<Float32Array> =>
    weights.storable(tensor, await weights.data(tensor, [gates, columns]));
  for (const [d, suffix] of ['l0', 'l0_reverse'].entries()) {
    const full = await matrix(`${name}.weight_ih_${suffix}`, width);
    const recurrent = await matrix(`${name}.weight_hh_${suffix}`, hidden);
    const inputBias = await weights.data(`${name}.bias_ih_${suffix}`, [gates]);
    const hiddenBias = await weights.data(`${name}.bias_hh_${suffix}`, [gates]);
    const bias = inputBias.map((b, i) => b + hiddenBias[i]!);
    const input = new Float32Array(gates * inFeatures);
    for (let n = 0; n < gates; n++) {
      input.set(full.subarray(n * width, n * width + inFeatures), n * inFeatures);
      if (styled) styleRows.set(full.subarray(n * width + inFeatures, (n + 1) * width), (d * gates + n) * style.styleDim);
    }
    styleBias.set(bias, d * gates);
    directions.push({ input, recurrent, bias });
  }
  const [forward, backward] = directions as [LstmDirection, LstmDirection];
  const lstm = packLstm(weights.device, name, [forward, backward], { inFeatures, hidden }, dtype);
  return { lstm, styleBias: styled ? style.add(styleRows, styleBias) : undefined };
}

/** Parts of a projection start at multiples of this many values, so that a view of them can be bound. */
export const STYLE_STEP = 64;

/**
 * Collects everything that is a linear function of the style vector (AdaIN and AdaLN scales and shifts, LSTM biases), so that
 * one matrix product a sentence gives them all.
 */
export class StyleBuilder {
  readonly styleDim: number;
  readonly #blocks: { readonly first: number; readonly rows: Float32Array; readonly bias: Float32Array }[] = [];
  #size = 0;

  constructor(styleDim: number) {
    this.styleDim = styleDim;
  }

  /** Adds rows [n, styleDim] with biases [n]; returns the first value's place in the projection. */
  add(rows: Float32Array, bias: Float32Array): number {
    const first = this.#size;
    this.#blocks.push({ first, rows, bias });
    this.#size = alignUp(first + bias.length, STYLE_STEP);
    return first;
  }

  /**
   * Adds `fc` of an AdaIN or AdaLN layer as scale, then shift, both [C padded to `step`]. The layer computes (1 + gamma) (n w + b) + beta of
   * the normalised n, where w and b are the norm's own affine (absent = 1, 0): scale = (1 + gamma) w, shift = (1 + gamma) b + beta.
   */
  async addNorm(weights: WeightLoader, name: string, channels: number, step = 4): Promise<number> {
    const fc = await weights.data(`${name}.fc.weight`, [2 * channels, this.styleDim]);
    const fcBias = await weights.data(`${name}.fc.bias`, [2 * channels]);
    const affine = weights.has(`${name}.norm.weight`);
    const w = affine ? await weights.data(`${name}.norm.weight`, [channels]) : undefined;
    const b = affine ? await weights.data(`${name}.norm.bias`, [channels]) : undefined;
    const padded = alignUp(channels, step);
    const s = this.styleDim;
    const rows = new Float32Array(2 * padded * s);
    const bias = new Float32Array(2 * padded);
    for (let c = 0; c < channels; c++) {
      const factor = w?.[c] ?? 1;
      const offset = b?.[c] ?? 0;
      for (let k = 0; k < s; k++) {
        rows[c * s + k] = fc[c * s + k]! * factor;
        rows[(padded + c) * s + k] = fc[(channels + c) * s + k]! + fc[c * s + k]! * offset;
      }
      bias[c] = (1 + fcBias[c]!) * factor;
      bias[padded + c] = fcBias[channels + c]! + (1 + fcBias[c]!) * offset;
    }
    return this.add(rows, bias);
  }

  /** Uploads the projection, as `weights` stores matrices. */
  build({ device, storage }: Pick<WeightLoader, 'device' | 'storage'>, label: string): StyleProjection {
    const rows = new Float32Array(this.#size * this.styleDim);
    const bias = new Float32Array(this.#size);
    for (const block of this.#blocks) {
      rows.set(block.rows, block.first * this.styleDim);
      bias.set(block.bias, block.first);
    }
    return {
      weight: packLinear(device, `${label} style`, rows, this.#size, this.styleDim, packedType(storage, this.styleDim)),
      bias: device.upload(`${label} style bias`, 'f32', [this.#size], bias),
      input: device.tensor(`${label} style input`, 'f32', [1, this.styleDim]),
      output: device.tensor(`${label} style output`, 'f32', [this.#size]),
    };
  }
}

/** The style vector of the current sentence and everything that is linear in it. */
export interface StyleProjection {
  readonly weight: LinearWeight;
  readonly bias: Tensor;
  /** [1, styleDim]: written before each sentence. */
  readonly input: Tensor;
  /** [size]. */
  readonly output: Tensor;
}

/** Computes a projection's output. */
export function projectStyle(rec: Recorder, { weight, bias, input, output }: StyleProjection): void {
  linear(rec, { x: input, weight, bias, out: output.reshape([1, output.size]) });
}
