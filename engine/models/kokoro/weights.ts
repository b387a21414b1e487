import { floatStorage } from '../../config.ts';
import type { Device } from '../../gpu/device.ts';
import type { Recorder } from '../../gpu/recorder.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import { convPlace, convTransposeWeight, convWeight } from '../../ops/conv.ts';
import type { ConvShape, ConvTransposeWeight, ConvWeight } from '../../ops/conv.ts';
import { packDepthwise } from '../../ops/depthwise.ts';
import type { DepthwiseWeight } from '../../ops/depthwise.ts';
import { linear } from '../../ops/linear.ts';
import type { LinearWeight } from '../../ops/weight.ts';
import type { FloatType } from '../../weights/storage.ts';
import { lstmPlace, lstmWeight } from '../../ops/lstm.ts';
import type { LstmWeight } from '../../ops/lstm.ts';
import { alignUp } from '../../util/math.ts';
import { shapeOf } from '../../weights/checkpoint.ts';
import type { Checkpoint } from '../../weights/checkpoint.ts';
import type { KokoroConfig } from './config.ts';
import type { MatrixPart, WeightLoader } from '../weight-loader.ts';
import type { Values } from '../weight-stream.ts';

/** What a part of the model loads from: the checkpoint, and the style projection that it adds its rows to. */
export interface KokoroLoader {
  readonly weights: WeightLoader;
  readonly dtype: FloatType;
  readonly style: StyleBuilder;
}

/**
 * The tensor that a convolution's weights are streamed from and, where weight_norm must be folded, their values: w = g v / |v|, with the
 * norm taken over all dimensions but the first.
 */
async function convSource(
  weights: WeightLoader,
  name: string,
  shape: readonly [number, number, number],
): Promise<{ readonly tensor: string; readonly values?: Values }> {
  if (!weights.has(`${name}.weight_g`)) return { tensor: `${name}.weight` };
  const [count, columns, kernel] = shape;
  const g = await weights.data(`${name}.weight_g`, [count, 1, 1]);
  const size = columns * kernel;
  const tensor = `${name}.weight_v`;
  const values: Values = async ({ from, to }) => {
    const rows = { from: from / size, to: to / size };
    return weights.storable(name, normalised(await weights.data(tensor, shape, { rows }), g.subarray(rows.from, rows.to)));
  };
  return { tensor, values };
}

/** Rows of `v`, each scaled to the length given by `g`. */
function normalised(v: Float32Array, g: Float32Array): Float32Array {
  const size = v.length / g.length;
  const folded = new Float32Array(v.length);
  for (const [row, length] of g.entries()) {
    let squares = 0;
    for (let i = row * size; i < (row + 1) * size; i++) squares += v[i]! * v[i]!;
    // A row of zeros has no direction; 0 / 0 would spread as NaN.
    const scale = squares > 0 ? length / Math.sqrt(squares) : 0;
    for (let i = row * size; i < (row + 1) * size; i++) folded[i] = v[i]! * scale;
  }
  return folded;
}

async function biasData(weights: WeightLoader, name: string, size: number): Promise<Float32Array | undefined> {
  return weights.has(`${name}.bias`) ? weights.data(`${name}.bias`, [size]) : undefined;
}

/** Loads a Conv1d, with or without weight_norm and bias. */
export async function loadConv({ weights, dtype }: KokoroLoader, name: string, shape: ConvShape): Promise<ConvWeight> {
  const { tensor, values } = await convSource(weights, name, [shape.outChannels, shape.inChannels, shape.kernel]);
  const matrix = await weights.as(floatStorage(dtype)).conv(name, tensor, shape, { place: convPlace(weights.device.caps), values });
  return convWeight(weights.device, name, matrix, shape, await biasData(weights, name, shape.outChannels));
}

