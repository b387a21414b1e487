/**
 * Block types whose codes are found in grids: a file stores the numbers of vectors, and the signs of their elements (IQ1, IQ2, IQ3 of
 * ggml-quants.c). A code is a vector's digit with the sign above it. On the device shaders/lib/stored_iq*.wgsl do the same.
 */
import { halfScale } from './block-format.ts';
import type { BlockPlaces, OpenBlock } from './block-format.ts';
import { gridOf } from './grids.ts';
import type { Grid } from './grids.ts';

/** Places of types with grids; the numbers of vectors lie at `codes`. */
type Places<K extends keyof BlockPlaces> = BlockPlaces & { readonly [P in K]: number };

/** Bits of a code's sign: above digits of 2 bits, and of 3. */
const SIGN = { narrow: 2, wide: 3 } as const;

const half = (bytes: DataView, at: number): number => bytes.getUint16(at, true);

/** Bit i of four signs, at bit `shift` of byte i. */
function signsOf(four: number, shift: number): number {
  return (((four & 15) * 0x00204081) & 0x01010101) << shift;
}

/** Seven signs and the eighth, which makes the number of set ones even. */
function eightSigns(seven: number): number {
  let odd = seven ^ (seven >> 4);
  odd ^= odd >> 2;
  return seven | (((odd ^ (odd >> 1)) & 1) << 7);
}

/** Writes the eight codes of a vector. */
function putEight(block: OpenBlock, at: number, grid: Grid, vector: number, signs: number): void {
  block.codes[2 * at] = grid[2 * vector]! | signsOf(signs, SIGN.narrow);
  block.codes[2 * at + 1] = grid[2 * vector + 1]! | signsOf(signs >> 4, SIGN.narrow);
}

/** Odd group scales in nibbles, the first in the lower one. */
function oddScales(bytes: DataView, at: number, block: OpenBlock, groups: number): void {
  for (let group = 0; group < groups; group++) {
    block.scales[group] = 2 * ((bytes.getUint8(at + (group >> 1)) >> ((group & 1) * 4)) & 15) + 1;
  }
}

/** Decodes IQ2_XXS: per 32 values four numbers of vectors, then a word with seven signs of each and the group's scale. */
export function openIQ2XXS(bytes: DataView, at: number, block: OpenBlock, { scale, codes, scales }: Places<'scales'>): void {
  const grid = gridOf('IQ2_XXS');
  block.scale = half(bytes, at + scale);
  for (let group = 0; group < 8; group++) {
    const word = bytes.getUint32(at + scales + 8 * group, true);
    for (let i = 0; i < 4; i++) {
      const vector = bytes.getUint8(at + codes + 8 * group + i);
      putEight(block, group * 4 + i, grid, vector, eightSigns((word >>> (7 * i)) & 127));
    }
    block.scales[group] = 2 * (word >>> 28) + 1;
  }
}

/** Decodes IQ2_XS: per 8 values a number of 9 bits and seven signs. */
export function openIQ2XS(bytes: DataView, at: number, block: OpenBlock, { scale, codes, scales }: Places<'scales'>): void {
  const grid = gridOf('IQ2_XS');
  block.scale = half(bytes, at + scale);
  for (let i = 0; i < 32; i++) {
    const stored = half(bytes, at + codes + 2 * i);
    putEight(block, i, grid, stored & 511, eightSigns(stored >> 9));
  }
  oddScales(bytes, at + scales, block, 16);
}

/** Decodes IQ2_S: per 8 values a number, whose upper two bits lie apart, and eight signs. */
export function openIQ2S(bytes: DataView, at: number, block: OpenBlock, places: Places<'high' | 'signs' | 'scales'>): void {
  const grid = gridOf('IQ2_S');
  block.scale = half(bytes, at + places.scale);
  for (let i = 0; i < 32; i++) {
    const upper = (bytes.getUint8(at + places.high + (i >> 2)) >> ((i & 3) * 2)) & 3;
    putEight(block, i, grid, bytes.getUint8(at + places.codes + i) | (upper << 8), bytes.getUint8(at + places.signs + i));
  }
  oddScales(bytes, at + places.scales, block, 16);
}

/** Decodes IQ3_XXS: per 4 values a number; per 32 a word with seven signs of each 8 and the group's scale. */
export function openIQ3XXS(bytes: DataView, at: number, block: OpenBlock, { scale, codes, scales }: Places<'scales'>): void {
  const grid = gridOf('IQ3_XXS');
  block.scale = half(bytes, at + scale);
  for (let group = 0; group < 8; group++) {
    const word = bytes.getUint32(at + scales + 4 * group, true);
    for (let i = 0; i < 8; i++) {
      const four = eightSigns((word >>> (7 * (i >> 1))) & 127) >> ((i & 1) * 4);
      block.codes[group * 8 + i] = grid[bytes.getUint8(at + codes + group * 8 + i)]! | signsOf(four, SIGN.wide);
    }
    block.scales[group] = 2 * (word >>> 28) + 1;
  }
}

/** Decodes IQ3_S: per 4 values a number, whose ninth bit lies apart; per 8 eight signs. */
export function openIQ3S(bytes: DataView, at: number, block: OpenBlock, places: Places<'high' | 'signs' | 'scales'>): void {
  const grid = gridOf('IQ3_S');
  block.scale = half(bytes, at + places.scale);
  for (let i = 0; i < 64; i++) {
    const ninth = (bytes.getUint8(at + places.high + (i >> 3)) >> (i & 7)) & 1;
    const four = bytes.getUint8(at + places.signs + (i >> 1)) >> ((i & 1) * 4);
    block.codes[i] = grid[bytes.getUint8(at + places.codes + i) | (ninth << 8)]! | signsOf(four, SIGN.wide);
  }
  oddScales(bytes, at + places.scales, block, 8);
}

/** Decodes IQ1_S: per 8 values a number, whose upper three bits lie in 16 bits per 32 values, with the scale and a sign. */
export function openIQ1S(bytes: DataView, at: number, block: OpenBlock, { scale, codes, scales }: Places<'scales'>): void {
  const grid = gridOf('IQ1_S');
  block.scale = half(bytes, at + scale);
  for (let group = 0; group < 8; group++) {
    const more = half(bytes, at + scales + 2 * group);
    for (let i = 0; i < 4; i++) {
      const vector = bytes.getUint8(at + codes + group * 4 + i) | (((more >> (3 * i)) & 7) << 8);
      putEight(block, group * 4 + i, grid, vector, more >> 15 ? 255 : 0);
    }
    block.scales[group] = 2 * ((more >> 12) & 7) + 1;
  }
}

/** Decodes IQ1_M: per 8 values a number, whose upper three bits lie in a nibble with a sign; scales of three bits, four per 16 bits. */
export function openIQ1M(bytes: DataView, at: number, block: OpenBlock, places: Places<'high' | 'scales'>): void {
  const { codes, high, scales } = places;
  const grid = gridOf('IQ1_S');
  block.scale = halfScale(bytes, at, places);
  for (let i = 0; i < 32; i++) {
    const more = bytes.getUint8(at + high + (i >> 1)) >> ((i & 1) * 4);
    putEight(block, i, grid, bytes.getUint8(at + codes + i) | ((more & 7) << 8), more & 8 ? 255 : 0);
  }
  for (let group = 0; group < 16; group++) {
    block.scales[group] = 2 * ((half(bytes, at + scales + 2 * (group >> 2)) >> (3 * (group & 3))) & 7) + 1;
  }
}
