/** Chooses where the words of weights and KV pages lie on a device, and in which order. */
import type { Caps } from '../gpu/caps.ts';
import { TEXEL_BYTES } from '../gpu/tensor.ts';
import { BLOCK } from '../weights/block-format.ts';
import { isBlockType } from '../weights/storage.ts';
import type { WeightType } from '../weights/storage.ts';
import { avoids } from './replaceable.ts';

/**
 * Place of a weight's words:
 * - buffer: `[words of a row][padded columns]`; floats as weight.ts says.
 * - texture: `[groups of GROUP columns][words of a row][GROUP]`, four columns per texel, so that a workgroup reads consecutive words. For
 * f16 a word is two u32 with four values along K, so a texel has two columns.
 */
export type WordPlace = 'buffer' | 'texture';

/**
 * Columns per group in a texture: as many as a workgroup with one row computes, so that it reads one stream of words
 * (docs/decisions/products.md).
 */
export const GROUP = 64;

/** Least bytes of a weight that is put into a texture, whose last row of texels may be almost empty. */
const LEAST_BYTES = 2 ** 17;

/**
 * Granularity, in rows, of the pieces of x that products of many rows take (linear_texels.wgsl): whole workgroups, and whole multiples of
 * 256 bytes.
 */
export const TEXEL_STEP = 48;

/** Whether products of many rows read x, with rows of this many quads, from a texture. */
export function takesTexels(caps: Caps, k4: number): boolean {
  return hasShuffles(caps) && caps.maxTexels >= 2 * TEXEL_STEP * k4 && !avoids(caps, 'linear_texels');
}

/**
 * Place of a weight of `bytes` bytes. Lavapipe loads four words of a texel for 8 lanes with 45 instructions and a call, and four words of a
 * buffer with 340 (docs/decisions/products.md).
 */
export function placeOf(caps: Caps, type: WeightType, bytes: number): WordPlace {
  const reader = isBlockType(type) ? 'words_texture' : 'floats_texture';
  const canRead = caps.maxTexels > 0 && hasShuffles(caps) && !avoids(caps, reader);
  return canRead && type !== 'f32' && bytes >= LEAST_BYTES ? 'texture' : 'buffer';
}

/**
 * Place of KV pages with heads of this many channels and at most `bytes` bytes: on lavapipe f16 pages are textures, eight channels per
 * texel.
 */
export function pagePlace(caps: Caps, dtype: string, headDim: number, bytes: number): WordPlace {
  const canRead = hasShuffles(caps) && !avoids(caps, 'pages_texture') && !avoids(caps, 'store_pages_texels');
  return canRead && dtype === 'f16' && headDim % 16 === 0 && bytes <= caps.maxTexels * TEXEL_BYTES ? 'texture' : 'buffer';
}

/** Most bytes of a part of a weight in a place. */
export function mostBytes({ maxTexels, maxBindingBytes }: Caps, place: WordPlace): number {
  return place === 'texture' ? maxTexels * TEXEL_BYTES : maxBindingBytes;
}

/** Whether a subgroup is a SIMD register that holds a block of weights along K, as on lavapipe. */
export function hasShuffles({ family, subgroups, subgroupMinSize: lanes, subgroupMaxSize: most }: Caps): boolean {
  return family === 'cpu' && subgroups && lanes === most && lanes === BLOCK / 4;
}

/**
 * Whether this is a software adapter with SIMD registers of 4 (SwiftShader), which has kernels of its own: it runs the tiles of the others
 * 6-9x slower.
 */
export function isQuad({ family, subgroups, subgroupMinSize, subgroupMaxSize }: Caps): boolean {
  return family === 'cpu' && subgroups && subgroupMinSize === 4 && subgroupMaxSize === 4;
}
