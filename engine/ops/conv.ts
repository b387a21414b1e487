import { assert } from '../errors.ts';
import type { Caps } from '../gpu/caps.ts';
import type { Device } from '../gpu/device.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { alignUp, ceilDiv } from '../util/math.ts';
import type { Range } from '../util/math.ts';
import { ACTIVATIONS } from './activation.ts';
import type { Activation } from './activation.ts';
import { hasShuffles, isQuad } from './weight-place.ts';
import type { WordPlace } from './weight-place.ts';
import { avoids } from './replaceable.ts';
import { packLinear } from './pack-linear.ts';
import { floatFragment } from './weight.ts';
import { outputRows, rowShape } from './row-spans.ts';
import type { RowShape, Rows, SpanRows } from './row-spans.ts';
import type { TapLayout } from './pack-floats.ts';
import type { LinearPart, LinearWeight } from './weight.ts';
import type { FloatType } from '../weights/storage.ts';

/** Convolution weights as a matrix [outChannels, taps * inChannels padded to 4] in the layout of `packLinear`. */
export interface ConvWeight {
  readonly matrix: LinearWeight;
  readonly inChannels: number;
  /** Columns of the matrix: output channels, times `stride` for a transposed convolution. */
  readonly columns: number;
  readonly outChannels: number;
  readonly taps: number;
  /** [columns] f32. */
  readonly bias?: Tensor;
}

/** A transposed convolution: one GEMM whose rows are `stride` output positions. */
export interface ConvTransposeWeight extends ConvWeight {
  readonly stride: number;
  readonly kernel: number;
}

export interface ConvShape {
  readonly outChannels: number;
  readonly inChannels: number;
  readonly kernel: number;
}

/** Maps a convolution's weights in a file, rows of `fileWidth` values, to the matrix [columns, depth] that they become. */
export interface TapOrder {
  readonly columns: number;
  readonly depth: number;
  readonly fileRows: number;
  readonly fileWidth: number;
  /** Layout of a range of the file's rows; the first is a multiple of 4. */
  of(rows: Range): TapLayout & { readonly outColumn: number };
}

/** The order of a Conv1d.weight [outChannels, inChannels, kernel]: row n of the matrix has output channel n, tap by tap. */
export function tapsOf({ outChannels, inChannels, kernel }: ConvShape): TapOrder {
  const fileWidth = inChannels * kernel;
  const layout = { taps: kernel, kernel, group: outChannels, kFirst: 0, kStep: 1, rowStride: fileWidth, channelStride: kernel };
  return {
    columns: outChannels,
    depth: kernel * alignUp(inChannels, 4),
    fileRows: outChannels,
    fileWidth,
    of: ({ from, to }) => ({ ...layout, rows: to - from, outColumn: from, inChannels, firstChannel: 0, channels: inChannels }),
  };
}

/**
 * The order of a ConvTranspose1d.weight [inChannels, outChannels, kernel]. Output position s * m + p - padding takes tap p of input m, tap
 * p + s of input m - 1 and so on, so row m of a convolution with ceil(kernel / s) taps and s * outChannels columns holds s output
 * positions: no scatter and no col2im.
 */
export function transposedTaps({ outChannels, inChannels, kernel, stride }: ConvShape & { readonly stride: number }): TapOrder {
  const taps = ceilDiv(kernel, stride);
  const columns = stride * outChannels;
  const fileWidth = outChannels * kernel;
  const reversed = { kFirst: (taps - 1) * stride, kStep: -stride };
  const layout = {
    rows: columns,
    outColumn: 0,
    taps,
    kernel,
    group: outChannels,
    ...reversed,
    rowStride: kernel,
    channelStride: fileWidth,
  };
  return {
    columns,
    depth: taps * alignUp(inChannels, 4),
    fileRows: inChannels,
    fileWidth,
    of: ({ from, to }) => ({ ...layout, inChannels, firstChannel: from, channels: to - from }),
  };
}

