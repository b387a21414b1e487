/** Products of a few rows, for `linear` and for kernels that do more with their sums: which shape they take, and where. */
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
 * Shapes measured on lavapipe (docs/decisions/products.md): one row 1x8 or 1x12 of 8 lanes, two rows 2x4; more rows 8x4 (38 GFLOP/s) or, of floats, 16x4 (10 to 17 %
 * more; with blocks registers spill) by broadcast; without subgroups 4x4 (14 GFLOP/s).
 */
export const CPU_TILE = { wg: 8, tileN: 4, tileM: 4 } as const;
/** Rows of LINEAR_ROWS. With 4 it takes two thirds of the time of LINEAR_BROADCAST, but is one more kernel to compile for each type before the first answer. */
const FEW_ROWS = 2;

/** How the sums of a few rows are shared by a workgroup: as by LINEAR_ROWS where a subgroup is a SIMD register, as by LINEAR_SPLIT on a GPU. */
export interface FewRows {
  readonly variant: Pick<Variant, 'storage' | 'consts' | 'texture' | 'subgroups'>;
  readonly rows: number;
  /** Of a tile. */
  readonly columns: number;
  /** Invocations of a workgroup. */
  readonly wg: number;
  /** Workgroup memory. */
  readonly sharedBytes: number;
}

/** What a matrix of so many columns is multiplied by. */
interface FewFactors {
  readonly rows: number;
  readonly k4: number;
  /** Of the matrix. */
  readonly count: number;
  /** Of a GPU's workgroups, where not as usual. */
  readonly shape?: SplitShape | undefined;
}

/** For kernels that do more with the sums than `linear`; undefined where no workgroup holds so few rows, as on SwiftShader, whose kernel has no others beside it. */
export function fewRows(caps: Caps, stored: StoredAs, { rows, k4, count, shape }: FewFactors): FewRows | undefined {
  if (isQuad(caps)) return undefined;
  if (caps.family === 'cpu')
    return takesRows(caps, rows, k4) ? rowsShape(caps, stored, rows, k4, rows === 1 ? 2 * CPU_TILE.tileN : CPU_TILE.tileN) : undefined;
  if (!forGPU(caps) || rows > MOST_SPLIT_ROWS) return undefined;
  const shapes = fusedShapes(k4);
  const rereads = ({ lanes, tileN }: SplitShape): number => rereadBytes({ columns: lanes * tileN }, count, rows, k4);
  return splitShape(shape ?? shapes.find((one) => rereads(one) <= REREAD_BYTES) ?? shapes.at(-1)!, stored, rows, k4);
}

/** Bytes that workgroups of a GPU had better not read once more, of rows and of norms: by count an H100's cache takes 3 us for as many, and a dispatch more takes 2. */
export const REREAD_BYTES = 2 ** 24;

/** What workgroups of so many columns read once more in all, where each makes the norm of its rows anew. */
export function rereadBytes({ columns }: Pick<FewRows, 'columns'>, count: number, rows: number, k4: number): number {
  return ceilDiv(count, columns) * (rows + 1) * 16 * k4;
}

/** The fragments of a FewRows' sums. */
export function fewRowsFragments(v: Variant): readonly string[] {
  if (isSplit(v)) return [...weightFragments(v), 'lib/chunks.wgsl', 'lib/sums_split.wgsl'];
  return [...weightFragments(v, 4), ...(v.consts?.['FOLD'] ? ['lib/fold.wgsl', 'lib/sums_folded.wgsl'] : ['lib/sums_rows.wgsl'])];
}

/** How LINEAR_TEXELS adds what it has of a block. */
export function foldFragment({ consts }: Variant): string {
  return consts?.['FOLD'] ? 'lib/fold.wgsl' : 'lib/fold_none.wgsl';
}

/** Whether products with a weight scale the sums of its blocks instead of each value (fold.wgsl): all products, or a row's bits would depend on how many there are. */
export function foldConst(caps: Caps, { dtype }: StoredAs, k4: number): Readonly<Record<string, number>> {
  if (!isBlockType(dtype) || !takesTexels(caps, k4) || avoids(caps, 'linear_rows')) return {};
  const { low, high, group, table }: BlockFormat = BLOCK_FORMATS[dtype];
  return low === 4 && high === 0 && group === BLOCK && !table ? { FOLD: 1 } : {};
}

/** Whether a FewRows is as LINEAR_SPLIT's. */
export function isSplit({ consts }: Variant): boolean {
  return consts?.['SLICES'] !== undefined;
}

/** Whether so few rows are LINEAR_ROWS' on this adapter. */
export function takesRows(caps: Caps, m: number, k4: number): boolean {
  return hasShuffles(caps) && m <= FEW_ROWS && k4 % caps.subgroupMinSize === 0 && !avoids(caps, 'linear_rows');
}

/** Whether products take the kernels for GPUs, none of which failed. */
export function forGPU(caps: Caps): boolean {
  return caps.family !== 'cpu' && !avoids(caps, 'linear_split') && !avoids(caps, 'linear_block');
}

/** LINEAR_ROWS with so many columns an invocation. */
export function rowsShape(caps: Caps, stored: StoredAs, m: number, k4: number, tileN: number): FewRows {
  const { subgroupMinSize: lanes } = caps;
  const { consts, ...rest } = weightVariant(stored, lanes);
  const own = { LANES: lanes, TILE_N: tileN, ROWS: m, ...foldConst(caps, stored, k4) };
  const variant = { ...rest, consts: { ...own, ...consts }, subgroups: true };
  return { variant, rows: m, columns: lanes * tileN, wg: lanes, sharedBytes: 0 };
}

/** Quads that an invocation loads at once of each column of floats: whole parts of a chunk, where they are known to be there, and more where it has few sums. */
function floatQuads(k4: number, outputs: number): 1 | 4 | 8 {
  return k4 % 8 === 0 && outputs <= 2 ? 8 : k4 % 4 === 0 ? 4 : 1;
}

/** LINEAR_SPLIT with the groups of that shape, for as many rows as the next power of two. */
export function splitShape({ lanes, slices, tileN }: SplitShape, stored: StoredAs, m: number, k4: number): FewRows {
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
