/**
 * Random weights of any size and storage type: a function of a seed and a position, so that the host and every device generate the same
 * bits of any part.
 */
import { randomBits } from '../../util/rng.ts';
import { f32ToF16Bits, f16BitsToF32 } from '../../util/f16.ts';
import type { Range } from '../../util/math.ts';
import { setHalfScale, widenBlocks } from '../block-format.ts';
import type { BlockFormat, ScaleKind } from '../block-format.ts';
import { BLOCK_FORMATS } from '../block-types.ts';
import type { BlockType } from '../block-types.ts';
import type { RandomBlocks, RandomFloats } from '../checkpoint.ts';

/** Changes the seed for the draws of signs, which must differ from those of codes. */
const SIGNS = 0x5bd1e995;

/** Root mean square of 2 c - 255 over all bytes c. */
const BYTE_RMS = Math.sqrt((256 ** 2 - 1) / 3);
/** Least exponent: below it f16 would not hold every value exactly. */
const LEAST_EXPONENT = -14;

/**
 * Random floats for a matrix with rows of `width`, of magnitude 1 / sqrt(width) rounded to a power of two, so that activations keep theirs.
 */
export function randomFloats(seed: number, width: number): RandomFloats {
  return { seed, exponent: Math.max(LEAST_EXPONENT, Math.round(Math.log2(1 / Math.sqrt(width) / BYTE_RMS))) };
}

/** Random blocks for a matrix with rows of `width`, of the same magnitude and with a mean of about zero. */
export function randomBlocks(seed: number, type: BlockType, width: number): RandomBlocks {
  const { scale, offset } = sizes(BLOCK_FORMATS[type]);
  const wanted = scale / Math.sqrt(width);
  const { scales } = BLOCK_FORMATS[type];
  if (scales === 'exponent') return { seed, type, scale: 128 + Math.round(Math.log2(wanted)), offset: 0 };
  if (isSingle(scales)) return { seed, type, scale: new Uint32Array(Float32Array.of(wanted).buffer)[0]!, offset: 0 };
  return { seed, type, scale: f32ToF16Bits(wanted), offset: f32ToF16Bits(wanted * offset) };
}

/** Whether a block's scale is an f32. */
const isSingle = (scales: ScaleKind): boolean => scales === 'row' || scales === 'e4m3';

/** Bytes of a block's scale; 0 = it is spread over others (BlockPlaces.isSpread). */
export function scaleBytes({ scales, places }: Pick<BlockFormat, 'scales' | 'places'>): 0 | 1 | 2 | 4 {
  if (places.isSpread) return 0;
  return scales === 'exponent' ? 1 : isSingle(scales) ? 4 : 2;
}

/** Values [from, to) of a random tensor. */
export function floatsOf({ seed, exponent }: RandomFloats, { from, to }: Range): Float32Array {
  return Float32Array.from({ length: to - from }, (_, i) => {
    const at = from + i;
    return (2 * ((randomBits(seed, at >>> 2) >>> ((at & 3) * 8)) & 0xff) - 255) * 2 ** exponent;
  });
}

/** Blocks [from, to) of a random tensor, as a file would store them. */
export function blocksOf({ seed, type, scale, offset }: RandomBlocks, { from, to }: Range): Uint8Array {
  const format: BlockFormat = BLOCK_FORMATS[type];
  const { bytes, places } = format;
  const draws = Math.ceil(bytes / 4);
  const out = new Uint8Array((to - from) * bytes);
  const view = new DataView(out.buffer);
  for (let block = from, at = 0; block < to; block++, at += bytes) {
    for (let b = 0; b < bytes; b++) out[at + b] = randomBits(seed, block * draws + (b >> 2)) >>> ((b & 3) * 8);
    const size = scaleBytes(format);
    const sign = size === 0 || size === 2 ? randomBits(seed ^ SIGNS, block) & 0x8000 : 0;
    if (size === 0) setHalfScale(view, at, places, scale ^ sign);
    for (let b = 0; b < size; b++) out[at + places.scale + b] = (scale ^ sign) >>> (b * 8);
    if (places.offset !== undefined) for (let b = 0; b < 2; b++) out[at + places.offset + b] = (offset ^ sign) >>> (b * 8);
  }
  return out;
}

/** Blocks from which the numbers below are estimated: enough for two digits. */
const SAMPLED = 64;

/** The scale that gives values of a type a magnitude of 1 on average, and the ratio of its offset that gives them a mean of 0. */
function sizes(format: BlockFormat & { readonly name: BlockType }): { readonly scale: number; readonly offset: number } {
  const one = format.scales === 'exponent' ? 128 : isSingle(format.scales) ? 0x3f800000 : 0x3c00;
  const valuesOf = (scale: number, offset: number): Float32Array => {
    const out = new Float32Array(SAMPLED * format.values);
    // Scales have both signs, which cancel out in a mean.
    const bytes = blocksOf({ seed: 1, type: format.name, scale, offset }, { from: 0, to: SAMPLED });
    widenBlocks(format, bytes, out);
    return out;
  };
  const distance = (values: Float32Array): number => values.reduce((sum, value) => sum + Math.abs(value), 0) / values.length;
  const hasOffset = format.places.offset !== undefined;
  const offset = hasOffset ? distance(valuesOf(one, 0)) / distance(valuesOf(0, one)) : 0;
  const against = format.scales === 'half_offset' ? -offset : offset;
  const values = valuesOf(one, hasOffset ? f32ToF16Bits(against) : 0);
  const rms = Math.sqrt(values.reduce((sum, value) => sum + value * value, 0) / values.length);
  return { scale: 1 / rms, offset: hasOffset ? f16BitsToF32(f32ToF16Bits(against)) : 0 };
}
