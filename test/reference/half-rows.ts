import { fromF16, toF16 } from '../../engine/util/f16.ts';

/** Rows times a power of two each, so that their largest magnitudes lie in 2^14 .. 2^15, in half precision; and what undoes the factors. */
export function halfRows(
  x: ArrayLike<number>,
  rows: number,
  columns: number,
): { readonly halves: Float32Array; readonly scales: number[] } {
  const halves = new Float32Array(rows * columns);
  const scales: number[] = [];
  for (let row = 0; row < rows; row++) {
    const values = Array.from({ length: columns }, (_, c) => x[row * columns + c]!);
    const largest = Math.max(...values.map(Math.abs));
    // Of the smallest rows the factor's inverse has to be a normal number.
    const exponent = largest < 2 ** -112 ? -112 : Math.floor(Math.log2(largest));
    halves.set(fromF16(toF16(values.map((value) => value * 2 ** (14 - exponent)))), row * columns);
    scales.push(2 ** (exponent - 14));
  }
  return { halves, scales };
}
