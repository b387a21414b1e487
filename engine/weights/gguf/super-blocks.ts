/** GGUF's types with blocks of 256 values in groups that have small scales of their own: Q2_K to Q6_K and IQ4_XS. */
import { f16Table } from '../../util/f16.ts';

const SUPER_BLOCK = 256;

/** 16 groups of 16: value = d * scale * q - dmin * minimum, q of 2 bits. */
export function widenQ2K(bytes: Uint8Array, out: Float32Array): void {
  const halves = f16Table();
  for (let at = 0, o = 0; o < out.length; at += 84, o += SUPER_BLOCK) {
    const d = halves[bytes[at + 80]! | (bytes[at + 81]! << 8)]!;
    const dmin = halves[bytes[at + 82]! | (bytes[at + 83]! << 8)]!;
    for (let group = 0; group < 16; group++) {
      const packed = bytes[at + group]!;
      const scale = Math.fround(d * (packed & 15));
      const least = Math.fround(dmin * (packed >> 4));
      // A half of 128 values lies in 32 bytes, 32 values a pair of bits.
      const from = at + 16 + (group >> 3) * 32 + (group & 1) * 16;
      const shift = ((group >> 1) & 3) * 2;
      for (let i = 0; i < 16; i++) {
        out[o + group * 16 + i] = Math.fround(scale * ((bytes[from + i]! >> shift) & 3)) - least;
      }
    }
  }
}

/** 16 groups of 16: value = d * (scale - 32) * q, q of 2 bits, less 4 where the mask's bit is 0. */
export function widenQ3K(bytes: Uint8Array, out: Float32Array): void {
  const halves = f16Table();
  for (let at = 0, o = 0; o < out.length; at += 110, o += SUPER_BLOCK) {
    const d = halves[bytes[at + 108]! | (bytes[at + 109]! << 8)]!;
    for (let group = 0; group < 16; group++) {
      const low = (bytes[at + 96 + (group & 7)]! >> ((group >> 3) * 4)) & 15;
      const high = (bytes[at + 104 + (group & 3)]! >> ((group >> 2) * 2)) & 3;
      const scale = Math.fround(d * ((low | (high << 4)) - 32));
      const column = (group & 1) * 16;
      const from = at + 32 + (group >> 3) * 32 + column;
      const shift = ((group >> 1) & 3) * 2;
      const bit = group >> 1;
      for (let i = 0; i < 16; i++) {
        const q = ((bytes[from + i]! >> shift) & 3) - ((bytes[at + column + i]! >> bit) & 1 ? 0 : 4);
        out[o + group * 16 + i] = scale * q;
      }
    }
  }
}

/** Scale of one of 8 groups: six bits each, of which the last four groups' upper two lie in the first four's bytes. */
function scaleOf(bytes: Uint8Array, at: number, group: number): number {
  if (group < 4) return bytes[at + group]! & 63;
  return (bytes[at + 4 + group]! & 15) | ((bytes[at + group - 4]! >> 2) & 0x30);
}

/** Its minimum, packed alike. */
function minimumOf(bytes: Uint8Array, at: number, group: number): number {
  if (group < 4) return bytes[at + 4 + group]! & 63;
  return (bytes[at + 4 + group]! >> 4) | ((bytes[at + group]! >> 2) & 0x30);
}

/** 8 groups of 32: value = d * scale * q - dmin * minimum, q of 4 bits. */
export function widenQ4K(bytes: Uint8Array, out: Float32Array): void {
  const halves = f16Table();
  for (let at = 0, o = 0; o < out.length; at += 144, o += SUPER_BLOCK) {
    const d = halves[bytes[at]! | (bytes[at + 1]! << 8)]!;
    const dmin = halves[bytes[at + 2]! | (bytes[at + 3]! << 8)]!;
    for (let group = 0; group < 8; group++) {
      const scale = Math.fround(d * scaleOf(bytes, at + 4, group));
      const least = Math.fround(dmin * minimumOf(bytes, at + 4, group));
      const from = at + 16 + (group >> 1) * 32;
      const shift = (group & 1) * 4;
      for (let i = 0; i < 32; i++) {
        out[o + group * 32 + i] = Math.fround(scale * ((bytes[from + i]! >> shift) & 15)) - least;
      }
    }
  }
}

