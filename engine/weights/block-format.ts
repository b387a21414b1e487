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
  /** Takes the block at a byte apart. */
  readonly open: (bytes: DataView, at: number, block: OpenBlock) => void;
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
    format.open(view, at, block);
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

/** Rows that are packed together: as many as fill a cache line of words. */
const TILE = 16;

/**
 * Stored rows for the device: [words of a row][padded] u32, so that neighbouring rows (columns of the product) lie beside each other. A code's low bits are in
 * a word of their block with those of its neighbours: word w of 4-bit codes has codes 8 w + i in nibble 2 i and 8 w + 4 + i in nibble 2 i + 1, so that a
 * shift and a mask leave four codes in the four bytes; 2 bits alike, 16 codes a word. The high bits of quad i are bits i, or 2 i, of the bytes.
 */
export function packBlocks(format: BlockFormat, bytes: Uint8Array, rows: number, columns: number, padded: number): Uint32Array {
  const blocks = columns / BLOCK;
  const words = rowWords(format, blocks);
  const out = new Uint32Array(words.all * padded);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const stored = columns / format.values;
  const block = openBlock();
  const inOne = format.values / BLOCK;
  for (let tile = 0; tile < rows; tile += TILE) {
    const last = Math.min(rows, tile + TILE);
    for (let s = 0; s < stored; s++) {
      for (let row = tile; row < last; row++) {
        format.open(view, (row * stored + s) * format.bytes, block);
        for (let b = 0; b < inOne; b++)
          packCodes(format, block.codes, b * 8, out, (s * inOne + b) * (format.low + format.high) * padded + row, padded);
        packScales(format, block, s * inOne, words, out, row, padded);
      }
    }
  }
  return out;
}

/** Eight quads from `first` on. */
function packCodes({ low, high }: BlockFormat, codes: Uint32Array, first: number, out: Uint32Array, at: number, padded: number): void {
  const perWord = 8 / low;
  const mask = low === 2 ? 0x03030303 : low === 4 ? 0x0f0f0f0f : 0xffffffff;
  for (let w = 0; w < low; w++) {
    let word = 0;
    for (let q = 0; q < perWord; q++) word |= (codes[first + w * perWord + q]! & mask) << (q * low);
    out[at + w * padded] = word;
  }
  for (let w = 0; w < high; w++) {
    let word = 0;
    const quads = 8 / high;
    for (let q = 0; q < quads; q++)
      word |= ((codes[first + w * quads + q]! >>> low) & (high === 1 ? 0x01010101 : 0x03030303)) << (q * high);
    out[at + (low + w) * padded] = word;
  }
}

/** The scales of an open block whose first block on the device is `block`. No function is made in here: that would take longer than all else. */
function packScales(
  format: BlockFormat,
  open: OpenBlock,
  block: number,
  words: ReturnType<typeof rowWords>,
  out: Uint32Array,
  row: number,
  padded: number,
): void {
  const { scales: kind, group } = format;
  const start = words.codes * padded + row;
  if (kind === 'half') out[start + (block >> 1) * padded]! |= open.scale << ((block & 1) * 16);
  else if (kind === 'half_offset') out[start + block * padded] = open.scale | (open.offset << 16);
  else if (kind === 'row') out[start] = open.scale;
  else if (kind === 'exponent') out[start + (block >> 2) * padded]! |= open.scale << ((block & 3) * 8);
  else {
    const groups = format.values / group;
    // Groups of 16 with offsets have both numbers in a byte.
    const bits = kind === 'small' || group === 16 ? 8 : 16;
    const inWord = 32 / bits;
    const first = start + ((block * (BLOCK / group)) / inWord) * padded;
    for (let g = 0; g < groups; g++) {
      const both = kind === 'small' ? open.scales[g]! & 0xff : open.scales[g]! | (open.offsets[g]! << (bits / 2));
      out[first + Math.floor(g / inWord) * padded]! |= both << ((g % inWord) * bits);
    }
    out[start + (words.scales + (block >> 3)) * padded] = open.scale | (open.offset << 16);
  }
}

/** The largest power of two whose product with any code is a number of f32. */
const LARGEST_EXPONENT = 252;

/** The largest exponent in the bits of a row's scale, whose product with any code is a number of f32. */
const LARGEST_FIELD = 246;

/** Index of a block whose values may not all be finite; -1 when there is none. Cheap: looks at the scales alone. */
export function suspiciousBlock(format: BlockFormat, bytes: Uint8Array): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const block = openBlock();
  for (let i = 0, at = 0; at < bytes.length; i++, at += format.bytes) {
    format.open(view, at, block);
    if (isSuspicious(format.scales, block)) return i;
  }
  return -1;
}

function isSuspicious(kind: ScaleKind, { scale, offset }: OpenBlock): boolean {
  if (kind === 'exponent') return scale > LARGEST_EXPONENT;
  if (kind === 'row') return ((scale >>> 23) & 0xff) > LARGEST_FIELD;
  return (scale & 0x7c00) === 0x7c00 || (offset & 0x7c00) === 0x7c00;
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
