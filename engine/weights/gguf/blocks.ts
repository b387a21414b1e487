/**
 * The storage types of GGUF, widened to f32 bit for bit as PyPI `gguf` does it (gguf/quants.py): each product and each sum is rounded to f32.
 * A block is `values` numbers in `bytes` bytes.
 */
import { f16Table, fromBF16, fromF16 } from '../../util/f16.ts';
import { IQ4_VALUES, widenIQ4XS, widenQ2K, widenQ3K, widenQ4K, widenQ5K, widenQ6K } from './super-blocks.ts';

/** How one type is stored. */
export interface BlockType {
  readonly name: string;
  readonly values: number;
  readonly bytes: number;
  /** Writes the values of whole blocks. */
  readonly widen: (bytes: Uint8Array, out: Float32Array) => void;
}

const BLOCK = 32;
const SUPER_BLOCK = 256;

/** By the number that stands in a file (ggml_type in ggml.h). */
export const BLOCK_TYPES: ReadonlyMap<number, BlockType> = new Map([
  [0, { name: 'F32', values: 1, bytes: 4, widen: (bytes, out) => out.set(new Float32Array(bytes.buffer, bytes.byteOffset, out.length)) }],
  [1, { name: 'F16', values: 1, bytes: 2, widen: (bytes, out) => out.set(fromF16(halves(bytes))) }],
  [2, { name: 'Q4_0', values: BLOCK, bytes: 18, widen: widenQ40 }],
  [3, { name: 'Q4_1', values: BLOCK, bytes: 20, widen: widenQ41 }],
  [6, { name: 'Q5_0', values: BLOCK, bytes: 22, widen: widenQ50 }],
  [7, { name: 'Q5_1', values: BLOCK, bytes: 24, widen: widenQ51 }],
  [8, { name: 'Q8_0', values: BLOCK, bytes: 34, widen: widenQ80 }],
  [10, { name: 'Q2_K', values: SUPER_BLOCK, bytes: 84, widen: widenQ2K }],
  [11, { name: 'Q3_K', values: SUPER_BLOCK, bytes: 110, widen: widenQ3K }],
  [12, { name: 'Q4_K', values: SUPER_BLOCK, bytes: 144, widen: widenQ4K }],
  [13, { name: 'Q5_K', values: SUPER_BLOCK, bytes: 176, widen: widenQ5K }],
  [14, { name: 'Q6_K', values: SUPER_BLOCK, bytes: 210, widen: widenQ6K }],
  [20, { name: 'IQ4_NL', values: BLOCK, bytes: 18, widen: widenIQ4NL }],
  [23, { name: 'IQ4_XS', values: SUPER_BLOCK, bytes: 136, widen: widenIQ4XS }],
  [30, { name: 'BF16', values: 1, bytes: 2, widen: (bytes, out) => out.set(fromBF16(halves(bytes))) }],
  [39, { name: 'MXFP4', values: BLOCK, bytes: 17, widen: widenMXFP4 }],
]);

/** Types that files may have and that are not read. */
export const OTHER_TYPES: ReadonlyMap<number, string> = new Map([
  [9, 'Q8_1'], [15, 'Q8_K'], [16, 'IQ2_XXS'], [17, 'IQ2_XS'], [18, 'IQ3_XXS'], [19, 'IQ1_S'], [21, 'IQ3_S'], [22, 'IQ2_S'], [24, 'I8'], [25, 'I16'],
  [26, 'I32'], [27, 'I64'], [28, 'F64'], [29, 'IQ1_M'], [34, 'TQ1_0'], [35, 'TQ2_0'], [40, 'NVFP4'], [41, 'Q1_0'], [42, 'Q2_0'],
]); // prettier-ignore

function halves(bytes: Uint8Array): Uint16Array {
  return new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.length / 2);
}

