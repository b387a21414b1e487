/**
 * The block-quantised types that files have, as ggml stores them (ggml-quants.c), and bytes as blocks; each type is a row of TYPES.
 */
import type { BlockFormat, BlockPlaces, OpenBlock } from './block-format.ts';
import { openIQ1M, openIQ1S, openIQ2S, openIQ2XS, openIQ2XXS, openIQ3S, openIQ3XXS } from './grid-blocks.ts';

const NIBBLES = 0x0f0f0f0f;
const ONES = 0x01010101;

/** Values of the codes of IQ4_NL and IQ4_XS, closer together near zero. */
const IQ4_STEPS: readonly number[] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/** Values of E2M1, doubled; the scale is halved to match. */
const E2M1_STEPS: readonly number[] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/** Values of the codes of IQ2: digits for three magnitudes, and a sign; digit 3 does not occur. */
const IQ2_STEPS: readonly number[] = [8, 25, 43, 0, -8, -25, -43, 0];

/** Of IQ3_XXS, and of IQ3_S: eight magnitudes and a sign. */
const IQ3_XXS_STEPS: readonly number[] = [4, 12, 20, 28, 36, 44, 52, 62, -4, -12, -20, -28, -36, -44, -52, -62];
const IQ3_S_STEPS: readonly number[] = [1, 3, 5, 7, 9, 11, 13, 15, -1, -3, -5, -7, -9, -11, -13, -15];

/** Of IQ1, times 8: digits for -1, 0 and 1, to which an eighth is added, or taken off where there is a sign. */
const IQ1_STEPS: readonly number[] = [-7, 1, 9, 0, -9, -1, 7, 0];

/** Writes words of four codes from `to` on: the low nibbles of 16 bytes are the first 16 codes, the high nibbles the other 16. */
function nibbles(bytes: DataView, at: number, codes: Uint32Array, to = 0): void {
  for (let i = 0; i < 4; i++) {
    const word = bytes.getUint32(at + 4 * i, true);
    codes[to + i] = word & NIBBLES;
    codes[to + 4 + i] = (word >>> 4) & NIBBLES;
  }
}

/** Adds the fifth bits of 32 codes: bit i belongs to code i. */
function fifthBits(high: number, codes: Uint32Array): void {
  for (let i = 0; i < 8; i++) codes[i]! |= ((((high >>> (4 * i)) & 15) * 0x00204081) & ONES) << 4;
}

/** BlockPlaces with offsets that a type always has. */
type Places<K extends keyof BlockPlaces> = BlockPlaces & { readonly [P in K]: number };

const half = (bytes: DataView, at: number): number => bytes.getUint16(at, true);

/** Decodes blocks of 32 codes of 4 bits, or of 5. */
function openNibbles(bytes: DataView, at: number, block: OpenBlock, { scale, offset, codes, high }: BlockPlaces): void {
  block.scale = half(bytes, at + scale);
  if (offset !== undefined) block.offset = half(bytes, at + offset);
  nibbles(bytes, at + codes, block.codes);
  if (high !== undefined) fifthBits(bytes.getUint32(at + high, true), block.codes);
}

/** Decodes signed bytes into codes with 128 for zero. */
function openQ80(bytes: DataView, at: number, block: OpenBlock, { scale, codes }: BlockPlaces): void {
  block.scale = half(bytes, at + scale);
  for (let i = 0; i < 8; i++) block.codes[i] = bytes.getUint32(at + codes + 4 * i, true) ^ 0x80808080;
}

/** Decodes 2-bit codes: each half of 128 values lies in 32 bytes, whose bit pairs hold 32 values each. */
function twoBits(bytes: DataView, at: number, codes: Uint32Array): void {
  for (let group = 0; group < 16; group++) {
    const from = at + (group >> 3) * 32 + (group & 1) * 16;
    const shift = ((group >> 1) & 3) * 2;
    for (let i = 0; i < 4; i++) codes[group * 4 + i] = (bytes.getUint32(from + 4 * i, true) >>> shift) & 0x03030303;
  }
}

