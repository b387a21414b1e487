/** Where the words of weights, and of pages of keys and values, lie on a device, and in which order: the one place that chooses. */
import type { Caps } from '../gpu/caps.ts';
import { TEXEL_BYTES } from '../gpu/tensor.ts';
import { BLOCK } from '../weights/block-format.ts';
import { isBlockType } from '../weights/storage.ts';
import type { WeightType } from '../weights/storage.ts';
import { avoids } from './replaceable.ts';

/**
 * - buffer: `[words of a row][padded columns]`, and floats as weight.ts says.
 * - texture: `[groups of GROUP columns][words of a row][GROUP]`, four columns a texel: what a workgroup reads follows one another. Of f16 a word is two, with
 *   four values along K, so that a texel has two columns.
 */
export type WordPlace = 'buffer' | 'texture';

/** Columns of a group in a texture: those of a workgroup that has one row, so that it reads one stream of words (docs/decisions/products.md). */
export const GROUP = 64;

/** Bytes from which a weight is worth a texture, whose last row of texels may be all but empty. */
const LEAST_BYTES = 2 ** 17;

/** Rows between two pieces of x that products of many rows take (linear_texels.wgsl): whole workgroups, and whole multiples of 256 bytes. */
export const TEXEL_STEP = 48;

/** Whether products of many rows read x, rows of so many quads, from a texture. */
export function takesTexels(caps: Caps, k4: number): boolean {
  return hasShuffles(caps) && caps.maxTexels >= 2 * TEXEL_STEP * k4 && !avoids(caps, 'linear_texels');
}

/** Where a weight of so many bytes is put. Lavapipe loads four words of a texel for 8 lanes with 45 instructions and a call, and four words of a buffer with 340 (docs/decisions/products.md). */
export function placeOf(caps: Caps, type: WeightType, bytes: number): WordPlace {
  const reader = isBlockType(type) ? 'words_texture' : 'floats_texture';
  const canRead = caps.maxTexels > 0 && hasShuffles(caps) && !avoids(caps, reader);
  return canRead && type !== 'f32' && bytes >= LEAST_BYTES ? 'texture' : 'buffer';
}

/** Where pages of keys and values of so many channels are put, which take so many bytes at most: f16 on lavapipe in a texture, eight channels a texel. */
export function pagePlace(caps: Caps, dtype: string, headDim: number, bytes: number): WordPlace {
  const canRead = hasShuffles(caps) && !avoids(caps, 'pages_texture') && !avoids(caps, 'store_pages_texels');
  return canRead && dtype === 'f16' && headDim % 16 === 0 && bytes <= caps.maxTexels * TEXEL_BYTES ? 'texture' : 'buffer';
}

/** Bytes that a part of a weight may have there. */
export function mostBytes({ maxTexels, maxBindingBytes }: Caps, place: WordPlace): number {
  return place === 'texture' ? maxTexels * TEXEL_BYTES : maxBindingBytes;
}

/** True where a subgroup is a SIMD register that holds a block of weights along K, as on lavapipe. */
export function hasShuffles({ family, subgroups, subgroupMinSize: lanes, subgroupMaxSize: most }: Caps): boolean {
  return family === 'cpu' && subgroups && lanes === most && lanes === BLOCK / 4;
}

/** True on software adapters with SIMD registers of 4 (SwiftShader), which have kernels of their own: they run the tiles of the others 6-9x slower. */
export function isQuad({ family, subgroups, subgroupMinSize, subgroupMaxSize }: Caps): boolean {
  return family === 'cpu' && subgroups && subgroupMinSize === 4 && subgroupMaxSize === 4;
}
