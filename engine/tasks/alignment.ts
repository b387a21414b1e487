/** When each token of a window is spoken, from what its rows attend to; no GPU. */

/**
 * Dynamic time warping: the way through `matrix` [rows, columns], row by row and never back, along which its sum is largest. Returns the column in
 * which each row begins. Sums are f32 and ties go to the next column, as in transformers, so that equal matrices give equal times.
 */
export function warpedStarts(matrix: Float32Array, rows: number, columns: number): Int32Array {
  // Costs of the best ways to the cells of a column; -1 is before the first row.
  const cost = new Float32Array(rows + 1).fill(Infinity);
  const steps = new Uint8Array(rows * columns);
  cost[0] = 0;
  for (let s = 0; s < columns; s++) {
    let diagonal = cost[0];
    cost[0] = Infinity;
    for (let t = 0; t < rows; t++) {
      const beside = cost[t + 1]!;
      const above = cost[t]!;
      let best = beside;
      let step = BESIDE;
      if (diagonal < above && diagonal < beside) [best, step] = [diagonal, DIAGONAL];
      else if (above < diagonal && above < beside) [best, step] = [above, ABOVE];
      steps[t * columns + s] = step;
      cost[t + 1] = best - matrix[t * columns + s]!;
      diagonal = beside;
    }
  }
  const starts = new Int32Array(rows);
  let t = rows - 1;
  let s = columns - 1;
  while (t >= 0 && s >= 0) {
    starts[t] = s;
    // From the edges there is one way left.
    const step = t === 0 ? BESIDE : s === 0 ? ABOVE : steps[t * columns + s]!;
    if (step !== BESIDE) t--;
    if (step !== ABOVE) s--;
  }
  return starts;
}

/** Where a cell's way comes from: the row before in the column before, the row before, the column before. */
const DIAGONAL = 0;
const ABOVE = 1;
const BESIDE = 2;
