/** The ways in which a GPU multiplies: all cut K alike, so a row has the same bits in each (linear_split.wgsl, linear_block.wgsl). */
import { ceilDiv, nextPowerOfTwo } from '../util/math.ts';

/** Groups of `lanes` invocations share columns, `tileN` each, and `slices` groups take turns with chunks of K; up to 8 rows. */
export interface SplitShape {
  readonly name: string;
  readonly kind: 'split';
  readonly lanes: number;
  readonly slices: number;
  readonly tileN: number;
}

/** A tile of `side` tileM rows by `side` tileN columns in workgroup memory, tileM x tileN to each of side x side invocations. */
interface BlockShape {
  readonly name: string;
  readonly kind: 'block';
  readonly tileM: number;
  readonly tileN: number;
  readonly side: number;
}

export type ProductShape = SplitShape | BlockShape;

const split = (lanes: number, slices: number, tileN: number): SplitShape => ({
  name: `split ${lanes} x ${slices}, ${tileN}`,
  kind: 'split',
  lanes,
  slices,
  tileN,
});
/** The name has what is not usual. */
const block = (tileM: number, tileN = 4, side = 16): BlockShape => ({
  name: `block ${side * tileM}${tileN === 4 && side === 16 ? '' : ` x ${side * tileN}`}`,
  kind: 'block',
  tileM,
  tileN,
  side,
});

/** Chunks of K, as lib/chunks.wgsl cuts it: 32 at most. */
function chunksOf(k4: number): number {
  return ceilDiv(k4, Math.max(16, 8 * ceilDiv(k4, 256)));
}

/** Slices that have a chunk each, or most of them. */
const slicesOf = (k4: number): 16 | 32 => (chunksOf(k4) <= 16 ? 16 : 32);

type Shapes = readonly [ProductShape, ...ProductShape[]];

/**
 * By the most rows they are for, a power of two; the first of each is taken where nothing was measured. A card has room for more invocations than small matrices
 * have columns, so few columns a workgroup and a slice for each chunk come first: an invocation waits for few loads one after the other. Wider ones read longer
 * runs of weights, and those with several columns an invocation x less often, which counts where there are several rows of it. The sums of a split take 16 KiB at most, which every adapter has.
 */
const shapesOf = (slices: 16 | 32): readonly { readonly rows: number; readonly shapes: Shapes }[] => [
  { rows: 2, shapes: [split(8, slices, 1), split(8, slices, 2), split(16, 16, 1), split(16, 16, 2), split(32, 8, 1), split(32, 8, 2)] },
  { rows: 4, shapes: [split(8, slices, 2), split(8, slices, 1), split(8, 16, 4), split(16, 16, 2), split(32, 8, 2)] },
  { rows: 8, shapes: [split(8, slices, 2), split(8, 16, 4), split(16, 16, 2), split(32, 8, 2), block(1)] },
  { rows: 16, shapes: [block(1), block(2), block(2, 4, 8)] },
  { rows: 32, shapes: [block(2), block(1), block(4), block(4, 4, 8)] },
  { rows: 64, shapes: [block(4), block(2), block(4, 4, 8), block(8, 4, 8), block(8, 8, 8)] },
  { rows: 128, shapes: [block(8), block(4), block(8, 8), block(8, 4, 8), block(8, 8, 8)] },
  { rows: Infinity, shapes: [block(8), block(4), block(8, 8), block(8, 4, 8), block(8, 8, 8)] },
]; // prettier-ignore
/** Made once: every product that is recorded asks for them. */
const SHAPES = { 16: shapesOf(16), 32: shapesOf(32) } as const;
/** Beyond, all numbers of rows are one class. */
const MOST_ROWS = 256;
/** Rows that a split has at most. */
export const MOST_SPLIT_ROWS = 8;

/** Rows up to which products are measured and chosen alike. */
export function productRows(rows: number): number {
  return Math.min(nextPowerOfTwo(rows), MOST_ROWS);
}

/** The fewest rows that take this tile where nothing was measured; undefined = none do. */
export function rowsOfBlock(tileM: number, tileN: number, side: number): number | undefined {
  const at = SHAPES[16].findIndex(({ shapes }) => shapes[0].name === block(tileM, tileN, side).name);
  return at > 0 ? SHAPES[16][at - 1]!.rows + 1 : undefined;
}

/** The ways for a number of rows of so many quads. */
export function productShapes(rows: number, k4: number): Shapes {
  const most = productRows(rows);
  return SHAPES[slicesOf(k4)].find((row) => most <= row.rows)!.shapes;
}

type FusedShapes = readonly [SplitShape, ...SplitShape[]];
const fusedShapesOf = (slices: 16 | 32): FusedShapes => [split(8, slices, 2), split(16, 16, 2), split(32, 8, 2)];
const FUSED_SHAPES = { 16: fusedShapesOf(16), 32: fusedShapesOf(32) } as const;

/** The ways of kernels that do more with their sums, from few columns a workgroup to many: two groups of them, such as gates and the ups that belong to them. */
export function fusedShapes(k4: number): FusedShapes {
  return FUSED_SHAPES[slicesOf(k4)];
}

/** The way of those that need all columns of a head at once: as many of them an invocation as fit into 16 KiB, with what is made of them. */
export function wholeHeadShape(rows: number, headDim: number): SplitShape {
  const tileN = [4, 2].find((n) => 32 * n <= headDim && 4 * nextPowerOfTwo(rows) * (32 * 8 * n + headDim) <= 2 ** 14);
  return split(32, 8, tileN ?? 1);
}
