/** Finds when each token of a window is spoken, from the decoder's cross-attention; no GPU. */

/**
 * Dynamic time warping: finds the monotonic path through `matrix` [rows, columns] with the largest sum, and returns the column in which each row begins. Sums are f32
 * and ties go to the next column, as in transformers, so that equal matrices give equal times.
 */
export function warpedStarts(matrix: Float32Array, rows: number, columns: number): Int32Array {
  // Costs of the best paths to the cells of the current column; entry t + 1 is row t, entry 0 is before the first row.
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
    // At an edge only one direction is left.
    const step = t === 0 ? BESIDE : s === 0 ? ABOVE : steps[t * columns + s]!;
    if (step !== BESIDE) t--;
    if (step !== ABOVE) s--;
  }
  return starts;
}

/** The previous cell of a path: one row up in the column before (DIAGONAL), one row up (ABOVE), or in the column before (BESIDE). */
const DIAGONAL = 0;
const ABOVE = 1;
const BESIDE = 2;
