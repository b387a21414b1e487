/** Rotary positions and per-head norms by the formulas, in f64. */

/** Rotates one head of D channels (half-split pairs) to position s; frequencies [D/2]. */
export function rotate(x: ArrayLike<number>, from: number, frequencies: ArrayLike<number>, s: number): number[] {
  const half = frequencies.length;
  const out = new Array<number>(2 * half);
  for (let d = 0; d < half; d++) {
    const [a, b, angle] = [x[from + d]!, x[from + d + half]!, s * frequencies[d]!];
    out[d] = a * Math.cos(angle) - b * Math.sin(angle);
    out[d + half] = b * Math.cos(angle) + a * Math.sin(angle);
  }
  return out;
}

/** RMS norm of the query and key heads of qkv [T, H + 2 K, D], weight [2, D], and of those of values, without one; `full`: of all query heads and of all key heads, weight [(H + K) D]. */
export function qkNorm(
  qkv: ArrayLike<number>,
  weight: ArrayLike<number>,
  {
    rows,
    heads,
    kvHeads,
    headDim,
    eps,
    full,
    values = false,
  }: { rows: number; heads: number; kvHeads: number; headDim: number; eps: number; full: boolean; values?: boolean },
): Float64Array {
  const out = Float64Array.from(qkv);
  const width = (heads + 2 * kvHeads) * headDim;
  const norm = (at: number, size: number, weightAt?: number): void => {
    let sum = 0;
    for (let d = 0; d < size; d++) sum += out[at + d]! ** 2;
    const scale = 1 / Math.sqrt(sum / size + eps);
    for (let d = 0; d < size; d++) out[at + d]! *= scale * (weightAt === undefined ? 1 : weight[weightAt + d]!);
  };
  for (let t = 0; t < rows; t++) {
    const queries = heads * headDim;
    if (full) {
      norm(t * width, queries, 0);
      norm(t * width + queries, kvHeads * headDim, queries);
      continue;
    }
    for (let h = 0; h < heads + kvHeads; h++) norm(t * width + h * headDim, headDim, h < heads ? 0 : headDim);
    if (values) for (let h = heads + kvHeads; h < heads + 2 * kvHeads; h++) norm(t * width + h * headDim, headDim);
  }
  return out;
}
