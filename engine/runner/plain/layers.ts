/** Gates and norms that some families have, in f64. */
import { rotate } from '../plain.ts';

/** A row's gates, sparsified: each becomes max(0, gate - cut), where cut is the row's mean plus `deviations` standard deviations. */
export function sparseGates(gates: readonly number[], deviations: number): number[] {
  const mean = gates.reduce((sum, gate) => sum + gate / gates.length, 0);
  const deviation = Math.sqrt(gates.reduce((sum, gate) => sum + (gate - mean) ** 2 / gates.length, 0));
  return gates.map((gate) => Math.max(gate - mean - deviations * deviation, 0));
}

/** gpt-oss's gated activation of a gate and its up. */
export function clampedGate(gate: number, up: number, { alpha, limit }: { readonly alpha: number; readonly limit: number }): number {
  const kept = Math.min(gate, limit);
  return ((Math.max(-limit, Math.min(up, limit)) + 1) * kept) / (1 + Math.exp(-alpha * kept));
}

/** xIELU of x: alphaP x^2 + beta x above zero, alphaN (exp(min(x, eps)) - 1 - x) + beta x elsewhere. */
export function xielu(
  x: number,
  { alphaP, alphaN, beta, eps }: { readonly alphaP: number; readonly alphaN: number; readonly beta: number; readonly eps: number },
): number {
  return beta * x + (x > 0 ? alphaP * x * x : alphaN * (Math.expm1(Math.min(x, eps)) - x));
}

/** x with the root mean square of each row of `like`. */
export function matchRms(x: ArrayLike<number>, like: ArrayLike<number>, rows: number, columns: number, floor: number): Float64Array {
  const meanSquare = (values: ArrayLike<number>, row: number): number =>
    Array.from({ length: columns }, (_, c) => values[row * columns + c]! ** 2).reduce((sum, square) => sum + square / columns, 0);
  return Float64Array.from({ length: rows * columns }, (_, i) => {
    const row = Math.floor(i / columns);
    return (x[i]! * Math.sqrt(meanSquare(like, row))) / Math.sqrt(Math.max(meanSquare(x, row), floor));
  });
}

/**
 * RMS norm of the query and key heads of qkv [T, H + 2 K, D], weight [2, D], and of those of values, without one; `full`: of all query
 * heads and of all key heads, weight [(H + K) D].
 */
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

/** Query and key heads of qkv [T, H + 2 K, D], rotated and then RMS normed, weight [2, D]. */
export function ropeNorm(
  qkv: ArrayLike<number>,
  weight: ArrayLike<number>,
  shape: { readonly rows: number; readonly heads: number; readonly kvHeads: number; readonly headDim: number; readonly eps: number },
  positions: ArrayLike<number>,
  frequencies: ArrayLike<number>,
): Float64Array {
  const turned = Float64Array.from(qkv);
  const { rows, heads, kvHeads, headDim } = shape;
  for (let t = 0; t < rows; t++) {
    for (let h = 0; h < heads + kvHeads; h++) {
      const at = (t * (heads + 2 * kvHeads) + h) * headDim;
      turned.set(rotate(turned.subarray(at, at + headDim), positions[t]!, frequencies), at);
    }
  }
  return qkNorm(turned, weight, { ...shape, full: false });
}
