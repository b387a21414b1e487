/** The two residual blocks of the decoder (istftnet.py in hexgrad/kokoro): weights, loading, forward. */
import type { Recorder } from '../../gpu/recorder.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import { adain } from '../../ops/adain.ts';
import type { AdainScratch } from '../../ops/adain.ts';
import { conv1d } from '../../ops/conv.ts';
import type { ConvWeight } from '../../ops/conv.ts';
import { convTranspose1dDepthwise } from '../../ops/depthwise.ts';
import type { DepthwiseWeight } from '../../ops/depthwise.ts';
import type { SequenceStyles, SpanRows } from '../../ops/row-spans.ts';
import { alignUp } from '../../util/math.ts';
import { loadConv, loadDepthwise } from './weights.ts';
import type { KokoroLoader } from './weights.ts';

/** Scratch of both kinds of blocks: flat tensors that are viewed as [capacity, channels]. */
interface SharedScratch {
  /** Rows of every view, constant so that bind groups do not depend on a sentence's length. */
  readonly capacity: number;
  /** The input of convolutions, read by nothing else. */
  readonly normed: Tensor;
  readonly mid: Tensor;
  readonly adain: AdainScratch;
}

/** Scratch of an AdainResBlk1d. */
export interface BlockScratch extends SharedScratch {
  readonly pooled: Tensor;
  readonly shortcut: Tensor;
}

/** Scratch of an AdaINResBlock1. */
export interface SnakeScratch extends SharedScratch {
  /** Holds the running sum alternately with the block's `out`. With an odd number of layers it may be x itself. */
  readonly sum: Tensor;
}

/** AdainResBlk1d: two convolutions of kernel 3 with AdaIN and leaky ReLU before each; the second of a pair may double the length. */
export interface AdainResBlock {
  readonly dimIn: number;
  readonly dimOut: number;
  readonly norm1: number;
  readonly norm2: number;
  readonly conv1: ConvWeight;
  readonly conv2: ConvWeight;
  readonly shortcut: ConvWeight | undefined;
  readonly pool: DepthwiseWeight | undefined;
}

const KERNEL = 3;

/** Loads an AdainResBlk1d; `upsample` doubles the length. */
export async function loadAdainResBlock(
  loader: KokoroLoader,
  name: string,
  { dimIn, dimOut, upsample = false }: { readonly dimIn: number; readonly dimOut: number; readonly upsample?: boolean },
): Promise<AdainResBlock> {
  const { weights, style } = loader;
  return {
    dimIn,
    dimOut,
    norm1: await style.addNorm(weights, `${name}.norm1`, dimIn),
    norm2: await style.addNorm(weights, `${name}.norm2`, dimOut),
    conv1: await loadConv(loader, `${name}.conv1`, { outChannels: dimOut, inChannels: dimIn, kernel: KERNEL }),
    conv2: await loadConv(loader, `${name}.conv2`, { outChannels: dimOut, inChannels: dimOut, kernel: KERNEL }),
    shortcut:
      dimIn === dimOut ? undefined : await loadConv(loader, `${name}.conv1x1`, { outChannels: dimOut, inChannels: dimIn, kernel: 1 }),
    pool: upsample ? await loadDepthwise(loader, `${name}.pool`, dimIn, KERNEL) : undefined,
  };
}

export interface BlockArgs {
  /** [capacity, >= dimIn padded to 4] f32. */
  readonly x: Tensor;
  /** [capacity, >= dimOut] f32; the result goes to its first columns. */
  readonly out: Tensor;
  readonly rows: SpanRows;
  /** Outputs of the style projection. */
  readonly style: SequenceStyles;
  readonly scratch: BlockScratch;
}