/** Completes a convolution's weights from a matrix in the order of `tapsOf`. */
export function convWeight(
  device: Device,
  label: string,
  matrix: LinearWeight,
  { outChannels, inChannels, kernel }: ConvShape,
  bias?: Float32Array,
): ConvWeight {
  return biased(device, label, matrix, { inChannels, columns: outChannels, outChannels, taps: kernel }, bias);
}

/** Completes a transposed convolution's weights from a matrix in the order of `transposedTaps`. */
export function convTransposeWeight(
  device: Device,
  label: string,
  matrix: LinearWeight,
  { outChannels, inChannels, kernel, stride }: ConvShape & { readonly stride: number },
  bias?: Float32Array,
): ConvTransposeWeight {
  const columns = stride * outChannels;
  const biases = bias && Float32Array.from({ length: columns }, (_, i) => bias[i % outChannels]!);
  const shape = { inChannels, columns, outChannels, taps: ceilDiv(kernel, stride) };
  return { ...biased(device, label, matrix, shape, biases), stride, kernel };
}

function biased(
  device: Device,
  label: string,
  matrix: LinearWeight,
  shape: Omit<ConvWeight, 'matrix' | 'bias'>,
  bias: Float32Array | undefined,
): ConvWeight {
  assert(
    matrix.parts.length === 1,
    `${label}: a convolution of [${matrix.outFeatures}, ${matrix.inFeatures}] exceeds the adapter's binding limit`,
  );
  return bias ? { ...shape, matrix, bias: device.upload(`${label} bias`, 'f32', [bias.length], bias) } : { ...shape, matrix };
}

/** Uploads weights from the host, given as a Conv1d.weight [outChannels, inChannels, kernel] and its bias, in kernel layout. */
export function packConv1d(
  device: Device,
  label: string,
  data: Float32Array,
  shape: ConvShape,
  bias?: Float32Array,
  dtype: FloatType = 'f32',
  place: WordPlace = 'buffer',
): ConvWeight {
  const { outChannels, inChannels, kernel } = shape;
  assert(
    data.length === outChannels * inChannels * kernel,
    `${label}: ${data.length} weights for [${outChannels}, ${inChannels}, ${kernel}]`,
  );
  const padded = alignUp(inChannels, 4);
  const rows = new Float32Array(outChannels * kernel * padded);
  for (let n = 0; n < outChannels; n++) {
    for (let t = 0; t < kernel; t++) {
      for (let c = 0; c < inChannels; c++) rows[(n * kernel + t) * padded + c] = data[(n * inChannels + c) * kernel + t]!;
    }
  }
  return convWeight(device, label, packLinear(device, label, rows, outChannels, kernel * padded, dtype, place), shape, bias);
}

const SPEC = {
  bindings: { x: 'read', weight: 'read', bias: 'read', residual: 'read', spans: 'read', out: 'write' },
  params: {
    rows_unit: 'u32', rows: 'u32', rows_in_unit: 'u32', rows_in: 'u32', n: 'u32', n_weight: 'u32', c4: 'u32', x_stride4: 'u32', taps: 'u32', stride: 'u32', padding: 'u32', dilation: 'u32',
    out_stride: 'u32', out_column: 'u32', out_shift: 'u32', out_size: 'u32', residual_stride: 'u32', residual_repeat: 'u32', scale: 'f32',
  },
  overrides: { ACTIVATION: 'u32', HAS_BIAS: 'bool', HAS_RESIDUAL: 'bool', SPANS: 'bool' },
} as const; // prettier-ignore

export const CONV1D_TILE = defineKernel({
  ...SPEC,
  file: 'conv/conv1d_tile.wgsl',
  fragments: (v) => [floatFragment(v), 'lib/activation.wgsl', 'lib/row_spans.wgsl', 'lib/conv_store.wgsl'],
  consts: ['TILE_M', 'TILE_N'],
  overrides: { WG: 'u32', ...SPEC.overrides },
});

export const CONV1D_BROADCAST = defineKernel({
  ...SPEC,
  file: 'conv/conv1d_broadcast.wgsl',
  fragments: (v) => [floatFragment(v), 'lib/activation.wgsl', 'lib/row_spans.wgsl', 'lib/conv_store.wgsl'],
  consts: ['LANES', 'TILE_N', 'ROW_BLOCKS'],
});

