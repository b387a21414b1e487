/** Plain loops in f64. x [M, K], weight [N, K] row-major. */
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