function openQ2K(bytes: DataView, at: number, block: OpenBlock, { scale, offset, codes, scales }: Places<'offset' | 'scales'>): void {
  twoBits(bytes, at + codes, block.codes);
  for (let group = 0; group < 16; group++) {
    const packed = bytes.getUint8(at + scales + group);
    block.scales[group] = packed & 15;
    block.offsets[group] = packed >> 4;
  }
  block.scale = half(bytes, at + scale);
  block.offset = half(bytes, at + offset);
}

/** Decodes Q3_K: a code's third bit is bit `group / 2` of a byte in a mask of 32 bytes. */
function openQ3K(bytes: DataView, at: number, block: OpenBlock, { scale, codes, high, scales }: Places<'high' | 'scales'>): void {
  twoBits(bytes, at + codes, block.codes);
  for (let group = 0; group < 16; group++) {
    for (let i = 0; i < 4; i++) {
      const mask = bytes.getUint32(at + high + (group & 1) * 16 + 4 * i, true);
      block.codes[group * 4 + i]! |= ((mask >>> (group >> 1)) & ONES) << 2;
    }
    const lower = (bytes.getUint8(at + scales + (group & 7)) >> ((group >> 3) * 4)) & 15;
    const upper = (bytes.getUint8(at + scales + 8 + (group & 3)) >> ((group >> 2) * 2)) & 3;
    block.scales[group] = (lower | (upper << 4)) - 32;
  }
  block.scale = half(bytes, at + scale);
}

/** Decodes scales and offsets of 8 groups, six bits each; the upper two bits of the last four groups lie in the bytes of the first four. */
function sixBits(bytes: DataView, at: number, block: OpenBlock): void {
  for (let group = 0; group < 4; group++) {
    const [a, b, c] = [bytes.getUint8(at + group), bytes.getUint8(at + 4 + group), bytes.getUint8(at + 8 + group)];
    block.scales[group] = a & 63;
    block.offsets[group] = b & 63;
    block.scales[group + 4] = (c & 15) | ((a >> 2) & 0x30);
    block.offsets[group + 4] = (c >> 4) | ((b >> 2) & 0x30);
  }
}

/** Decodes 4-bit codes: two groups of 32 share 32 bytes. */
function fourBits(bytes: DataView, at: number, codes: Uint32Array): void {
  for (let group = 0; group < 8; group++) {
    const from = at + (group >> 1) * 32;
    const shift = (group & 1) * 4;
    for (let i = 0; i < 8; i++) codes[group * 8 + i] = (bytes.getUint32(from + 4 * i, true) >>> shift) & NIBBLES;
  }
}

/** Decodes Q4_K, and Q5_K, whose fifth bit is bit `group` of a byte in a mask of 32 bytes. */
function openQ45K(bytes: DataView, at: number, block: OpenBlock, places: Places<'offset' | 'scales'>): void {
  const { scale, offset, codes, high, scales } = places;
  block.scale = half(bytes, at + scale);
  block.offset = half(bytes, at + offset);
  sixBits(bytes, at + scales, block);
  fourBits(bytes, at + codes, block.codes);
  if (high === undefined) return;
  for (let i = 0; i < 8; i++) {
    const bits = bytes.getUint32(at + high + 4 * i, true);
    for (let group = 0; group < 8; group++) block.codes[group * 8 + i]! |= ((bits >>> group) & ONES) << 4;
  }
}

/**
 * Decodes Q6_K: for 128 values, the low nibbles of 64 bytes belong to the first 64 and the high nibbles to the others; the upper two bits
 * of each lie in 32 bytes.
 */
