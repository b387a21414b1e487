/**
 * Block-quantised weights: how blocks are decoded, what values they stand for, and how they lie on a device. Every type has the same form,
 * value = d * scale * (code - zero) + offset, so a type is a row of data (block-types.ts) and needs no kernel of its own.
 */
import { f16Table } from '../util/f16.ts';
import { ceilDiv } from '../util/math.ts';

/** Values along K that a kernel processes at once, whatever the file's block size. */
export const BLOCK = 32;

/**
 * Where a group's scale and offset come from. On the device each kind has a fragment (shaders/lib/scales_<kind>.wgsl).
 * - half: an f16 scale per block.
 * - half_offset: an f16 scale and an f16 offset per block.
 * - exponent: a power of two per block, 2^(byte - 128).
 * - row: an f32 scale per row, which each of the row's blocks repeats in the stored form.
 * - small: an f16 scale per 256 values, times a signed byte per group.
 * - small_offset: an f16 scale and an f16 offset per 256 values, each times a number per group; the offset is subtracted. These numbers
 * have 4 bits (groups of 16) or a byte (groups of 32).
 */
export type ScaleKind = 'half' | 'half_offset' | 'exponent' | 'row' | 'small' | 'small_offset';

/** A block-quantised type: sizes, layout and decoder of its blocks. */
export interface BlockFormat {
  /** ggml's name of the type; I8 is our own. */
  readonly name: string;
  /** Values and bytes of a stored block. */
  readonly values: 32 | 256;
  readonly bytes: number;
  /** Bits of a code, in a low and a high plane. */
  readonly low: 2 | 4 | 8;
  readonly high: 0 | 1 | 2;
  /** Values that share a group scale. */
  readonly group: 16 | 32;
  readonly scales: ScaleKind;
  /** The code that means zero; `table`: the values of all 16 codes instead. */
  readonly zero: number;
  readonly table?: readonly number[];
  /** Codes are signed bytes. */
  readonly signed?: boolean;
  /** Layout of the codes in the stored form; each has a fragment (shaders/lib/stored_<layout>.wgsl). */
  readonly layout: string;
  readonly places: BlockPlaces;
  /** Decodes the stored block at byte `at` into codes and scales. */
  open(bytes: DataView, at: number, block: OpenBlock, places: BlockPlaces): void;
}

/** Byte offsets in a stored block: of its scale, its offset, the low bits of its codes, their high bits, and its group scales. */
export interface BlockPlaces {
  readonly scale: number;
  readonly offset?: number;
  readonly codes: number;
  readonly high?: number;
  readonly scales?: number;
}

/** A decoded block; a format fills in what its kind of scales has. */
export interface OpenBlock {
  /** Codes in order, four per word, the first in the lowest byte. */
  readonly codes: Uint32Array;
  /** Scale: f16 bits, f32 bits (kind row), or the byte of a power of two (kind exponent). */
  scale: number;
  /** Offset: f16 bits. */
  offset: number;
  /** Integer scale of each group, and the integer of its offset. */
  readonly scales: Int32Array;
  readonly offsets: Int32Array;
}

/** An OpenBlock with room for any format. */
export function openBlock(): OpenBlock {
  return { codes: new Uint32Array(64), scale: 0, offset: 0, scales: new Int32Array(16), offsets: new Int32Array(16) };
}

/** Dequantises whole blocks into `out`; each product and each sum is rounded to f32, as in PyPI `gguf` (gguf/quants.py). */
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

/** The f32 number with these bits. */
function singleOf(bits: number): number {
  return new Float32Array(Uint32Array.of(bits).buffer)[0]!;
}

/** Whether values are scale times code plus an offset. */
function hasOffsets(kind: ScaleKind): boolean {
  return kind === 'half_offset' || kind === 'small_offset';
}

/** More blocks than a row has. */
const WHOLE_ROW = 2 ** 24;

/** Blocks of 32 values that share a u32 word of scales on the device. */
export function blocksPerWord({ scales, group }: Pick<BlockFormat, 'scales' | 'group'>): number {
  if (scales === 'half_offset') return 1;
  if (scales === 'row') return WHOLE_ROW;
  return scales === 'exponent' || (scales === 'small' && group === BLOCK) ? 4 : 2;
}

/** Whether 256 values share f16 numbers, which have a word of their own on the device. */
export function hasWide({ scales }: Pick<BlockFormat, 'scales'>): boolean {
  return scales === 'small' || scales === 'small_offset';
}

/**
 * u32 words of a row of `blocks` blocks of 32 values on the device: its codes, its scales, and all words including those per 256 values.
 */
export function rowWords(format: BlockFormat, blocks: number): { readonly codes: number; readonly scales: number; readonly all: number } {
  const codes = blocks * (format.low + format.high);
  const scales = ceilDiv(blocks, blocksPerWord(format));
  return { codes, scales, all: codes + scales + (hasWide(format) ? ceilDiv(blocks, 8) : 0) };
}

/** Encodes rows of signed bytes [rows, width], with a scale for each row, as stored blocks of I8; width must be a multiple of 32. */
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