/** out = (residual(x) + shortcut(x)) / sqrt(2); returns the output rows. The shortcut's nearest-neighbour doubling is an index. */
export function adainResBlock(rec: Recorder, block: AdainResBlock, { x, out, rows, style, scratch }: BlockArgs): SpanRows {
  const view = (tensor: Tensor, channels: number): Tensor => tensor.reshape([scratch.capacity, channels]);
  const normed1 = view(block.pool ? scratch.mid : scratch.normed, alignUp(block.dimIn, 4));
  const texels = scratch.normed;
  const normed2 = view(scratch.normed, block.dimOut);
  const mid = view(scratch.mid, block.dimOut);
  adain(rec, { x, out: normed1, style, styleFirst: block.norm1, channels: block.dimIn, rows, scratch: scratch.adain });
  let input = normed1;
  let outRows = rows;
  if (block.pool) {
    input = view(scratch.pooled, alignUp(block.dimIn, 4));
    outRows = convTranspose1dDepthwise(rec, { x: normed1, weight: block.pool, out: input, rows, stride: 2, padding: 1, outputPadding: 1 });
  }
  conv1d(rec, { x: input, texels, weight: block.conv1, out: mid, padding: 1, rows: outRows });
  let residual = x;
  if (block.shortcut) {
    residual = view(scratch.shortcut, block.dimOut);
    conv1d(rec, { x, texels, weight: block.shortcut, out: residual, rows });
  }
  adain(rec, { x: mid, out: normed2, style, styleFirst: block.norm2, channels: block.dimOut, rows: outRows, scratch: scratch.adain });
  const residualRepeat = outRows.unit / rows.unit;
  conv1d(rec, { x: normed2, weight: block.conv2, out, padding: 1, rows: outRows, residual, residualRepeat, scale: Math.SQRT1_2 });
  return outRows;
}

/** AdaINResBlock1: for each dilation two convolutions with AdaIN and Snake before each, added to the input. */
export interface SnakeResBlock {
  readonly channels: number;
  readonly kernel: number;
  readonly layers: readonly SnakeLayer[];
}

interface SnakeLayer {
  readonly dilation: number;
  readonly norm1: number;
  readonly norm2: number;
  /** [2, C]: alpha, 1 / alpha. */
  readonly alpha1: Tensor;
  readonly alpha2: Tensor;
  readonly conv1: ConvWeight;
  readonly conv2: ConvWeight;
}

/** Loads an AdaINResBlock1. */
export async function loadSnakeResBlock(
  loader: KokoroLoader,
  name: string,
  { channels, kernel, dilations }: { readonly channels: number; readonly kernel: number; readonly dilations: readonly number[] },
): Promise<SnakeResBlock> {
  const { weights, style } = loader;
  const shape = { outChannels: channels, inChannels: channels, kernel };
  const alpha = async (path: string): Promise<Tensor> => {
    const values = await weights.data(path, [1, channels, 1]);
    const both = new Float32Array(2 * channels);
    both.set(values);
    both.set(values.map((a) => 1 / a), channels); // prettier-ignore
    return weights.device.upload(path, 'f32', [2, channels], both);
  };
  const layers: SnakeLayer[] = [];
  for (const [i, dilation] of dilations.entries()) {
    layers.push({
      dilation,
      norm1: await style.addNorm(weights, `${name}.adain1.${i}`, channels),
      norm2: await style.addNorm(weights, `${name}.adain2.${i}`, channels),
      alpha1: await alpha(`${name}.alpha1.${i}`),
      alpha2: await alpha(`${name}.alpha2.${i}`),
      conv1: await loadConv(loader, `${name}.convs1.${i}`, shape),
      conv2: await loadConv(loader, `${name}.convs2.${i}`, shape),
    });
  }
  return { channels, kernel, layers };
}

/** out [capacity, C] = block(x [capacity, C]). */
export function snakeResBlock(
  rec: Recorder,
  { channels, kernel, layers }: SnakeResBlock,
  { x, out, rows, style, scratch }: Omit<BlockArgs, 'scratch'> & { readonly scratch: SnakeScratch },
): void {
  const view = (tensor: Tensor): Tensor => tensor.reshape([scratch.capacity, channels]);
  const normed = view(scratch.normed);
  const mid = view(scratch.mid);
  const other = view(scratch.sum);
  let sum = x;
  layers.forEach(({ dilation, norm1, norm2, alpha1, alpha2, conv1, conv2 }, i) => {
    // The last layer must write to `out`.
    const next = (layers.length - i) % 2 === 1 ? out : other;
    const common = { style, channels, rows, scratch: scratch.adain };
    adain(rec, { ...common, x: sum, out: normed, styleFirst: norm1, alpha: alpha1 });
    conv1d(rec, { x: normed, weight: conv1, out: mid, padding: (dilation * (kernel - 1)) / 2, dilation, rows });
    adain(rec, { ...common, x: mid, out: normed, styleFirst: norm2, alpha: alpha2 });
    conv1d(rec, { x: normed, weight: conv2, out: next, padding: (kernel - 1) / 2, rows, residual: sum });
    sum = next;
  });
}