/** Loads a ConvTranspose1d, with or without weight_norm and bias. */
export async function loadConvTranspose(
  { weights, dtype }: KokoroLoader,
  name: string,
  shape: ConvShape & { readonly stride: number },
): Promise<ConvTransposeWeight> {
  const { tensor, values } = await convSource(weights, name, [shape.inChannels, shape.outChannels, shape.kernel]);
  const matrix = await weights
    .as(floatStorage(dtype))
    .convTranspose(name, tensor, shape, { place: convPlace(weights.device.caps), values });
  return convTransposeWeight(weights.device, name, matrix, shape, await biasData(weights, name, shape.outChannels));
}

/** Loads a ConvTranspose1d with groups = channels. */
export async function loadDepthwise({ weights }: KokoroLoader, name: string, channels: number, kernel: number): Promise<DepthwiseWeight> {
  const shape = [channels, 1, kernel] as const;
  const { tensor, values } = await convSource(weights, name, shape);
  const data = values ? await values({ from: 0, to: channels * kernel }) : weights.storable(tensor, await weights.data(tensor, shape));
  const bias = (await biasData(weights, name, channels)) ?? new Float32Array(channels);
  return packDepthwise(weights.device, name, data, channels, kernel, bias);
}

/**
 * A bidirectional LSTM; `styleBias` is the first value of its input biases in the style projection, undefined where it does not read the
 * style.
 */
export interface StyledLstm {
  readonly lstm: LstmWeight;
  readonly styleBias: number | undefined;
}

/**
 * Loads nn.LSTM(inFeatures [+ styleDim], hidden, bidirectional). The reference appends the style s to every step x of the input; W [x; s] +
 * b is W_x x + (W_s s + b), so W_s becomes rows of the style projection and the input stays narrow.
 */
export async function loadLstm(
  loader: KokoroLoader,
  name: string,
  inFeatures: number,
  hidden: number,
  styled: boolean,
): Promise<StyledLstm> {
  const { style, dtype } = loader;
  const weights = loader.weights.as(floatStorage(dtype));
  const kept = loader.weights.as({ ...floatStorage(dtype), keepBlocks: loader.weights.storage.keepBlocks });
  const gates = 4 * hidden;
  const width = inFeatures + (styled ? style.styleDim : 0);
  const styleRows = new Float32Array(2 * gates * style.styleDim);
  const bias = new Float32Array(2 * gates);
  const suffixes = ['l0', 'l0_reverse'];
  const parts = (kind: string): MatrixPart[] =>
    suffixes.map((suffix) => ({ name: `${name}.weight_${kind}_${suffix}`, outFeatures: gates }));
  for (const [d, suffix] of suffixes.entries()) {
    if (styled) {
      const columns = { from: inFeatures, to: width };
      styleRows.set(await weights.data(`${name}.weight_ih_${suffix}`, [gates, width], { columns }), d * gates * style.styleDim);
    }
    const inputBias = await weights.data(`${name}.bias_ih_${suffix}`, [gates]);
    const hiddenBias = await weights.data(`${name}.bias_hh_${suffix}`, [gates]);
    for (const [i, b] of inputBias.entries()) bias[d * gates + i] = b + hiddenBias[i]!;
  }
  const lstm = lstmWeight(name, {
    input: await kept.mergedLinear(`${name} input`, parts('ih'), width, { columns: { from: 0, to: inFeatures } }),
    recurrent: await weights.mergedLinear(`${name} recurrent`, parts('hh'), hidden, { place: lstmPlace(weights.device.caps, hidden) }),
    bias: weights.device.upload(`${name} bias`, 'f32', [2 * gates], bias),
  });
  return { lstm, styleBias: styled ? style.add(parts('ih')[0]!.name, styleRows, bias) : undefined };
}

/** Parts of a style projection start at multiples of this many values, so that a view of them can be bound. */
export const STYLE_STEP = 64;

/**
 * Collects everything that is a linear function of the style vector (AdaIN and AdaLN scales and shifts, LSTM biases), so that one matrix
 * product per sentence computes all of it.
 */