function openQ6K(bytes: DataView, at: number, block: OpenBlock, { scale, codes, high, scales }: Places<'high' | 'scales'>): void {
  for (let group = 0; group < 16; group++) {
    const quarter = (group >> 1) & 3;
    const column = (group & 1) * 16;
    const low = at + codes + (group >> 3) * 64 + (quarter & 1) * 32 + column;
    const upper = at + high + (group >> 3) * 32 + column;
    for (let i = 0; i < 4; i++) {
      const lowBits = (bytes.getUint32(low + 4 * i, true) >>> ((quarter >> 1) * 4)) & NIBBLES;
      block.codes[group * 4 + i] = lowBits | (((bytes.getUint32(upper + 4 * i, true) >>> (quarter * 2)) & 0x03030303) << 4);
    }
    block.scales[group] = bytes.getInt8(at + scales + group);
  }
  block.scale = half(bytes, at + scale);
}

function openIQ4XS(bytes: DataView, at: number, block: OpenBlock, { scale, codes, scales }: Places<'scales'>): void {
  block.scale = half(bytes, at + scale);
  const highs = half(bytes, at + scales);
  for (let group = 0; group < 8; group++) {
    const low = (bytes.getUint8(at + scales + 2 + (group >> 1)) >> ((group & 1) * 4)) & 15;
    block.scales[group] = (low | (((highs >> (group * 2)) & 3) << 4)) - 32;
    nibbles(bytes, at + codes + group * 16, block.codes, group * 8);
  }
}

/** Decodes TQ2_0, which has no group scales. */
function openTQ20(bytes: DataView, at: number, block: OpenBlock, { scale, codes }: BlockPlaces): void {
  twoBits(bytes, at + codes, block.codes);
  block.scales.fill(1);
  block.scale = half(bytes, at + scale);
}

/** Where TQ1_0 has its codes: bytes from `at` on, of which byte `m` has code `first` + `bytes` n + m as digit n. */
const TERNARY = [
  { at: 0, bytes: 32, first: 0, digits: 5 },
  { at: 32, bytes: 16, first: 160, digits: 5 },
  { at: 48, bytes: 4, first: 240, digits: 4 },
] as const;

/** Decodes TQ1_0: digits of base 3; a byte is the fraction of 256 that they are of 3 to the power of their number, rounded up. */
function openTQ10(bytes: DataView, at: number, block: OpenBlock, { scale, codes }: BlockPlaces): void {
  for (const run of TERNARY) {
    for (let n = 0; n < run.digits; n++) {
      for (let m = 0; m < run.bytes; m += 4) {
        let word = 0;
        for (let i = 3; i >= 0; i--) word = (word << 8) | ((((bytes.getUint8(at + codes + run.at + m + i) * 3 ** n) & 255) * 3) >> 8);
        block.codes[(run.first + n * run.bytes + m) >> 2] = word;
      }
    }
  }
  block.scales.fill(1);
  block.scale = half(bytes, at + scale);
}

function openMXFP4(bytes: DataView, at: number, block: OpenBlock, { scale, codes }: BlockPlaces): void {
  block.scale = bytes.getUint8(at + scale);
  nibbles(bytes, at + codes, block.codes);
}

/** Decodes NVFP4: per 16 values 8 bytes, whose low nibbles are the first 8 codes. The f32 scale is not the file's (gguf/nvfp4.ts). */
function openNVFP4(bytes: DataView, at: number, block: OpenBlock, { scale, codes, scales }: Places<'scales'>): void {
  block.scale = bytes.getUint32(at + scale, true);
  for (let group = 0; group < 4; group++) {
    block.scales[group] = bytes.getUint8(at + scales + group);
    for (let i = 0; i < 4; i++) {
      const word = bytes.getUint32(at + codes + 8 * group + 4 * (i & 1), true);
      block.codes[4 * group + i] = (word >>> (4 * (i >> 1))) & NIBBLES;
    }
  }
}

/** Decodes I8: bytes with the scale of their row (rowBlocks). */
function openI8(bytes: DataView, at: number, block: OpenBlock, { scale, codes }: BlockPlaces): void {
  block.scale = bytes.getUint32(at + scale, true);
  for (let i = 0; i < 8; i++) block.codes[i] = bytes.getUint32(at + codes + 4 * i, true);
}

