/**
 * The workgroup shapes of products on a GPU. All of them cut K into the same chunks and add these in the same order, so a row has the same
 * bits whichever shape computes it (linear_split.wgsl, linear_block.wgsl).
 */
import { ceilDiv, nextPowerOfTwo } from '../util/math.ts';

/**
 * Split-K, for up to MOST_SPLIT_ROWS rows. A workgroup has `slices` groups of `lanes` invocations; all groups compute the same `lanes` x
 * `tileN` columns, and take turns with the chunks of K.
 */
export interface SplitShape {
  readonly name: string;
  readonly kind: 'split';
  readonly lanes: number;
  readonly slices: number;
  readonly tileN: number;
}

/** A tile in workgroup memory: `side` x `side` invocations compute `tileM` rows by `tileN` columns each. */
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
/** Makes a tile shape, named by its rows, and by its columns unless they are the usual 64. */
const block = (tileM: number, tileN = 4, side = 16): BlockShape => ({
  name: `block ${side * tileM}${tileN === 4 && side === 16 ? '' : ` x ${side * tileN}`}`,
  kind: 'block',
  tileM,
  tileN,
  side,
});

/** The number of chunks, at most 32, that lib/chunks.wgsl cuts `k4` quads into. */
function chunksOf(k4: number): number {
  return ceilDiv(k4, Math.max(16, 8 * ceilDiv(k4, 256)));
}

/** Enough slices for each chunk to have its own. */
const slicesOf = (k4: number): 16 | 32 => (chunksOf(k4) <= 16 ? 16 : 32);

/** The most rows that a SplitShape takes. */
export const MOST_SPLIT_ROWS = 8;

type Shapes = readonly [ProductShape, ...ProductShape[]];

/**
 * The candidates for up to `rows` rows, a power of two. Without a measurement the first is taken. A small matrix has fewer columns than a
 * card has room for invocations. So the first shapes have few columns a workgroup and a slice for each chunk, and an invocation waits for
 * few loads in a row. Wider shapes read longer runs of weights. Several columns an invocation load x less often, which counts with several
 * rows. A split shape's sums take at most 16 KiB of workgroup memory, which every adapter has.
 */
const shapesOf = (slices: 16 | 32): readonly { readonly rows: number; readonly shapes: Shapes }[] => [
  { rows: 2, shapes: [split(8, slices, 1), split(8, slices, 2), split(16, 16, 1), split(16, 16, 2), split(32, 8, 1), split(32, 8, 2)] },
  { rows: 4, shapes: [split(8, slices, 2), split(8, slices, 1), split(8, 16, 4), split(16, 16, 2), split(32, 8, 2)] },
  { rows: MOST_SPLIT_ROWS, shapes: [split(8, slices, 2), split(8, 16, 4), split(16, 16, 2), split(32, 8, 2), block(1)] },
  { rows: 16, shapes: [block(1), block(2), block(2, 4, 8)] },
  { rows: 32, shapes: [block(2), block(1), block(4), block(4, 4, 8)] },
  { rows: 64, shapes: [block(4), block(2), block(4, 4, 8), block(8, 4, 8), block(8, 8, 8)] },
  { rows: Infinity, shapes: [block(8), block(4), block(8, 8), block(8, 4, 8), block(8, 8, 8)] },
]; // prettier-ignore
/** Candidates by the number of slices. Built once, because every recorded product looks its shapes up. */
const SHAPES = { 16: shapesOf(16), 32: shapesOf(32) } as const;
/** Products of at least this many rows share a measurement. */
const MOST_ROWS = 256;

/** The number of rows whose measurement a product of `rows` rows shares: the next power of two, up to MOST_ROWS. */
export function productRows(rows: number): number {
  return Math.min(nextPowerOfTwo(rows), MOST_ROWS);
}

/** The candidates for a product of `rows` rows over `k4` quads of K; the first is the default. */
export function productShapes(rows: number, k4: number): Shapes {
  const most = productRows(rows);
  return SHAPES[slicesOf(k4)].find((row) => most <= row.rows)!.shapes;
}

/** The names of all candidates, in order: a stored choice is valid for this list only. */
export function productCandidates(): readonly string[] {
  return [SHAPES[16], SHAPES[32]].flat().flatMap(({ shapes }) => shapes.map(({ name }) => name));
}

/** The fewest rows for which this tile is the default; undefined where it never is. */
export function rowsOfBlock(tileM: number, tileN: number, side: number): number | undefined {
  const { name } = block(tileM, tileN, side);
  const at = SHAPES[16].findIndex(({ shapes }) => shapes[0].name === name);
  return at > 0 ? SHAPES[16][at - 1]!.rows + 1 : undefined;
}

type FusedShapes = readonly [SplitShape, ...SplitShape[]];
const fusedShapesOf = (slices: 16 | 32): FusedShapes => [split(8, slices, 2), split(16, 16, 2), split(32, 8, 2)];
const FUSED_SHAPES = { 16: fusedShapesOf(16), 32: fusedShapesOf(32) } as const;

/**
 * Shapes of kernels that are fused with a product (linear_fused.wgsl, project_heads.wgsl), from the fewest columns per workgroup to the
 * most. Each has two columns per invocation, such as a gate and its up.
 */
export function fusedShapes(k4: number): FusedShapes {
  return FUSED_SHAPES[slicesOf(k4)];
}

/** Shape of kernels that need a whole head in one workgroup: as many of its columns at a time as fit into 16 KiB together with the head. */
export function wholeHeadShape(rows: number, headDim: number): SplitShape {
  const tileN = [4, 2].find((n) => 32 * n <= headDim && 4 * nextPowerOfTwo(rows) * (32 * 8 * n + headDim) <= 2 ** 14);
  return split(32, 8, tileN ?? 1);
}