export class StyleBuilder {
  readonly styleDim: number;
  readonly #blocks: { readonly name: string; readonly first: number; readonly rows: Float32Array; readonly bias: Float32Array }[] = [];
  #size = 0;

  constructor(styleDim: number) {
    this.styleDim = styleDim;
  }

  /** Adds rows [n, styleDim] with biases [n], computed from the tensor `name`; returns the index of their first value in the projection. */
  add(name: string, rows: Float32Array, bias: Float32Array): number {
    const first = this.#size;
    this.#blocks.push({ name, first, rows, bias });
    this.#size = alignUp(first + bias.length, STYLE_STEP);
    return first;
  }

  /**
   * Adds `fc` of an AdaIN or AdaLN layer as scale, then shift, both [C padded to `step`]. The layer computes (1 + gamma) (n w + b) + beta
   * of the normalised n, where w and b are the norm's own affine parameters (absent = 1, 0): scale = (1 + gamma) w, shift = (1 + gamma) b +
   * beta.
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
    return this.add(`${name}.fc.weight`, rows, bias);
  }

  /** Uploads the projection, its matrix as `weights` stores matrices. */
  async build(weights: WeightLoader, label: string): Promise<StyleProjection> {
    const { device } = weights;
    const bias = new Float32Array(this.#size);
    for (const block of this.#blocks) bias.set(block.bias, block.first);
    return {
      weight: await weights.computed(`${label} style`, this.#blocks, this.#size, this.styleDim),
      bias: device.upload(`${label} style bias`, 'f32', [this.#size], bias),
      size: this.#size,
    };
  }
}

/** Most sentences in a batch. */
export const MAX_SENTENCES = 16;

/** The matrix and bias that compute all values that are linear in a style vector. */
export interface StyleProjection {
  readonly weight: LinearWeight;
  readonly bias: Tensor;
  /** Number of values per style vector. */
  readonly size: number;
}

/** Style vectors of the current batch, and the projection's output. */
export interface Styles {
  /** [MAX_SENTENCES, styleDim]: written before each batch. */
  readonly input: Tensor;
  /** [MAX_SENTENCES, size]. */
  readonly output: Tensor;
}

/** Allocates the input and output of a projection. */
export function createStyles(device: Device, label: string, styleDim: number, { size }: Pick<StyleProjection, 'size'>): Styles {
  return {
    input: device.tensor(`${label} style input`, 'f32', [MAX_SENTENCES, styleDim]),
    output: device.tensor(`${label} style output`, 'f32', [MAX_SENTENCES, size]),
  };
}

/** Number of values of a checkpoint's two style projections, from its headers alone. */
export function styleValues(checkpoint: Checkpoint, { layers, hidden }: KokoroConfig): StyleSizes {
  const norms = (of: RegExp): number =>
    [...checkpoint.names()].filter((name) => name.endsWith('.fc.weight') && of.test(name)).reduce((sum, name) => sum + alignUp(shapeOf(checkpoint, name)[0]!, STYLE_STEP), 0); // prettier-ignore
  // LSTMs of the duration encoder, of the durations and of the curves: each has a bias for each gate, in two directions.
  const lstms = (layers + 2) * alignUp(4 * hidden, STYLE_STEP);
  return { prosodyStyle: { size: norms(/^predictor\./) + lstms }, decoderStyle: { size: norms(/^decoder\./) } };
}

/** Sizes of the style projections, for allocating a workspace. */
export interface StyleSizes {
  readonly prosodyStyle: Pick<StyleProjection, 'size'>;
  readonly decoderStyle: Pick<StyleProjection, 'size'>;
}

/** Computes a projection's output for the first `sentences` style vectors. */
export function projectStyle(rec: Recorder, { weight, bias }: StyleProjection, { input, output }: Styles, sentences: number): void {
  linear(rec, { x: input, weight, bias, out: output, rows: sentences });
}
