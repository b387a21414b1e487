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

/** RMS norm of the query and key heads of qkv [T, H + 2 K, D]; weight [2, D]. */
export function qkNorm(
  qkv: ArrayLike<number>,
  weight: ArrayLike<number>,
  { rows, heads, kvHeads, headDim, eps }: { rows: number; heads: number; kvHeads: number; headDim: number; eps: number },
): Float64Array {
  const out = Float64Array.from(qkv);
  const total = heads + 2 * kvHeads;
  for (let t = 0; t < rows; t++) {
    for (let h = 0; h < heads + kvHeads; h++) {
      const at = (t * total + h) * headDim;
      let sum = 0;
      for (let d = 0; d < headDim; d++) sum += out[at + d]! ** 2;
      const scale = 1 / Math.sqrt(sum / headDim + eps);
      for (let d = 0; d < headDim; d++) out[at + d]! *= scale * weight[(h < heads ? 0 : headDim) + d]!;
    }
  }
  return out;
}
