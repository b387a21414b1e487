/** The ways in which a GPU multiplies: all cut K alike, so a row has the same bits in each (linear_split.wgsl, linear_block.wgsl). */
import { nextPowerOfTwo } from '../util/math.ts';

/**
 * `split`: groups of `lanes` invocations share columns, `tileN` each, and `slices` groups take turns with chunks of K; up to 8 rows. `block`: a tile of
 * 16 tileM rows by 64 columns in workgroup memory.
 */
export type ProductShape = { readonly name: string } & (
  | { readonly kind: 'split'; readonly lanes: number; readonly slices: number; readonly tileN: number }
  | { readonly kind: 'block'; readonly tileM: number }
);

const split = (lanes: number, slices: number, tileN: number): ProductShape => ({
  name: `split ${lanes} x ${slices}, ${tileN}`,
  kind: 'split',
  lanes,
  slices,
  tileN,
});
const block = (tileM: number): ProductShape => ({ name: `block ${16 * tileM}`, kind: 'block', tileM });

/** By the most rows they are for, a power of two; the first of each is taken where nothing was measured. The sums of a split take 16 KiB at most, which every adapter has. */
const SHAPES: readonly { readonly rows: number; readonly shapes: readonly ProductShape[] }[] = [
  { rows: 4, shapes: [split(32, 8, 2), split(32, 8, 1), split(32, 4, 4), split(64, 4, 2)] },
  { rows: 8, shapes: [split(32, 8, 2), split(32, 8, 1), split(64, 4, 2), block(1)] },
  { rows: 16, shapes: [block(1), block(2)] },
  { rows: 32, shapes: [block(2), block(1), block(4)] },
  { rows: Infinity, shapes: [block(4), block(2)] },
];
/** Beyond, all numbers of rows are one class. */
const MOST_ROWS = 64;

/** Rows up to which products are measured and chosen alike. */
export function productRows(rows: number): number {
  return Math.min(nextPowerOfTwo(rows), MOST_ROWS);
}

/** The ways for a number of rows. */
export function productShapes(rows: number): readonly [ProductShape, ...ProductShape[]] {
  const { shapes } = SHAPES.find((row) => productRows(rows) <= row.rows)!;
  return shapes as readonly [ProductShape, ...ProductShape[]];
}