/** The same with a fifth bit, bit `group` of 32 bytes. */
export function widenQ5K(bytes: Uint8Array, out: Float32Array): void {
  const halves = f16Table();
  for (let at = 0, o = 0; o < out.length; at += 176, o += SUPER_BLOCK) {
    const d = halves[bytes[at]! | (bytes[at + 1]! << 8)]!;
    const dmin = halves[bytes[at + 2]! | (bytes[at + 3]! << 8)]!;
    for (let group = 0; group < 8; group++) {
      const scale = Math.fround(d * scaleOf(bytes, at + 4, group));
      const least = Math.fround(dmin * minimumOf(bytes, at + 4, group));
      const from = at + 48 + (group >> 1) * 32;
      const shift = (group & 1) * 4;
      for (let i = 0; i < 32; i++) {
        const q = ((bytes[from + i]! >> shift) & 15) | (((bytes[at + 16 + i]! >> group) & 1) << 4);
        out[o + group * 32 + i] = Math.fround(scale * q) - least;
      }
    }
  }
}

/** 16 groups of 16 with scales of 8 bits: value = d * scale * (q - 32), q of 6 bits. */
export function widenQ6K(bytes: Uint8Array, out: Float32Array): void {
  const halves = f16Table();
  for (let at = 0, o = 0; o < out.length; at += 210, o += SUPER_BLOCK) {
    const d = halves[bytes[at + 208]! | (bytes[at + 209]! << 8)]!;
    for (let group = 0; group < 16; group++) {
      const scale = Math.fround(d * ((bytes[at + 192 + group]! << 24) >> 24));
      // Of 128 values, the low nibbles of 64 bytes are the first 64, the high ones the others; the upper bits lie in 32 bytes.
      const quarter = (group >> 1) & 3;
      const column = (group & 1) * 16;
      const low = at + (group >> 3) * 64 + (quarter & 1) * 32 + column;
      const high = at + 128 + (group >> 3) * 32 + column;
      const lowShift = (quarter >> 1) * 4;
      for (let i = 0; i < 16; i++) {
        const q = ((bytes[low + i]! >> lowShift) & 15) | (((bytes[high + i]! >> (quarter * 2)) & 3) << 4);
        out[o + group * 16 + i] = scale * (q - 32);
      }
    }
  }
}

/** Steps of IQ4_NL and IQ4_XS: closer together near zero. */
export const IQ4_VALUES: readonly number[] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/** 8 groups of 32: value = d * (scale - 32) * step. */
export function widenIQ4XS(bytes: Uint8Array, out: Float32Array): void {
  const halves = f16Table();
  for (let at = 0, o = 0; o < out.length; at += 136, o += SUPER_BLOCK) {
    const d = halves[bytes[at]! | (bytes[at + 1]! << 8)]!;
    const highs = bytes[at + 2]! | (bytes[at + 3]! << 8);
    for (let group = 0; group < 8; group++) {
      const low = (bytes[at + 4 + (group >> 1)]! >> ((group & 1) * 4)) & 15;
      const scale = Math.fround(d * ((low | (((highs >> (group * 2)) & 3) << 4)) - 32));
      const from = at + 8 + group * 16;
      for (let i = 0; i < 16; i++) {
        const pair = bytes[from + i]!;
        out[o + group * 32 + i] = scale * IQ4_VALUES[pair & 15]!;
        out[o + group * 32 + 16 + i] = scale * IQ4_VALUES[pair >> 4]!;
      }
    }
  }
}
