/** Reference implementations of kernels, as plain loops in f64: the self-test and the tests compare with these. */
import type { Activation } from '../ops/activation.ts';

/** x [M, K], weight [N, K] row-major. */
export function linear(x: ArrayLike<number>, weight: ArrayLike<number>, m: number, n: number, k: number): Float64Array {
  const out = new Float64Array(m * n);
  for (let i = 0; i < m; i++) {
    for (let j = 0; j < n; j++) {
      let sum = 0;
      for (let c = 0; c < k; c++) sum += x[i * k + c]! * weight[j * k + c]!;
      out[i * n + j] = sum;
    }
  }
  return out;
}

/** erf by its Taylor series (|x| < 3) or complementary continued fraction; 1e-15 accurate. */
function erf(x: number): number {
  if (Math.abs(x) < 3) {
    let term = x;
    let sum = x;
    for (let n = 1; n < 200 && Math.abs(term) > 1e-18; n++) {
      term *= (-x * x) / n;
      sum += term / (2 * n + 1);
    }
    return (2 / Math.sqrt(Math.PI)) * sum;
  }
  const a = Math.abs(x);
  let f = 0;
  for (let n = 60; n > 0; n--) f = n / 2 / (a + f);
  return Math.sign(x) * (1 - Math.exp(-a * a) / ((a + f) * Math.sqrt(Math.PI)));
}

/** f(x) of an activation. */
export function activation(kind: Activation, x: number): number {
  switch (kind) {
    case 'gelu': return 0.5 * x * (1 + erf(x / Math.SQRT2)); // prettier-ignore
    case 'gelu_tanh': return 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))); // prettier-ignore
    case 'silu': return x / (1 + Math.exp(-x)); // prettier-ignore
    case 'relu': return Math.max(x, 0); // prettier-ignore
    case 'leaky_relu': return x >= 0 ? x : 0.2 * x; // prettier-ignore
    case 'sigmoid': return 1 / (1 + Math.exp(-x)); // prettier-ignore
    case 'tanh': return Math.tanh(x); // prettier-ignore
    case 'relu2': return Math.max(x, 0) ** 2; // prettier-ignore
    case 'none': return x; // prettier-ignore
  }
}

/** Root-mean-square norm of rows; x [rows, columns]. */
export function rmsNorm(x: ArrayLike<number>, weight: ArrayLike<number>, rows: number, columns: number, eps: number): Float64Array {
  const out = new Float64Array(rows * columns);
  for (let r = 0; r < rows; r++) {
    let sum = 0;
    for (let c = 0; c < columns; c++) sum += x[r * columns + c]! ** 2;
    const scale = 1 / Math.sqrt(sum / columns + eps);
    for (let c = 0; c < columns; c++) out[r * columns + c] = x[r * columns + c]! * scale * weight[c]!;
  }
  return out;
}

/** f(gates) * ups for rows of gates and as many ups [rows, 2 I]: [rows, I]. */
export function gated(kind: Activation, gateUp: ArrayLike<number>, rows: number): Float64Array {
  const columns = gateUp.length / rows / 2;
  const at = (i: number): number => Math.floor(i / columns) * 2 * columns + (i % columns);
  return Float64Array.from({ length: rows * columns }, (_, i) => activation(kind, gateUp[at(i)]!) * gateUp[at(i) + columns]!);
}

/** Layer norm of rows; x [rows, columns]. */
export function layerNorm(
  x: ArrayLike<number>,
  weight: ArrayLike<number>,
  bias: ArrayLike<number>,
  rows: number,
  columns: number,
  eps: number,
): Float64Array {
  const out = new Float64Array(rows * columns);
  for (let r = 0; r < rows; r++) {
    let mean = 0;
    for (let c = 0; c < columns; c++) mean += x[r * columns + c]! / columns;
    let variance = 0;
    for (let c = 0; c < columns; c++) variance += (x[r * columns + c]! - mean) ** 2 / columns;
    const scale = 1 / Math.sqrt(variance + eps);
    for (let c = 0; c < columns; c++) out[r * columns + c] = (x[r * columns + c]! - mean) * scale * weight[c]! + bias[c]!;
  }
  return out;
}

/**
 * Attention of one query [D]: softmax of its scores over the first `count` of keys and values [S, D], and over an attention sink if there
 * is one.
 */
export function attend(
  query: ArrayLike<number>,
  keys: ArrayLike<number>,
  values: ArrayLike<number>,
  count: number,
  softCap = 0,
  sink = -Infinity,
): Float64Array {
  const { length } = query;
  const scores = Array.from({ length: count }, (_, s) => {
    let score = 0;
    for (let d = 0; d < length; d++) score += (query[d]! * keys[s * length + d]!) / Math.sqrt(length);
    return softCap > 0 ? softCap * Math.tanh(score / softCap) : score;
  });
  const top = Math.max(...scores, sink);
  const weights = scores.map((score) => Math.exp(score - top));
  const total = weights.reduce((sum, weight) => sum + weight, Math.exp(sink - top));
  const out = new Float64Array(length);
  weights.forEach((weight, s) => {
    for (let d = 0; d < length; d++) out[d]! += (weight / total) * values[s * length + d]!;
  });
  return out;
}

/** Applies the rotary embedding of a position to a head [D]: channel d is paired with d + D / 2, with frequencies [D / 2]. */
export function rotate(head: ArrayLike<number>, position: number, frequencies: ArrayLike<number>): Float64Array {
  const half = head.length / 2;
  const out = new Float64Array(head.length);
  for (let d = 0; d < half; d++) {
    const [cos, sin] = [Math.cos(position * frequencies[d]!), Math.sin(position * frequencies[d]!)];
    out[d] = head[d]! * cos - head[d + half]! * sin;
    out[d + half] = head[d + half]! * cos + head[d]! * sin;
  }
  return out;
}
