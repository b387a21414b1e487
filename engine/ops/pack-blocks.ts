/** Packs quantised weights: a file's stored blocks become part of a weight on the device. */
import { assert } from '../errors.ts';
import type { Device } from '../gpu/device.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { ceilDiv } from '../util/math.ts';
import { BLOCK, rowWords } from '../weights/block-format.ts';
import type { BlockFormat, ScaleKind } from '../weights/block-format.ts';
import { BLOCK_FORMATS } from '../weights/block-types.ts';
import type { BlockType } from '../weights/block-types.ts';
import { gridOf } from '../weights/grids.ts';
import type { PackTarget } from './weight-fill.ts';
import { weightVariant } from './weight.ts';

/** Kinds of scales, in the order of their numbers in pack_blocks.wgsl. */
const SCALES: readonly ScaleKind[] = ['half', 'half_offset', 'exponent', 'row', 'small', 'small_offset', 'e4m3'];

export const PACK_BLOCKS = defineKernel({
  file: 'load/pack_blocks.wgsl',
  fragments: ({ storage }) => {
    const { layout, grid }: BlockFormat = BLOCK_FORMATS[storage as BlockType];
    return ['lib/packed_words.wgsl', 'lib/stored_bytes.wgsl', ...(grid ? ['lib/stored_grid.wgsl'] : []), `lib/stored_${layout}.wgsl`];
  },
  bindings: { raw: 'read', grid: 'read', packed: 'update', flags: 'update' },
  params: {
    rows: 'u32', first_row: 'u32', row_bytes: 'u32', first_byte: 'u32', blocks: 'u32', out_column: 'u32', beside: 'u32', row_words: 'u32', tensor: 'u32',
  },
  consts: ['STORED_VALUES', 'STORED_BYTES', 'SCALES', 'HAS_OFFSET', 'HAS_SCALES', 'IS_SPREAD', 'SCALE_AT', 'OFFSET_AT'],
  overrides: { WG: 'u32' },
}); // prettier-ignore

/** Puts a type's grid on the device; undefined for types without. */
export function uploadGrid(device: Device, type: BlockType): Tensor | undefined {
  const { grid }: BlockFormat = BLOCK_FORMATS[type];
  const words = grid && gridOf(grid);
  return words && device.upload(`grid of ${grid}`, 'u32', [words.length], words);
}

export interface PackBlocksArgs {
  /** The file's bytes, as u32 words: whole rows of blocks of the part's type. */
  readonly raw: Tensor;
  /** The grid of a type that has one (uploadGrid). */
  readonly grid: Tensor | undefined;
  /** Values per row of `raw`. */
  readonly width: number;
  /** First row of `raw` to pack, and how many. */
  readonly firstRow: number;
  readonly rows: number;
  /** First value of a row to pack, and how many; both at boundaries of the file's blocks. */
  readonly column: number;
  readonly columns: number;
  readonly into: PackTarget;
  /** [tensors] u32: `flags[tensor]` becomes 1 when a scale is such that a value may not be finite. */
  readonly flags: Tensor;
  readonly tensor: number;
}

/** Writes row firstRow + i of `raw` to column into.column + i, in the layout in which kernels read blocks (pack_blocks.wgsl). */
export function packBlocks(rec: Recorder, args: PackBlocksArgs): void {
  const { raw, grid, width, firstRow, rows, column, columns, into, flags, tensor } = args;
  const { packed, beside, column: outColumn } = into;
  const dtype = into.dtype as BlockType;
  const format: BlockFormat = BLOCK_FORMATS[dtype];
  const { values, bytes, scales, places } = format;
  const { storage, consts } = weightVariant({ dtype, place: 'buffer' });
  const WG = rec.caps.family === 'cpu' ? 8 : 64;
  assert(!grid === !format.grid, `${dtype}: ${grid ? 'a' : 'no'} grid`);
  const own = {
    STORED_VALUES: values, STORED_BYTES: bytes, SCALES: SCALES.indexOf(scales), HAS_OFFSET: places.offset === undefined ? 0 : 1,
    HAS_SCALES: places.scales === undefined ? 0 : 1, IS_SPREAD: places.isSpread ? 1 : 0, SCALE_AT: places.scale, OFFSET_AT: places.offset ?? 0,
    CODES_AT: places.codes, HIGH_AT: places.high ?? 0, SIGNS_AT: places.signs ?? 0, SCALES_AT: places.scales ?? 0,
  }; // prettier-ignore
  const blocks = columns / BLOCK;
  const params = {
    rows, first_row: firstRow, row_bytes: (width / values) * bytes, first_byte: (column / values) * bytes, blocks, out_column: outColumn, beside,
    row_words: rowWords(format, blocks).all, tensor,
  }; // prettier-ignore
  const variant = { storage, consts: { ...consts, ...own }, overrides: { WG } };
  rec.dispatch(PACK_BLOCKS, variant, { raw, grid: grid ?? raw, packed, flags }, params, [ceilDiv(rows, WG), blocks]);
}