export const CONV1D_TEXELS = defineKernel({
  ...SPEC,
  bindings: { ...SPEC.bindings, x: 'texels', weight: 'texels' },
  file: 'conv/conv1d_texels.wgsl',
  fragments: ({ storage = 'f32' }) => [
    `lib/conv_columns_${storage}.wgsl`,
    'lib/activation.wgsl',
    'lib/row_spans.wgsl',
    'lib/conv_store.wgsl',
  ],
  consts: ['LANES', 'ROW_BLOCKS'],
});

export const CONV1D_QUAD = defineKernel({
  ...SPEC,
  file: 'conv/conv1d_quad.wgsl',
  fragments: (v) => [floatFragment(v, 4), 'lib/quad.wgsl', 'lib/activation.wgsl', 'lib/row_spans.wgsl', 'lib/conv_store.wgsl'],
});

export interface Conv1dArgs {
  /** [L, C] f32; C = inChannels padded to 4 (zeros in the padding), or wider: the columns after them are not read. */
  readonly x: Tensor;
  readonly weight: ConvWeight;
  /** [L', N] f32, or wider with `outColumn`; another tensor than x and residual. */
  readonly out: Tensor;
  readonly stride?: number;
  readonly padding?: number;
  readonly dilation?: number;
  readonly activation?: Activation;
  /** [L', >= N] f32, added after the activation. */
  readonly residual?: Tensor | undefined;
  /** Output rows that share a row of the residual (a shortcut past an upsampling); default 1. */
  readonly residualRepeat?: number;
  /** Factor on everything; default 1. */
  readonly scale?: number;
  /**
   * Texture that rows of x are copied to, where x is a buffer and the weights are not: made by `convInput`, for at least as many values as
   * x has.
   */
  readonly texels?: Tensor;
  /** Rows of x to read (the tensor may have more); default all. */
  readonly rows?: Rows;
  /** First column of `out` that is written; default 0. */
  readonly outColumn?: number;
}

/** Number of output positions of a convolution over `rows` inputs. */
export function convRows(rows: number, kernel: number, { stride = 1, padding = 0, dilation = 1 }: Partial<Conv1dArgs> = {}): number {
  return Math.floor((rows + 2 * padding - dilation * (kernel - 1) - 1) / stride) + 1;
}

/**
 * out = (act(conv(x) + bias) + residual) * scale, on rows of channels (NLC); returns the output rows, of each sequence where `rows` has
 * several.
 */
export function conv1d(rec: Recorder, args: Conv1dArgs & { readonly rows: SpanRows }): SpanRows;
export function conv1d(rec: Recorder, args: Conv1dArgs & { readonly rows?: number }): number;
export function conv1d(rec: Recorder, args: Conv1dArgs): Rows {
  const { x, weight, out, stride = 1, padding = 0, dilation = 1, residual, outColumn = 0 } = args;
  const input = args.rows ?? x.shape[0] ?? 0;
  const rows = outputRows(input, (count) => convRows(count, weight.taps, { stride, padding, dilation }), 1 / stride);
  const shape = rowShape(rows);
  const outStride = out.shape.at(-1) ?? 0;
  assert(shape.rows + shape.unit >= 1 && shape.end <= (out.shape[0] ?? 0), `conv1d: ${shape.end} output rows for ${out.label} [${out.shape.join(', ')}]`); // prettier-ignore
  assert(outColumn + weight.columns <= outStride, `conv1d: ${weight.columns} channels at column ${outColumn} of ${outStride}`);
  const residualStride = residual?.shape.at(-1) ?? 0;
  const outSize = shape.rows * outStride;
  dispatchConv(rec, args, { shape, input: rowShape(input), stride, padding, dilation, outStride, outColumn, outShift: 0, outSize, residualStride }); // prettier-ignore
  return rows;
}

