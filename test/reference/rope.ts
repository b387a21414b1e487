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

export { qkNorm, ropeNorm } from '../../engine/runner/plain/layers.ts';
