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

/** Half-open interval. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

/** Number of things in a range. */
export function sizeOf({ from, to }: Range): number {
  return to - from;
}

/** Index of the first value that is not finite or whose magnitude is above `most`; -1 when there is none. */
export function indexBeyond(values: Float32Array, most = Number.MAX_VALUE): number {
  for (let i = 0; i < values.length; i++) if (!(Math.abs(values[i]!) <= most)) return i;
  return -1;
}

/** A matrix [rows, columns] as [columns, rows]. */
export function transposed(values: Float32Array, rows: number, columns: number): Float32Array {
  return Float32Array.from(values, (_, i) => values[(i % rows) * columns + Math.floor(i / rows)]!);
}

/** Values one behind the other. */
export function concatenated(parts: readonly Float32Array[]): Float32Array {
  const all = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0));
  parts.reduce((at, part) => (all.set(part, at), at + part.length), 0);
  return all;
}