export type ConvTranspose1dArgs = Pick<Conv1dArgs, 'x' | 'texels' | 'out' | 'activation' | 'rows'> & {
  readonly weight: ConvTransposeWeight;
  readonly padding?: number;
  readonly outputPadding?: number;
};

/** Transposed convolution [L, Cin] -> [(L - 1) stride - 2 padding + kernel + outputPadding, Cout]; returns the output rows. */
export function convTranspose1d(rec: Recorder, args: ConvTranspose1dArgs & { readonly rows: SpanRows }): SpanRows;
export function convTranspose1d(rec: Recorder, args: ConvTranspose1dArgs & { readonly rows?: number }): number;
export function convTranspose1d(rec: Recorder, args: ConvTranspose1dArgs): Rows {
  const { x, weight, out, padding = 0, outputPadding = 0 } = args;
  const input = args.rows ?? x.shape[0] ?? 0;
  const { stride, kernel, taps, columns, outChannels } = weight;
  const rows = outputRows(input, (count) => (count - 1) * stride - 2 * padding + kernel + outputPadding, stride);
  const shape = rowShape(rows);
  assert(out.shape.at(-1) === outChannels, `conv_transpose1d: out ${out.label} has ${out.shape.at(-1)} columns, expected ${outChannels}`);
  assert(shape.rows + shape.unit >= 1 && shape.end <= (out.shape[0] ?? 0), `conv_transpose1d: ${shape.end} output rows for ${out.label} [${out.shape.join(', ')}]`); // prettier-ignore
  assert(shape.unit === 0 || shape.rows >= 0, `conv_transpose1d: sequences that end ${-shape.rows} rows before their room`);
  const grouped = rowShape(outputRows(rows, (count) => ceilDiv(count + padding, stride), 1 / stride));
  dispatchConv(rec, args, {
    shape: grouped, input: rowShape(input), stride: 1, padding: taps - 1, dilation: 1,
    outStride: columns, outColumn: 0, outShift: padding * outChannels, outSize: shape.rows * outChannels, residualStride: 0,
  }); // prettier-ignore
  return rows;
}

/** Place of the weights of convolutions that read rows from a texture, which is faster on lavapipe (docs/decisions/convolutions.md). */
export function convPlace(caps: Caps): WordPlace {
  const canRead = hasShuffles(caps) && caps.maxTexels > 0;
  return canRead && !avoids(caps, 'conv1d_texels') && !avoids(caps, 'quads_texture') ? 'texture' : 'buffer';
}

/**
 * Allocates the input of convolutions with weights in `convPlace`: room for `values` values, which only `adain` and `averageLeaky` can
 * write.
 */
export function convInput(device: Device, label: string, values: number): Tensor {
  return convPlace(device.caps) === 'texture' ? device.texels(label, [values]) : device.tensor(label, 'f32', [values]);
}

interface Geometry {
  /** Output rows; for a transposed convolution in groups of `stride`. */
  readonly shape: RowShape;
  readonly input: RowShape;
  readonly stride: number;
  readonly padding: number;
  readonly dilation: number;
  readonly outStride: number;
  readonly outColumn: number;
  readonly outShift: number;
  readonly outSize: number;
  readonly residualStride: number;
}

/**
 * Register tiles. On a software adapter a workgroup is one SIMD register (test/bench/SPEED.md), with 24 positions by 32 columns where rows
 * are exchanged by shuffles (docs/decisions/convolutions.md has the cost of more); on a GPU a tile takes a workgroup of 64.
 */
const CPU = { wg: 8, tileN: 4, tileM: 4, rowBlocks: 3 } as const;
const GPU = { wg: 64, tileN: 1, tileM: 8 } as const;
/** Positions and columns per workgroup of CONV1D_QUAD. */
const QUAD_TILE = { positions: 16, columns: 32 } as const;

type Fused = Pick<Conv1dArgs, 'x' | 'texels' | 'weight' | 'out' | 'activation' | 'residual' | 'residualRepeat' | 'scale'>;

