/** Encodes rows of integer codes as stored blocks, which kernels multiply with, or as floats. */
import { assert } from '../../errors.ts';
import { toF16 } from '../../util/f16.ts';
import { alignUp } from '../../util/math.ts';
import { BLOCK } from '../block-format.ts';
import { BLOCK_FORMATS } from '../block-types.ts';
import type { BlockType } from '../block-types.ts';
import type { CodeRows, Groups, IntegerMatrix } from './integer-matrix.ts';

/** Rows that are unpacked at once, so that their codes stay in the processor's cache. */
const TILE = 64;
const ONES = 0x01010101;

/** Words per row of unpacked codes. The rest keeps rows of a power of two from sharing lines of the cache. */
const pitchOf = (columns: number): number => alignUp(columns, BLOCK) / 4 + 16;

/**
 * Encodes `count` rows in the matrix' type of blocks, into `out`. The scales become f16, to nearest even: those of f16, and those of bf16
 * from 2^-17 on, are kept as they are; others move by at most 2^-11 of themselves, or by 2^-25 below 2^-14. I8 has scales of f32.
 */
export function encodeRows(matrix: IntegerMatrix, rows: CodeRows, count: number, out: Uint8Array): void {
  const { shape, groups, zero } = matrix;
  const type = matrix.blocks!;
  const [, columns] = shape;
  const [blocks, pitch, halves] = [columns / BLOCK, pitchOf(columns), BLOCK_FORMATS[type].bytes / 2];
  const into = new Uint16Array(out.buffer, out.byteOffset, out.byteLength / 2);
  const codes = new Uint32Array(TILE * pitch);
  const groupOf = Int32Array.from({ length: blocks }, (_, block) => groups.of(block * BLOCK));
  const scales = type === 'I8' ? new Uint32Array(rows.scales.buffer, rows.scales.byteOffset, rows.scales.length) : toF16(rows.scales);
  const seconds = rows.offsets ? toF16(rows.offsets) : rows.zeros;
  const encode = encoderOf(type);
  for (let first = 0, at = 0; first < count; first += TILE) {
    const tile = Math.min(TILE, count - first);
    rows.unpack(codes, pitch, first, tile);
    for (let row = 0; row < tile; row++) {
      const inRow = (first + row) * groups.count;
      for (let block = 0; block < blocks; block++, at += halves) {
        const group = inRow + groupOf[block]!;
        encode(codes, row * pitch + block * 8, scales[group]!, seconds ? seconds[group]! : zero, into, at);
      }
    }
  }
}

/** Widens `count` rows into `out`; each difference is exact, and each product and sum is rounded to f32. */
export function widenRows(matrix: IntegerMatrix, rows: CodeRows, count: number, out: Float32Array): void {
  const { shape, groups } = matrix;
  const [, columns] = shape;
  const pitch = pitchOf(columns);
  const codes = new Uint32Array(TILE * pitch);
  const runs = runsOf(groups, columns);
  for (let first = 0; first < count; first += TILE) {
    const tile = Math.min(TILE, count - first);
    rows.unpack(codes, pitch, first, tile);
    for (let row = 0; row < tile; row++) {
      const into = out.subarray((first + row) * columns, (first + row + 1) * columns);
      widenRow(codes.subarray(row * pitch, (row + 1) * pitch), runs, matrix, rows, (first + row) * groups.count, into);
    }
  }
}

/** Columns that follow one another and share a group. */
interface Run {
  readonly group: number;
  readonly from: number;
  readonly to: number;
}

function runsOf({ of }: Groups, columns: number): readonly Run[] {
  const runs: { group: number; from: number; to: number }[] = [];
  for (let column = 0; column < columns; column++) {
    const last = runs.at(-1);
    if (last?.group === of(column)) last.to++;
    else runs.push({ group: of(column), from: column, to: column + 1 });
  }
  return runs;
}

/** Values of codes that are numbers. */
const NUMBERS = Float32Array.from({ length: 256 }, (_, code) => code);

