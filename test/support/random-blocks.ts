/** Stored blocks of any type: random, and at the edges. */
import { f32ToF16Bits } from '../../engine/util/f16.ts';
import type { Rng } from '../../engine/util/rng.ts';
import { widenBlocks } from '../../engine/weights/block-format.ts';
import { BLOCK_FORMATS } from '../../engine/weights/block-types.ts';
import type { BlockType } from '../../engine/weights/block-types.ts';

/** Where a block's f16 numbers lie, or, of IQ1_M, the four bytes whose upper nibbles are one; the rest may be any bytes. */
const HALVES: Readonly<Record<BlockType, readonly (number | readonly number[])[]>> = {
  Q4_0: [0], Q4_1: [0, 2], Q5_0: [0], Q5_1: [0, 2], Q8_0: [0], Q2_K: [80, 82], Q3_K: [108], Q4_K: [0, 2], Q5_K: [0, 2], Q6_K: [208], IQ4_NL: [0],
  IQ4_XS: [0], IQ1_S: [0], IQ1_M: [[49, 51, 53, 55]], IQ2_XXS: [0], IQ2_XS: [0], IQ2_S: [0], IQ3_XXS: [0], IQ3_S: [0], TQ1_0: [52], TQ2_0: [64],
  MXFP4: [], NVFP4: [], I8: [], U8: [0, 2],
}; // prettier-ignore

/** Halves as scales: zeros of both signs, the smallest and the largest denormal, the smallest normal, large ones, a negative one. */
const EDGES = [0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x7bff, 0xfbff, 0xbc00];
/** Of MXFP4, of which 0 and 1 make denormal scales. */
const EXPONENTS = [0, 1, 2, 127, 250];

export interface StoredBlocks {
  readonly bytes: Uint8Array;
  /** What they stand for. */
  readonly values: Float32Array;
}

/** As many blocks as `values` take; with `edges` the first have scales at the limits, and codes that are all zeros or ones among them. */
export function randomBlocks(rng: Rng, type: BlockType, values: number, edges = false): StoredBlocks {
  const format = BLOCK_FORMATS[type];
  const bytes = Uint8Array.from({ length: (values / format.values) * format.bytes }, () => Math.floor(rng.uniform() * 256));
  const view = new DataView(bytes.buffer);
  for (let i = 0, at = 0; at < bytes.length; i++, at += format.bytes) {
    const isEdge = edges && i < EDGES.length;
    if (isEdge && i % 3 > 0) bytes.fill(i % 3 === 1 ? 0 : 255, at, at + format.bytes);
    HALVES[type].forEach((place, k) => {
      const bits = isEdge ? EDGES[(i + 3 * k) % EDGES.length]! : f32ToF16Bits(rng.normal() * 0.02);
      if (typeof place === 'number') view.setUint16(at + place, bits, true);
      else place.forEach((byte, n) => (bytes[at + byte] = (bytes[at + byte]! & 15) | (((bits >> (4 * n)) & 15) << 4)));
    });
    // One for all rows, since a row's length is not known here.
    if (type === 'I8' || type === 'NVFP4') view.setFloat32(at, 0.0123, true);
    if (type === 'MXFP4') bytes[at] = (edges ? EXPONENTS[i] : undefined) ?? 110 + Math.floor(rng.uniform() * 20);
  }
  const widened = new Float32Array(values);
  widenBlocks(format, bytes, widened);
  return { bytes, values: widened };
}
