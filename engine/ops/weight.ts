/** Weight matrices on a device, and the WGSL fragments by which kernels read them. */
import type { Variant } from '../gpu/kernel.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { BLOCK, blocksPerWord, hasWide } from '../weights/block-format.ts';
import type { BlockFormat } from '../weights/block-format.ts';
import { BLOCK_FORMATS } from '../weights/block-types.ts';
import type { BlockType } from '../weights/block-types.ts';
import { isBlockType } from '../weights/storage.ts';
import type { WeightType } from '../weights/storage.ts';
import type { WordPlace } from './weight-place.ts';

/**
 * A weight matrix [N, K], stacked by rows from parts, each in a buffer of its own: storage types may differ, and the adapter limits the
 * size of a binding.
 */
export interface LinearWeight {
  readonly inFeatures: number;
  readonly outFeatures: number;
  readonly parts: readonly LinearPart[];
}

/** How a part of a weight is stored; kernel variants depend on it. */
export interface StoredAs {
  readonly dtype: WeightType;
  readonly place: WordPlace;
}

export interface LinearPart extends StoredAs {
  /**
   * Floats: `[ceil(K/4)][padded]` of 4 values along K, or in groups of columns (weight-place.ts). Quantised blocks: laid out as by
   * pack_blocks.wgsl.
   */
  readonly weight: Tensor;
  /** First output feature, number of them, and that number padded to 8, or to whole groups of columns. */
  readonly first: number;
  readonly count: number;
  readonly padded: number;
}

/** The part of a kernel's variant that follows from how a weight is stored. */
export interface WeightVariant {
  readonly storage: string;
  readonly consts: Readonly<Record<string, number>>;
  readonly texture?: string;
}

/**
 * The variant of kernels whose binding is called `weight`. Floats have no blocks: a kernel processes `quads` quads of them at a time
 * instead.
 */
export function weightVariant({ dtype, place }: StoredAs, quads = 1): WeightVariant {
  const inTexture = place === 'texture' && { texture: 'weight' };
  if (!isBlockType(dtype)) return { storage: dtype, consts: { BLOCK_QUADS: quads }, ...inTexture };
  const format: BlockFormat = BLOCK_FORMATS[dtype];
  const { low, high, group, zero, table, unit = 1 } = format;
  const planes = { LOW_BITS: low, HIGH_BITS: high, GROUPS: BLOCK / group, ZERO: zero };
  const scales = { SCALE_BLOCKS: blocksPerWord(format), HAS_WIDE: hasWide(format) ? 1 : 0 };
  const units = format.scales === 'small' && { UNIT_BITS: -Math.log2(unit) };
  const consts = { ...planes, ...scales, ...units, ...(table && tableConsts(table)) };
  return { storage: dtype, consts, ...inTexture };
}

/** Up to 16 signed bytes, packed into four words. */
function tableConsts(table: readonly number[]): Readonly<Record<string, number>> {
  const words = new Uint32Array(Int8Array.from({ length: 16 }, (_, i) => table[i] ?? 0).buffer);
  return Object.fromEntries([...words].map((word, i) => [`TABLE_${i}`, word]));
}

/**
 * WGSL fragments that read a variant's quantised weights: block_at, next_block, word_at and block_quad; with `columns` of 4 also
 * next_blocks and words_at, which read four adjacent columns in wider loads.
 */
export function weightFragments({ storage = 'f32', texture }: Variant, columns: 1 | 4 = 1): readonly string[] {
  const format = BLOCK_FORMATS[storage as BlockType] as (typeof BLOCK_FORMATS)[BlockType] | undefined;
  if (!format) return floatFragments(storage, columns, texture !== undefined);
  const codes = 'table' in format ? 'table' : 'signed' in format ? 'signed' : 'linear';
  const loads = columns === 4 ? 'columns' : 'column';
  const words = texture === undefined ? `words_of_${loads}` : 'words_texture';
  return [
    `lib/codes_${codes}.wgsl`,
    `lib/scales_${format.scales}.wgsl`,
    `lib/wide_${format.scales === 'e4m3' ? 'single' : 'halves'}.wgsl`,
    'lib/weight_blocks.wgsl',
    `lib/block_${loads}.wgsl`,
    `lib/${words}.wgsl`,
  ];
}

function floatFragments(storage: string, columns: 1 | 4, inTexture: boolean): readonly string[] {
  const widened = [`lib/weight_${storage}.wgsl`, 'lib/weight_floats.wgsl'];
  if (inTexture) return [...widened, 'lib/float_columns.wgsl', 'lib/floats_texture.wgsl'];
  return [...widened, ...(columns === 1 ? ['lib/floats_of_column.wgsl'] : ['lib/float_columns.wgsl', 'lib/floats_of_columns.wgsl'])];
}

/** WGSL fragment that widens four stored floats, of one column or of each of four adjacent ones. */
export function floatFragment({ storage = 'f32' }: Pick<Variant, 'storage'>, columns: 1 | 4 = 1): string {
  return columns === 4 ? `lib/quad_${storage}.wgsl` : `lib/weight_${storage}.wgsl`;
}