/** Widens a row, whose groups begin at `first`. */
function widenRow(codes: Uint32Array, runs: readonly Run[], matrix: IntegerMatrix, rows: CodeRows, first: number, out: Float32Array): void {
  const { table: values = NUMBERS, zero } = matrix;
  const { scales, zeros, offsets } = rows;
  for (const { group, from, to } of runs) {
    const scale = scales[first + group]!;
    const middle = zeros ? zeros[first + group]! : zero;
    for (let column = from; column < to; column++) {
      out[column] = scale * (values[(codes[column >> 2]! >>> ((column & 3) * 8)) & 0xff]! - middle);
    }
    if (offsets) for (let column = from; column < to; column++) out[column]! += offsets[first + group]!;
  }
}

/**
 * Writes a block of 32 codes, four per word from `from` on. `scale`: bits of f16, or of f32 where a row shares it; `second`: the code that
 * means zero, or the bits of an offset in f16.
 */
type Encode = (codes: Uint32Array, from: number, scale: number, second: number, out: Uint16Array, at: number) => void;

function encoderOf(type: BlockType): Encode {
  const encode = ENCODERS[type];
  assert(encode !== undefined, `no integer codes are stored as ${type}`);
  return encode;
}

const ENCODERS: Partial<Readonly<Record<BlockType, Encode>>> = {
  Q4_0: (codes, from, scale, _zero, out, at) => {
    out[at] = scale;
    putNibbles(codes, from, out, at + 1);
  },
  Q4_1: (codes, from, scale, offset, out, at) => {
    out[at] = scale;
    out[at + 1] = offset;
    putNibbles(codes, from, out, at + 2);
  },
  // Its codes are the four bits and 16 more, less the zero point: 1 to 31.
  Q5_0: (codes, from, scale, zero, out, at) => {
    out[at] = scale;
    putFives(codes, from, (16 - zero) * ONES, out, at + 1);
  },
  Q5_1: (codes, from, scale, offset, out, at) => {
    out[at] = scale;
    out[at + 1] = offset;
    putFives(codes, from, 0, out, at + 2);
  },
  Q8_0: (codes, from, scale, _zero, out, at) => {
    out[at] = scale;
    putBytes(codes, from, 0x80808080, out, at + 1);
  },
  U8: (codes, from, scale, offset, out, at) => {
    out[at] = scale;
    out[at + 1] = offset;
    putBytes(codes, from, 0, out, at + 2);
  },
  I8: (codes, from, scale, _zero, out, at) => {
    out[at] = scale;
    out[at + 1] = scale >>> 16;
    putBytes(codes, from, 0x80808080, out, at + 2);
  },
};

/** Writes 16 bytes: the first 16 codes in the low nibbles, the others in the high ones. */
function putNibbles(codes: Uint32Array, from: number, out: Uint16Array, at: number): void {
  for (let i = 0; i < 4; i++) {
    const word = codes[from + i]! | (codes[from + 4 + i]! << 4);
    out[at + 2 * i] = word;
    out[at + 2 * i + 1] = word >>> 16;
  }
}

/** Writes four bytes with the fifth bits of codes plus `more`, and 16 with the lower bits. */
function putFives(codes: Uint32Array, from: number, more: number, out: Uint16Array, at: number): void {
  let fifths = 0;
  for (let i = 0; i < 4; i++) {
    const low = codes[from + i]! + more;
    const high = codes[from + 4 + i]! + more;
    fifths |= (gather(low >>> 4) << (4 * i)) | (gather(high >>> 4) << (4 * i + 16));
    const word = (low & 0x0f0f0f0f) | ((high & 0x0f0f0f0f) << 4);
    out[at + 2 + 2 * i] = word;
    out[at + 3 + 2 * i] = word >>> 16;
  }
  out[at] = fifths;
  out[at + 1] = fifths >>> 16;
}

/** The lowest bits of four bytes, as four bits. */
function gather(bytes: number): number {
  return Math.imul(bytes & ONES, 0x10204080) >>> 28;
}

/** Writes 32 bytes, with the bits of `flipped` turned. */
function putBytes(codes: Uint32Array, from: number, flipped: number, out: Uint16Array, at: number): void {
  for (let i = 0; i < 8; i++) {
    const word = codes[from + i]! ^ flipped;
    out[at + 2 * i] = word;
    out[at + 2 * i + 1] = word >>> 16;
  }
}
