/** Row norms. */
export { layerNorm, rmsNorm } from '../../engine/runner/plain.ts';

/** x with the root mean square of each row of `like`. */
export function matchRms(x: ArrayLike<number>, like: ArrayLike<number>, rows: number, columns: number, floor: number): Float64Array {
  const meanSquare = (values: ArrayLike<number>, row: number): number =>
    Array.from({ length: columns }, (_, c) => values[row * columns + c]! ** 2).reduce((sum, square) => sum + square / columns, 0);
  return Float64Array.from({ length: rows * columns }, (_, i) => {
    const row = Math.floor(i / columns);
    return (x[i]! * Math.sqrt(meanSquare(like, row))) / Math.sqrt(Math.max(meanSquare(x, row), floor));
  });
}
