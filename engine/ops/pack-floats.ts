/** Packs float weights: a file's raw floats become part of a weight on the device. */
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { ceilDiv } from '../util/math.ts';
import { BLOCK, rowWords } from '../weights/block-format.ts';
import { BLOCK_FORMATS } from '../weights/block-types.ts';
import type { StoredFloat } from '../weights/checkpoint.ts';
import { isBlockType } from '../weights/storage.ts';
import type { PackTarget } from './weight-fill.ts';

/** Numbers of the types in stored_floats.wgsl. */
export const SOURCES: Readonly<Record<StoredFloat, number>> = { F32: 0, F16: 1, BF16: 2 };

/** Four columns times this many are a cache line of 16-bit values. */
const QUADS = 8;

const BINDINGS = { raw: 'read', packed: 'update', flags: 'update' } as const;
const ROWS = { rows: 'u32', first_row: 'u32', width: 'u32', column: 'u32', columns: 'u32', out_column: 'u32' } as const;

export const PACK_FLOATS = defineKernel({
  bindings: BINDINGS,
  params: { ...ROWS, beside: 'u32', tensor: 'u32' },
  file: 'load/pack_floats.wgsl',
  fragments: () => ['lib/stored_floats.wgsl', 'lib/packed_floats.wgsl'],
  overrides: { WG: 'u32', SOURCE: 'u32', HALF: 'bool', QUADS: 'u32', PAIRS: 'bool' },
});

export const QUANTIZE_FLOATS = defineKernel({
  bindings: BINDINGS,
  params: { ...ROWS, beside: 'u32', row_words: 'u32', tensor: 'u32' },
  file: 'load/quantize_floats.wgsl',
  fragments: () => ['lib/packed_words.wgsl', 'lib/stored_floats.wgsl'],
  overrides: { WG: 'u32', SOURCE: 'u32', NIBBLES: 'bool', PAIRS: 'bool' },
});

export const PACK_TAPS = defineKernel({
  file: 'load/pack_taps.wgsl',
  fragments: () => ['lib/stored_floats.wgsl', 'lib/packed_floats.wgsl'],
  bindings: BINDINGS,
  params: {
    rows: 'u32', group: 'u32', row_stride: 'u32', channel_stride: 'u32', channels: 'u32', first_quad: 'u32', tap_quads: 'u32', row_quads: 'u32', kernel: 'u32',
    k_first: 'i32', k_step: 'i32', out_column: 'u32', beside: 'u32', tensor: 'u32',
  },
  overrides: { WG: 'u32', SOURCE: 'u32', HALF: 'bool', QUADS: 'u32', PAIRS: 'bool' },
}); // prettier-ignore

/** A chunk of a file, and the tensors that it is packed into. */
interface Chunk {
  /** The file's bytes, as u32 words: values of type `source`. */
  readonly raw: Tensor;
  readonly source: StoredFloat;
  readonly into: PackTarget;
  /** [tensors] u32: `flags[tensor]` becomes 1 when a value is not finite, or too large for f16 where that, or a scale in it, is stored. */
  readonly flags: Tensor;
  readonly tensor: number;
}

export interface PackFloatsArgs extends Chunk {
  /** Values per row of `raw`. */
  readonly width: number;
  /** First row of `raw` to pack, and how many. */
  readonly firstRow: number;
  readonly rows: number;
  /** First value of a row to pack, and how many. */
  readonly column: number;
  readonly columns: number;
}

/**
 * Writes row firstRow + i of `raw` to column into.column + i: as floats, with packLinear's layout and rounding to the bit, or quantised as
 * by PyPI `gguf`.
 */
export function packFloats(rec: Recorder, args: PackFloatsArgs): void {
  const { raw, source, width, firstRow, rows, column, columns, into, flags, tensor } = args;
  const { dtype, packed, beside } = into;
  const WG = workgroup(rec);
  const inWords = source !== 'F32' && width % 2 === 0 && column % 2 === 0 && columns % 4 === 0;
  const how = { WG, SOURCE: SOURCES[source], PAIRS: inWords ? 1 : 0 };
  const bindings = { raw, packed, flags };
  const common = { rows, first_row: firstRow, width, column, columns, out_column: into.column, tensor };
  if (isBlockType(dtype)) {
    const overrides = { ...how, NIBBLES: dtype === 'Q4_0' ? 1 : 0 };
    const params = { ...common, beside, row_words: rowWords(BLOCK_FORMATS[dtype], columns / BLOCK).all };
    rec.dispatch(QUANTIZE_FLOATS, { overrides }, bindings, params, [ceilDiv(rows, WG), ceilDiv(columns, 2 * BLOCK)]);
  } else {
    const overrides = { ...how, HALF: dtype === 'f16' ? 1 : 0, QUADS };
    rec.dispatch(PACK_FLOATS, { overrides }, bindings, { ...common, beside }, [ceilDiv(rows, WG), ceilDiv(columns, 4 * QUADS)]);
  }
}

/** Layout of a convolution's values in a file, and the taps that each row of the product multiplies. */
export interface TapLayout {
  /** Rows of the product that a chunk provides. */
  readonly rows: number;
  readonly taps: number;
  readonly kernel: number;
  /** Row r is output channel r % group, and its tap t has position kFirst + floor(r / group) + t kStep of the kernel. */
  readonly group: number;
  readonly kFirst: number;
  readonly kStep: number;
  /** Strides, in values, from one output channel to the next, and from one input channel to the next. */
  readonly rowStride: number;
  readonly channelStride: number;
  /** Input channels: their number, and the range in the chunk, whose first is a multiple of 4. */
  readonly inChannels: number;
  readonly firstChannel: number;
  readonly channels: number;
}

/** Writes row r of a float convolution to column into.column + r, with packConv1d's layout and rounding to the bit. */
export function packTaps(rec: Recorder, { raw, source, into, flags, tensor, ...layout }: Chunk & TapLayout): void {
  const WG = workgroup(rec);
  const overrides = { WG, SOURCE: SOURCES[source], HALF: into.dtype === 'f16' ? 1 : 0, QUADS, PAIRS: 0 };
  const { rows, taps, kernel, group, kFirst, kStep, rowStride, channelStride, inChannels, firstChannel, channels } = layout;
  const tapQuads = ceilDiv(inChannels, 4);
  const params = {
    rows, group, row_stride: rowStride, channel_stride: channelStride, channels, first_quad: firstChannel / 4, tap_quads: tapQuads,
    row_quads: taps * tapQuads, kernel, k_first: kFirst, k_step: kStep, out_column: into.column, beside: into.beside, tensor,
  }; // prettier-ignore
  const grid = [ceilDiv(rows, WG), ceilDiv(channels, 4 * QUADS), taps];
  rec.dispatch(PACK_TAPS, { overrides }, { raw, packed: into.packed, flags }, params, grid);
}

function workgroup({ caps }: Recorder): number {
  return caps.family === 'cpu' ? 8 : 64;
}
