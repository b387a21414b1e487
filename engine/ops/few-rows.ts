/** Products of a few rows: the kernel variant and workgroup that sum them, for `linear` and for kernels that are fused with a product. */
import type { Caps } from '../gpu/caps.ts';
import type { Variant } from '../gpu/kernel.ts';
import { ceilDiv, nextPowerOfTwo } from '../util/math.ts';
import { BLOCK } from '../weights/block-format.ts';
import type { BlockFormat } from '../weights/block-format.ts';
import { BLOCK_FORMATS } from '../weights/block-types.ts';
import { isBlockType } from '../weights/storage.ts';
import { MOST_SPLIT_ROWS, fusedShapes } from './product-shapes.ts';
import type { SplitShape } from './product-shapes.ts';
import { avoids } from './replaceable.ts';
import { hasShuffles, isQuad, takesTexels } from './weight-place.ts';
import { weightFragments, weightVariant } from './weight.ts';
import type { StoredAs } from './weight.ts';

/**
 * Register tiles on software adapters, rows x columns, measured on lavapipe (docs/decisions/products.md). One row: 1x8 or 1x12 per
 * invocation. Two rows: 2x4. More rows, exchanged by subgroup shuffles: 8x4 (38 GFLOP/s), or 16x4 with float weights (10 to 17 % faster;
 * with quantised weights registers spill). Without subgroups: 4x4 (14 GFLOP/s).
 */
export const CPU_TILE = { wg: 8, tileN: 4, tileM: 4 } as const;
/** The tile on GPUs of the kernels that every adapter has. */
const GPU_TILE = { wg: 64, tileN: 2 } as const;

/** The workgroup, and the columns of each invocation, of the kernels that every adapter has. */
export function tileOn({ family }: Caps): { readonly wg: number; readonly tileN: number } {
  return family === 'cpu' ? CPU_TILE : GPU_TILE;
}

/**
 * The most rows of LINEAR_ROWS. With 4 it takes two thirds of the time of LINEAR_BROADCAST, but each type has one more kernel to compile
 * before the first answer.
 */
const FEW_ROWS = 2;

/** How a workgroup sums a tile of a few rows: like LINEAR_ROWS where a subgroup is a SIMD register, like LINEAR_SPLIT on a GPU. */
export interface FewRows {
  readonly variant: Pick<Variant, 'storage' | 'consts' | 'texture' | 'subgroups'>;
  /** Rows of the tile. */
  readonly rows: number;
  /** Columns of the tile. */
  readonly columns: number;
  /** Invocations of the workgroup. */
  readonly wg: number;
  /** Bytes of workgroup memory that the sums take. */
  readonly sharedBytes: number;
}

/** The size of a product: x [rows, 4 k4] by a matrix of `count` columns. */
interface ProductSize {
  readonly rows: number;
  readonly k4: number;
  readonly count: number;
}

/**
 * The tile of a kernel that is fused with a product; `shape` overrides the one that a GPU takes by default. Undefined where the adapter has
 * no such kernel for this many rows: always on SwiftShader.
 */
export function fewRows(caps: Caps, stored: StoredAs, size: ProductSize, shape?: SplitShape): FewRows | undefined {
  const { rows, k4 } = size;
  if (isQuad(caps)) return undefined;
  if (caps.family === 'cpu') {
    const tileN = rows === 1 ? 2 * CPU_TILE.tileN : CPU_TILE.tileN;
    return takesRows(caps, rows, k4) ? simdRows(caps, stored, rows, k4, tileN) : undefined;
  }
  if (!forGPU(caps) || rows > MOST_SPLIT_ROWS) return undefined;
  const shapes = fusedShapes(k4);
  const fits = ({ lanes, tileN }: SplitShape): boolean => rereadBytes(lanes * tileN, size) <= REREAD_BYTES;
  return splitRows(shape ?? shapes.find(fits) ?? shapes.at(-1)!, stored, rows, k4);
}

/**
 * The most bytes that the workgroups of a GPU should read again, where each norms all rows for itself. By count an H100's cache takes 3 us
 * for as many, and another dispatch takes 2.
 */
