/**
 * Block-quantised weights: how blocks are decoded, what values they stand for, and how they lie on a device. Every type has the same form,
 * value = d * scale * (code - zero) + offset, so a type is a row of data (block-types.ts) and needs no kernel of its own.
 */
import { f16Table } from '../util/f16.ts';
import { ceilDiv } from '../util/math.ts';
import type { GridName } from './grids.ts';

/** Values along K that a kernel processes at once, whatever the file's block size. */
export const BLOCK = 32;

/**
 * Where a group's scale and offset come from. On the device each kind has a fragment (shaders/lib/scales_<kind>.wgsl).
 * - half: an f16 scale per block.
 * - half_offset: an f16 scale and an f16 offset per block.
 * - exponent: a power of two per block, 2^(byte - 128).
 * - row: an f32 scale per row, which each of the row's blocks repeats in the stored form.
 * - small: an f16 scale per 256 values, times a signed byte per group, times `unit`. The byte is 1 in a type that stores none.
 * - e4m3: an f32 scale per 256 values, times half an unsigned E4M3 float per group.
 * - small_offset: an f16 scale and an f16 offset per 256 values, each times a number per group; the offset is subtracted. These numbers
 * have 4 bits (groups of 16) or a byte (groups of 32).
 */
export type ScaleKind = 'half' | 'half_offset' | 'exponent' | 'row' | 'e4m3' | 'small' | 'small_offset';

/** A block-quantised type: sizes, layout and decoder of its blocks. */
export interface BlockFormat {
  /** ggml's name of the type; I8 and U8 are our own. */
  readonly name: string;
  /** Values and bytes of a stored block. */
  readonly values: 32 | 64 | 256;
  readonly bytes: number;
  /** Bits of a code, in a low and a high plane. */
  readonly low: 2 | 4 | 8;
  readonly high: 0 | 1 | 2;
  /** Values that share a group scale. */
  readonly group: 16 | 32;
  readonly scales: ScaleKind;
  /** Power of two below 1 that a group's scale counts in (kind small); default 1. */
  readonly unit?: number;
  /** The code that means zero; `table`: the values of all 16 codes instead, or of all 8. */
  readonly zero: number;
  readonly table?: readonly number[];
  /** Codes are signed bytes. */
  readonly signed?: boolean;
  /** Layout of the codes in the stored form; each has a fragment (shaders/lib/stored_<layout>.wgsl). */
  readonly layout: string;
  /** The grid in which codes are found. */
  readonly grid?: GridName;
  readonly places: BlockPlaces;
  /** Decodes the stored block at byte `at` into codes and scales. */
  open(bytes: DataView, at: number, block: OpenBlock, places: BlockPlaces): void;
}

/** Byte offsets in a stored block: of its scale, its offset, the low bits of its codes, their high bits, their signs, and its group scales. */
export interface BlockPlaces {
  readonly scale: number;
  /** The f16 scale is spread over the upper four bits of four 16-bit numbers, its lowest four bits first. */
  readonly isSpread?: true;
  readonly offset?: number;
  readonly codes: number;
  readonly high?: number;
  readonly signs?: number;
  readonly scales?: number;
}

/** A decoded block; a format fills in what its kind of scales has. */
export interface OpenBlock {
  /** Codes in order, four per word, the first in the lowest byte. */
  readonly codes: Uint32Array;
  /** Scale: f16 bits, f32 bits (kinds row and e4m3), or the byte of a power of two (kind exponent). */
  scale: number;
  /** Offset: f16 bits. */
  offset: number;
  /** Scale of each group, an integer or the byte of an E4M3 float, and the integer of its offset. */
  readonly scales: Int32Array;
  readonly offsets: Int32Array;
}

/** An OpenBlock with room for any format. */
export function openBlock(): OpenBlock {
  return { codes: new Uint32Array(64), scale: 0, offset: 0, scales: new Int32Array(16), offsets: new Int32Array(16) };
}

/** Bits of the f16 scale of the stored block at byte `at`. */
export function halfScale(bytes: DataView, at: number, { scale, isSpread }: BlockPlaces): number {
  if (!isSpread) return bytes.getUint16(at + scale, true);
  let bits = 0;
  for (let i = 0; i < 4; i++) bits |= (bytes.getUint16(at + scale + 2 * i, true) >> 12) << (4 * i);
  return bits;
}

/** Writes the bits of the f16 scale of the stored block at byte `at`. */
export function setHalfScale(bytes: DataView, at: number, { scale, isSpread }: BlockPlaces, bits: number): void {
  if (!isSpread) return bytes.setUint16(at + scale, bits, true);
  for (let i = 0; i < 4; i++) {
    const place = at + scale + 2 * i;
    bytes.setUint16(place, (bytes.getUint16(place, true) & 0x0fff) | (((bits >> (4 * i)) & 15) << 12), true);
  }
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
  { group: size, scales: kind, unit = 1, zero, table, signed = false }: BlockFormat,
  block: OpenBlock,
  group: number,
  out: Float32Array,
  at: number,
): void {
  const halves = f16Table();
  const isSingle = kind === 'row' || kind === 'e4m3';
  const d = kind === 'exponent' ? 2 ** (block.scale - 128) : isSingle ? singleOf(block.scale) : halves[block.scale]!;
  const number = kind === 'e4m3' ? halfE4M3(block.scales[group]!) : block.scales[group]! * unit;
  const scale = hasWide({ scales: kind }) ? Math.fround(d * number) : d;
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

/** Half the E4M3 float of a byte, as gguf decodes scales of NVFP4: the sign is left out, and the byte that would be no number is 0. */
function halfE4M3(byte: number): number {
  const [exponent, mantissa] = [(byte >> 3) & 15, byte & 7];
  if (byte === 0x7f) return 0;
  return exponent === 0 ? mantissa * 2 ** -10 : (8 + mantissa) * 2 ** (exponent - 11);
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

/** Whether 256 values share f16 numbers, or one of f32, which have a word of their own on the device. */
export function hasWide({ scales }: Pick<BlockFormat, 'scales'>): boolean {
  return scales === 'small' || scales === 'small_offset' || scales === 'e4m3';
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