/** Decodes U8: unsigned bytes with a scale and an offset (weights/integers/encode-rows.ts). */
function openU8(bytes: DataView, at: number, block: OpenBlock, { scale, offset, codes }: Places<'offset'>): void {
  block.scale = half(bytes, at + scale);
  block.offset = half(bytes, at + offset);
  for (let i = 0; i < 8; i++) block.codes[i] = bytes.getUint32(at + codes + 4 * i, true);
}

const TYPES = {
  Q4_0: {
    values: 32, bytes: 18, low: 4, high: 0, group: 32, scales: 'half', zero: 8,
    layout: 'nibbles', places: { scale: 0, codes: 2 }, open: openNibbles,
  },
  Q4_1: {
    values: 32, bytes: 20, low: 4, high: 0, group: 32, scales: 'half_offset', zero: 0,
    layout: 'nibbles', places: { scale: 0, offset: 2, codes: 4 }, open: openNibbles,
  },
  Q5_0: {
    values: 32, bytes: 22, low: 4, high: 1, group: 32, scales: 'half', zero: 16,
    layout: 'nibbles', places: { scale: 0, high: 2, codes: 6 }, open: openNibbles,
  },
  Q5_1: {
    values: 32, bytes: 24, low: 4, high: 1, group: 32, scales: 'half_offset', zero: 0,
    layout: 'nibbles', places: { scale: 0, offset: 2, high: 4, codes: 8 }, open: openNibbles,
  },
  Q8_0: {
    values: 32, bytes: 34, low: 8, high: 0, group: 32, scales: 'half', zero: 128,
    layout: 'codes', places: { scale: 0, codes: 2 }, open: openQ80,
  },
  Q2_K: {
    values: 256, bytes: 84, low: 2, high: 0, group: 16, scales: 'small_offset', zero: 0,
    layout: 'two_bits', places: { scales: 0, codes: 16, scale: 80, offset: 82 }, open: openQ2K,
  },
  Q3_K: {
    values: 256, bytes: 110, low: 2, high: 1, group: 16, scales: 'small', zero: 4,
    layout: 'two_bits', places: { high: 0, codes: 32, scales: 96, scale: 108 }, open: openQ3K,
  },
  Q4_K: {
    values: 256, bytes: 144, low: 4, high: 0, group: 32, scales: 'small_offset', zero: 0,
    layout: 'four_bits', places: { scale: 0, offset: 2, scales: 4, codes: 16 }, open: openQ45K,
  },
  Q5_K: {
    values: 256, bytes: 176, low: 4, high: 1, group: 32, scales: 'small_offset', zero: 0,
    layout: 'four_bits', places: { scale: 0, offset: 2, scales: 4, high: 16, codes: 48 }, open: openQ45K,
  },
  Q6_K: {
    values: 256, bytes: 210, low: 4, high: 2, group: 16, scales: 'small', zero: 32,
    layout: 'six_bits', places: { codes: 0, high: 128, scales: 192, scale: 208 }, open: openQ6K,
  },
  IQ4_NL: {
    values: 32, bytes: 18, low: 4, high: 0, group: 32, scales: 'half', zero: 0, table: IQ4_STEPS,
    layout: 'nibbles', places: { scale: 0, codes: 2 }, open: openNibbles,
  },
  IQ4_XS: {
    values: 256, bytes: 136, low: 4, high: 0, group: 32, scales: 'small', zero: 0, table: IQ4_STEPS,
    layout: 'nibble_groups', places: { scale: 0, scales: 2, codes: 8 }, open: openIQ4XS,
  },
  IQ1_S: {
    values: 256, bytes: 50, low: 2, high: 1, group: 32, scales: 'small', unit: 0.125, zero: 0, table: IQ1_STEPS,
    layout: 'iq1_s', grid: 'IQ1_S', places: { scale: 0, codes: 2, scales: 34 }, open: openIQ1S,
  },
  IQ1_M: {
    values: 256, bytes: 56, low: 2, high: 1, group: 16, scales: 'small', unit: 0.125, zero: 0, table: IQ1_STEPS,
    layout: 'iq1_m', grid: 'IQ1_S', places: { scale: 48, isSpread: true, codes: 0, high: 32, scales: 48 }, open: openIQ1M,
  },
  IQ2_XXS: {
    values: 256, bytes: 66, low: 2, high: 1, group: 32, scales: 'small', unit: 0.125, zero: 0, table: IQ2_STEPS,
    layout: 'iq2_xxs', grid: 'IQ2_XXS', places: { scale: 0, codes: 2, scales: 6 }, open: openIQ2XXS,
  },
  IQ2_XS: {
    values: 256, bytes: 74, low: 2, high: 1, group: 16, scales: 'small', unit: 0.125, zero: 0, table: IQ2_STEPS,
    layout: 'iq2_xs', grid: 'IQ2_XS', places: { scale: 0, codes: 2, scales: 66 }, open: openIQ2XS,
  },
  IQ2_S: {
    values: 256, bytes: 82, low: 2, high: 1, group: 16, scales: 'small', unit: 0.125, zero: 0, table: IQ2_STEPS,
    layout: 'iq2_s', grid: 'IQ2_S', places: { scale: 0, codes: 2, signs: 34, high: 66, scales: 74 }, open: openIQ2S,
  },
  IQ3_XXS: {
    values: 256, bytes: 98, low: 4, high: 0, group: 32, scales: 'small', unit: 0.25, zero: 0, table: IQ3_XXS_STEPS,
    layout: 'iq3_xxs', grid: 'IQ3_XXS', places: { scale: 0, codes: 2, scales: 66 }, open: openIQ3XXS,
  },
  IQ3_S: {
    values: 256, bytes: 110, low: 4, high: 0, group: 32, scales: 'small', zero: 0, table: IQ3_S_STEPS,
    layout: 'iq3_s', grid: 'IQ3_S', places: { scale: 0, codes: 2, high: 66, signs: 74, scales: 106 }, open: openIQ3S,
  },
  TQ1_0: {
    values: 256, bytes: 54, low: 2, high: 0, group: 32, scales: 'small', zero: 1,
    layout: 'ternary', places: { codes: 0, scale: 52 }, open: openTQ10,
  },
  TQ2_0: {
    values: 256, bytes: 66, low: 2, high: 0, group: 32, scales: 'small', zero: 1,
    layout: 'two_bits', places: { codes: 0, scale: 64 }, open: openTQ20,
  },
  MXFP4: {
    values: 32, bytes: 17, low: 4, high: 0, group: 32, scales: 'exponent', zero: 0, table: E2M1_STEPS,
    layout: 'nibbles', places: { scale: 0, codes: 1 }, open: openMXFP4,
  },
  NVFP4: {
    values: 64, bytes: 40, low: 4, high: 0, group: 16, scales: 'e4m3', zero: 0, table: E2M1_STEPS,
    layout: 'nibble_halves', places: { scale: 0, scales: 4, codes: 8 }, open: openNVFP4,
  },
  I8: {
    values: 32, bytes: 36, low: 8, high: 0, group: 32, scales: 'row', zero: 0, signed: true,
    layout: 'codes', places: { scale: 0, codes: 4 }, open: openI8,
  },
  U8: {
    values: 32, bytes: 36, low: 8, high: 0, group: 32, scales: 'half_offset', zero: 0,
    layout: 'codes', places: { scale: 0, offset: 2, codes: 4 }, open: openU8,
  },
} as const satisfies Readonly<Record<string, Omit<BlockFormat, 'name'>>>; // prettier-ignore

/**
 * A block-quantised type by ggml's name; I8: int8 with a scale per row, as in CTranslate2 and ONNX files; U8: unsigned bytes with a scale and
 * an offset, as MLX has them.
 */
export type BlockType = keyof typeof TYPES;

/** Block formats by name. */
export const BLOCK_FORMATS = Object.fromEntries(
  Object.entries(TYPES).map(([name, row]) => [name, { name, ...row }]),
) as unknown as Readonly<Record<BlockType, BlockFormat & { readonly name: BlockType }>>;