/** The f16 at a byte. */
function half(bytes: Uint8Array, at: number): number {
  return f16Table()[bytes[at]! | (bytes[at + 1]! << 8)]!;
}

// Low nibbles are the first half of a block's values, high ones the second.

function widenQ40(bytes: Uint8Array, out: Float32Array): void {
  for (let at = 0, o = 0; o < out.length; at += 18, o += BLOCK) {
    const scale = half(bytes, at);
    for (let i = 0; i < 16; i++) {
      const pair = bytes[at + 2 + i]!;
      out[o + i] = scale * ((pair & 15) - 8);
      out[o + 16 + i] = scale * ((pair >> 4) - 8);
    }
  }
}

function widenQ41(bytes: Uint8Array, out: Float32Array): void {
  for (let at = 0, o = 0; o < out.length; at += 20, o += BLOCK) {
    const scale = half(bytes, at);
    const least = half(bytes, at + 2);
    for (let i = 0; i < 16; i++) {
      const pair = bytes[at + 4 + i]!;
      out[o + i] = Math.fround(scale * (pair & 15)) + least;
      out[o + 16 + i] = Math.fround(scale * (pair >> 4)) + least;
    }
  }
}

/** Fifth bits of 32 values. */
function word(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
}

function widenQ50(bytes: Uint8Array, out: Float32Array): void {
  for (let at = 0, o = 0; o < out.length; at += 22, o += BLOCK) {
    const scale = half(bytes, at);
    const high = word(bytes, at + 2);
    for (let i = 0; i < 16; i++) {
      const pair = bytes[at + 6 + i]!;
      out[o + i] = scale * (((pair & 15) | (((high >>> i) & 1) << 4)) - 16);
      out[o + 16 + i] = scale * (((pair >> 4) | (((high >>> (i + 16)) & 1) << 4)) - 16);
    }
  }
}

function widenQ51(bytes: Uint8Array, out: Float32Array): void {
  for (let at = 0, o = 0; o < out.length; at += 24, o += BLOCK) {
    const scale = half(bytes, at);
    const least = half(bytes, at + 2);
    const high = word(bytes, at + 4);
    for (let i = 0; i < 16; i++) {
      const pair = bytes[at + 8 + i]!;
      out[o + i] = Math.fround(scale * ((pair & 15) | (((high >>> i) & 1) << 4))) + least;
      out[o + 16 + i] = Math.fround(scale * ((pair >> 4) | (((high >>> (i + 16)) & 1) << 4))) + least;
    }
  }
}

function widenQ80(bytes: Uint8Array, out: Float32Array): void {
  for (let at = 0, o = 0; o < out.length; at += 34, o += BLOCK) {
    const scale = half(bytes, at);
    for (let i = 0; i < BLOCK; i++) out[o + i] = scale * ((bytes[at + 2 + i]! << 24) >> 24);
  }
}

function widenIQ4NL(bytes: Uint8Array, out: Float32Array): void {
  for (let at = 0, o = 0; o < out.length; at += 18, o += BLOCK) {
    const scale = half(bytes, at);
    for (let i = 0; i < 16; i++) {
      const pair = bytes[at + 2 + i]!;
      out[o + i] = scale * IQ4_VALUES[pair & 15]!;
      out[o + 16 + i] = scale * IQ4_VALUES[pair >> 4]!;
    }
  }
}

/** E2M1, doubled; the scale is halved instead. */
const MXFP4_VALUES: readonly number[] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

function widenMXFP4(bytes: Uint8Array, out: Float32Array): void {
  for (let at = 0, o = 0; o < out.length; at += 17, o += BLOCK) {
    const scale = 2 ** (bytes[at]! - 128);
    for (let i = 0; i < 16; i++) {
      const pair = bytes[at + 1 + i]!;
      out[o + i] = scale * MXFP4_VALUES[pair & 15]!;
      out[o + 16 + i] = scale * MXFP4_VALUES[pair >> 4]!;
    }
  }
}
