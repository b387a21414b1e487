/** ceil(a / b) for non-negative integers. */
export function ceilDiv(a: number, b: number): number {
  return Math.floor((a + b - 1) / b);
}

/** The smallest multiple of `step` that is >= `value`. */
export function alignUp(value: number, step: number): number {
  return ceilDiv(value, step) * step;
}

/** The smallest power of two that is >= `value` (and >= 1). */
export function nextPowerOfTwo(value: number): number {
  let power = 1;
  while (power < value) power *= 2;
  return power;
}

/** Product of a shape's dimensions. */
export function product(shape: readonly number[]): number {
  return shape.reduce((a, b) => a * b, 1);
}

/** Quantile of the standard normal distribution for 0 < p < 1, to nine digits (P. J. Acklam's rational approximation). */
export function normalQuantile(p: number): number {
  const polynomial = (coefs: readonly number[], x: number): number => coefs.reduce((sum, coef) => sum * x + coef, 0);
  const tail = (q: number): number =>
    polynomial(
      [-7.784894002430293e-3, -3.223964580411365e-1, -2.400758277161838, -2.549732539343734, 4.374664141464968, 2.938163982698783],
      q,
    ) / polynomial([7.784695709041462e-3, 3.224671290700398e-1, 2.445134137142996, 3.754408661907416, 1], q);
  const edge = 0.02425;
  if (p < edge) return tail(Math.sqrt(-2 * Math.log(p)));
  if (p > 1 - edge) return -tail(Math.sqrt(-2 * Math.log(1 - p)));
  const q = p - 0.5;
  return (
    (q *
      polynomial(
        [-3.969683028665376e1, 2.209460984245205e2, -2.759285104469687e2, 1.38357751867269e2, -3.066479806614716e1, 2.506628277459239],
        q * q,
      )) /
    polynomial([-5.447609879822406e1, 1.615858368580409e2, -1.556989798598866e2, 6.680131188771972e1, -1.328068155288572e1, 1], q * q)
  );
}

/** Half-open interval. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

/** Number of integers in a range. */
export function sizeOf({ from, to }: Range): number {
  return to - from;
}

/** Index of the first value that is not finite or whose magnitude is above `most`; -1 when there is none. */
export function indexBeyond(values: Float32Array, most = Number.MAX_VALUE): number {
  for (let i = 0; i < values.length; i++) if (!(Math.abs(values[i]!) <= most)) return i;
  return -1;
}

/** Transposes a matrix [rows, columns] to [columns, rows]. */
export function transposed(values: Float32Array, rows: number, columns: number): Float32Array {
  return Float32Array.from(values, (_, i) => values[(i % rows) * columns + Math.floor(i / rows)]!);
}

/** Concatenates arrays. */
export function concatenated(parts: readonly Float32Array[]): Float32Array<ArrayBuffer> {
  const all = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0));
  parts.reduce((at, part) => (all.set(part, at), at + part.length), 0);
  return all;
}