function dispatchConv(
  rec: Recorder,
  { x, texels, weight, out, activation = 'none', residual, residualRepeat = 1, scale = 1 }: Fused,
  g: Geometry,
): void {
  const { matrix, bias, columns, inChannels, taps } = weight;
  const xStride = x.shape.at(-1) ?? 0;
  assert(xStride % 4 === 0 && xStride >= inChannels, `conv1d: ${x.label} has ${xStride} columns for ${inChannels} channels`);
  const part = matrix.parts[0] as LinearPart;
  const { longest, count } = g.shape;
  const { caps } = rec;
  const lanes = caps.subgroupMinSize;
  const broadcast = hasShuffles(caps) && !avoids(caps, 'conv1d_broadcast');
  const shape = caps.family === 'cpu' ? CPU : GPU;
  const wg = broadcast ? lanes : shape.wg;
  const tileN = Math.min(shape.tileN, ceilDiv(columns, wg));
  const fused = {
    ACTIVATION: ACTIVATIONS[activation],
    HAS_BIAS: bias ? 1 : 0,
    HAS_RESIDUAL: residual ? 1 : 0,
    SPANS: g.shape.table ? 1 : 0,
  };
  // Bound in place of tensors that are not read: it must be a buffer other than `out`.
  const spare = x.texture ? rec.device.scratch('unread', 'f32', 4) : x;
  const bindings = { x, weight: part.weight, bias: bias ?? spare, residual: residual ?? spare, spans: g.shape.table ?? spare, out };
  const params = {
    rows_unit: g.shape.unit, rows: g.shape.rows, rows_in_unit: g.input.unit, rows_in: g.input.rows, n: columns, n_weight: part.padded, c4: ceilDiv(inChannels, 4), x_stride4: xStride / 4, taps,
    stride: g.stride, padding: g.padding, dilation: g.dilation, out_stride: g.outStride, out_column: g.outColumn, out_shift: g.outShift,
    out_size: g.outSize, residual_stride: g.residualStride, residual_repeat: residualRepeat, scale,
  }; // prettier-ignore
  if (part.place === 'texture') {
    const rows = x.texture ? x : copied(rec, x, texels, g.input.end);
    const variant = { storage: part.dtype, consts: { LANES: lanes, ROW_BLOCKS: CPU.rowBlocks }, overrides: fused, subgroups: true };
    const grid = [ceilDiv(longest, lanes * CPU.rowBlocks), ceilDiv(columns, lanes * CPU.tileN), count];
    rec.dispatch(CONV1D_TEXELS, variant, { ...bindings, x: rows }, params, grid);
  } else if (isQuad(caps) && !avoids(caps, 'conv1d_quad')) {
    const variant = { storage: part.dtype, overrides: fused, subgroups: true };
    const grid = [ceilDiv(longest, QUAD_TILE.positions), ceilDiv(columns, QUAD_TILE.columns), count];
    rec.dispatch(CONV1D_QUAD, variant, bindings, params, grid);
  } else if (broadcast) {
    const variant = {
      storage: part.dtype,
      consts: { LANES: lanes, TILE_N: tileN, ROW_BLOCKS: CPU.rowBlocks },
      overrides: fused,
      subgroups: true,
    };
    const grid = [ceilDiv(longest, lanes * CPU.rowBlocks), ceilDiv(columns, lanes * tileN), count];
    rec.dispatch(CONV1D_BROADCAST, variant, bindings, params, grid);
  } else {
    const variant = { storage: part.dtype, consts: { TILE_M: shape.tileM, TILE_N: tileN }, overrides: { ...fused, WG: wg } };
    rec.dispatch(CONV1D_TILE, variant, bindings, params, [ceilDiv(longest, shape.tileM), ceilDiv(columns, wg * tileN), count]);
  }
}

/** Copies the first rows of x to a texture. */
function copied(rec: Recorder, x: Tensor, texels: Tensor | undefined, rows: number): Tensor {
  assert(texels?.texture, `conv1d: ${x.label} lies in a buffer, the weights in a texture`);
  rec.fill(x.reshape([rows, x.shape.at(-1)!]), texels);
  return texels.reshape(x.shape);
}