export const REREAD_BYTES = 2 ** 24;

/** Bytes of x and of the norm's weight that all workgroups of `columns` columns read together, where each norms all rows for itself. */
export function rereadBytes(columns: number, { rows, k4, count }: ProductSize): number {
  return ceilDiv(count, columns) * (rows + 1) * 16 * k4;
}

/** WGSL fragments by which a FewRows variant sums. */
export function fewRowsFragments(v: Variant): readonly string[] {
  if (isSplit(v)) return [...weightFragments(v), 'lib/chunks.wgsl', 'lib/sums_split.wgsl'];
  return [...weightFragments(v, 4), ...(v.consts?.['FOLD'] ? ['lib/fold.wgsl', 'lib/sums_folded.wgsl'] : ['lib/sums_rows.wgsl'])];
}

/** WGSL fragment by which LINEAR_TEXELS adds up a block. */
export function foldFragment({ consts }: Variant): string {
  return consts?.['FOLD'] ? 'lib/fold.wgsl' : 'lib/fold_none.wgsl';
}

/**
 * `{ FOLD: 1 }` where products with a weight scale the sum of a block and not each value (fold.wgsl). Either all products with it do, or
 * none: a row's bits must not depend on the number of rows.
 */
export function foldConst(caps: Caps, { dtype }: StoredAs, k4: number): Readonly<Record<string, number>> {
  if (!isBlockType(dtype) || !takesTexels(caps, k4) || avoids(caps, 'linear_rows')) return {};
  const { low, high, group, table }: BlockFormat = BLOCK_FORMATS[dtype];
  return low === 4 && high === 0 && group === BLOCK && !table ? { FOLD: 1 } : {};
}

/** Whether a FewRows variant sums like LINEAR_SPLIT. */
export function isSplit({ consts }: Variant): boolean {
  return consts?.['SLICES'] !== undefined;
}

/** Whether LINEAR_ROWS computes `m` rows on this adapter. */
export function takesRows(caps: Caps, m: number, k4: number): boolean {
  return hasShuffles(caps) && m <= FEW_ROWS && k4 % caps.subgroupMinSize === 0 && !avoids(caps, 'linear_rows');
}

/** Whether products take LINEAR_SPLIT and LINEAR_BLOCK. If one of them failed, neither is used: their rows have the same bits. */
export function forGPU(caps: Caps): boolean {
  return caps.family !== 'cpu' && !avoids(caps, 'linear_split') && !avoids(caps, 'linear_block');
}

/** The tile of LINEAR_ROWS with `tileN` columns an invocation. */
export function simdRows(caps: Caps, stored: StoredAs, m: number, k4: number, tileN: number): FewRows {
  const { subgroupMinSize: lanes } = caps;
  const { consts, ...rest } = weightVariant(stored, lanes);
  const own = { LANES: lanes, TILE_N: tileN, ROWS: m, ...foldConst(caps, stored, k4) };
  const variant = { ...rest, consts: { ...own, ...consts }, subgroups: true };
  return { variant, rows: m, columns: lanes * tileN, wg: lanes, sharedBytes: 0 };
}

/**
 * Quads of float weights that an invocation loads at once from a column. They must divide a chunk; with few sums there are registers for
 * more.
 */
function floatQuads(k4: number, outputs: number): 1 | 4 | 8 {
  return k4 % 8 === 0 && outputs <= 2 ? 8 : k4 % 4 === 0 ? 4 : 1;
}

/** The tile of LINEAR_SPLIT with this shape. Its rows are rounded up to a power of two, so that there are few pipelines. */
export function splitRows({ lanes, slices, tileN }: SplitShape, stored: StoredAs, m: number, k4: number): FewRows {
  const rows = nextPowerOfTwo(m);
  const { consts, ...rest } = weightVariant(stored, floatQuads(k4, rows * tileN));
  const own = { LANES: lanes, SLICES: slices, TILE_N: tileN, ROWS: rows };
  const columns = lanes * tileN;
  return {
    variant: { ...rest, consts: { ...own, ...consts } },
    rows,
    columns,
    wg: lanes * slices,
    sharedBytes: 4 * rows * columns * slices,
  };
}
