/**
 * Weights that are stored in blocks of a few bits: how they are taken apart, what they stand for, and how they lie on a device. Every type is the
 * same form, value = d * scale * (code - zero) + offset, so a type is a row of data (block-types.ts) and no type has a kernel of its own.
 */
import { f16Table } from '../util/f16.ts';
import { ceilDiv } from '../util/math.ts';

/** Values along K that a kernel takes at once, whatever the blocks of the file. */
export const BLOCK = 32;

/**
 * Where a group's scale and offset come from. On the device each kind has a fragment (shaders/lib/scales_<kind>.wgsl).
 * - half: an f16 scale a block.
 * - half_offset: an f16 scale and an f16 offset a block.
 * - exponent: a power of two a block, 2^(byte - 128).
 * - row: an f32 scale for all blocks of a row, each of which has it in the stored form.
 * - small: an f16 scale for 256 values times a signed byte a group.
 * - small_offset: the same with f16 for offsets, which are subtracted, and both numbers of a group in 4 bits (groups of 16) or a byte (groups of 32).
 */
export type ScaleKind = 'half' | 'half_offset' | 'exponent' | 'row' | 'small' | 'small_offset';

/** How numbers in blocks are stored. */
export interface BlockFormat {
  /** GGUF's; I8 is not GGUF's. */
  readonly name: string;
  /** Values of a block as stored, and its bytes. */
  readonly values: 32 | 256;
  readonly bytes: number;
  /** Bits of a code, in two planes. */
  readonly low: 2 | 4 | 8;
  readonly high: 0 | 1 | 2;
  /** Values that share a scale. */
  readonly group: 16 | 32;
  readonly scales: ScaleKind;
  /** The code of zero, or what all 16 codes stand for. */
  readonly zero: number;
  readonly table?: readonly number[];
  /** Codes are signed bytes. */
  readonly signed?: boolean;
  /** How codes lie in the stored form: a device has a fragment for each (shaders/lib/stored_<layout>.wgsl). */
  readonly layout: string;
  readonly places: BlockPlaces;
  /** Takes the block at a byte apart. */
  open(bytes: DataView, at: number, block: OpenBlock, places: BlockPlaces): void;
}

/** Bytes from a stored block's beginning: of its scale, its offset, its codes, their upper bits, and the scales of its groups. */
export interface BlockPlaces {
  readonly scale: number;
  readonly offset?: number;
  readonly codes: number;
  readonly high?: number;
  readonly scales?: number;
}

/** A block taken apart; formats fill what their kind of scales has. */
export interface OpenBlock {
  /** Codes in order, four a word, the first in the lowest byte. */
  readonly codes: Uint32Array;
  /** f16 bits of the scale, f32 bits of a row's, or the byte of a power of two. */
  scale: number;
  /** f16 bits. */
  offset: number;
  /** Whole numbers of each group. */
  readonly scales: Int32Array;
  readonly offsets: Int32Array;
}

/** Room for a block of any format. */
export function openBlock(): OpenBlock {
  return { codes: new Uint32Array(64), scale: 0, offset: 0, scales: new Int32Array(16), offsets: new Int32Array(16) };
}

/** Writes the values of whole blocks; each product and each sum is rounded to f32, as PyPI `gguf` does it (gguf/quants.py). */
export function widenBlocks(format: BlockFormat, bytes: Uint8Array, out: Float32Array): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const block = openBlock();
  for (let at = 0, o = 0; o < out.length; at += format.bytes, o += format.values) {
    format.open(view, at, block, format.places);
    for (let group = 0; group * format.group < format.values; group++) widenGroup(format, block, group, out, o + group * format.group);
  }
}

function widenGroup(
  { group: size, scales: kind, zero, table, signed = false }: BlockFormat,
  block: OpenBlock,
  group: number,
  out: Float32Array,
  at: number,
): void {
  const halves = f16Table();
  const d = kind === 'exponent' ? 2 ** (block.scale - 128) : kind === 'row' ? singleOf(block.scale) : halves[block.scale]!;
  const scale = kind === 'small' || kind === 'small_offset' ? Math.fround(d * block.scales[group]!) : d;
  const offset = kind === 'half_offset' ? halves[block.offset]! : -Math.fround(halves[block.offset]! * block.offsets[group]!);
  const hasOffset = hasOffsets(kind);
  for (let i = 0; i < size; i++) {
    const code = (block.codes[(group * size + i) >> 2]! >>> ((i & 3) * 8)) & 0xff;
    const value = scale * (table ? table[code]! : signed ? (code << 24) >> 24 : code - zero);
    out[at + i] = hasOffset ? Math.fround(value) + offset : value;
  }
}

/** The number of f32 with these bits. */
function singleOf(bits: number): number {
  return new Float32Array(Uint32Array.of(bits).buffer)[0]!;
}

/** True where values have something added to the product of scale and code. */
function hasOffsets(kind: ScaleKind): boolean {
  return kind === 'half_offset' || kind === 'small_offset';
}

/** More blocks than a row has. */
const WHOLE_ROW = 2 ** 24;

/** Blocks that share a word of scales on the device. */
export function blocksPerWord({ scales, group }: Pick<BlockFormat, 'scales' | 'group'>): number {
  if (scales === 'half_offset') return 1;
  if (scales === 'row') return WHOLE_ROW;
  return scales === 'exponent' || (scales === 'small' && group === BLOCK) ? 4 : 2;
}

/** True where 256 values share f16 numbers, which have a word of their own. */
export function hasWide({ scales }: Pick<BlockFormat, 'scales'>): boolean {
  return scales === 'small' || scales === 'small_offset';
}

/** Words that a row of so many blocks takes on the device: its codes, its scales, and all with what 256 values share. */
export function rowWords(format: BlockFormat, blocks: number): { readonly codes: number; readonly scales: number; readonly all: number } {
  const codes = blocks * (format.low + format.high);
  const scales = ceilDiv(blocks, blocksPerWord(format));
  return { codes, scales, all: codes + scales + (hasWide(format) ? ceilDiv(blocks, 8) : 0) };
}

/** Rows of signed bytes [rows, width], each with a scale, as stored blocks of I8; width a multiple of 32. */
export function rowBlocks(codes: Uint8Array, scales: Float32Array): Uint8Array {
  const blocks = codes.length / BLOCK;
  const inRow = blocks / scales.length;
  const out = new Uint8Array(blocks * (4 + BLOCK));
  const view = new DataView(out.buffer);
  for (let block = 0; block < blocks; block++) {
    const at = block * (4 + BLOCK);
    view.setFloat32(at, scales[Math.floor(block / inRow)]!, true);
    out.set(codes.subarray(block * BLOCK, (block + 1) * BLOCK), at + 4);
  }
  return out;
}
