/** Row norms in f64; x [rows, columns]. */
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

/** x with the root mean square of each row of `like`. */
export function matchRms(x: ArrayLike<number>, like: ArrayLike<number>, rows: number, columns: number, floor: number): Float64Array {
  const meanSquare = (values: ArrayLike<number>, row: number): number =>
    Array.from({ length: columns }, (_, c) => values[row * columns + c]! ** 2).reduce((sum, square) => sum + square / columns, 0);
  return Float64Array.from({ length: rows * columns }, (_, i) => {
    const row = Math.floor(i / columns);
    return (x[i]! * Math.sqrt(meanSquare(like, row))) / Math.sqrt(Math.max(meanSquare(x, row), floor));
  });
}

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
