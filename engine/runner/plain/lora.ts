/** Products of low rank in plain loops. */

/** Matrices that an adapter has for a segment of the outputs: A [rank, K], B [N, rank] with the scale in it; undefined = none. */
export type LoraSegment = { readonly rank: number; readonly a: ArrayLike<number>; readonly b: ArrayLike<number> } | undefined;

/** out [T, N] + B A x for x [T, K], by the adapter of each row, 0 for none; `loras` has an adapter's segments, whose outputs follow one another. */
export function addLora(
  x: ArrayLike<number>,
  out: ArrayLike<number>,
  rows: readonly number[],
  loras: readonly (readonly LoraSegment[])[],
  outFeatures: readonly number[],
  k: number,
): Float64Array {
  const sums = Float64Array.from(out);
  const n = outFeatures.reduce((sum, size) => sum + size, 0);
  for (const [t, lora] of rows.entries()) {
    let first = 0;
    for (const [s, size] of outFeatures.entries()) {
      const { rank = 0, a = [], b = [] } = (lora > 0 && loras[lora - 1]![s]) || {};
      for (let j = 0; j < rank; j++) {
        let low = 0;
        for (let i = 0; i < k; i++) low += a[j * k + i]! * x[t * k + i]!;
        for (let c = 0; c < size; c++) sums[t * n + first + c]! += b[c * rank + j]! * low;
      }
      first += size;
    }
  }
  return sums;
}
