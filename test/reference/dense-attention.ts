/** Softmax attention in f64. */
export interface DenseAttentionCase {
  readonly q: ArrayLike<number>;
  readonly k: ArrayLike<number>;
  readonly v: ArrayLike<number>;
  readonly heads: number;
  readonly headDim: number;
  /** Values from one row to the next. */
  readonly strides: { readonly q: number; readonly k: number; readonly v: number };
  readonly columns: { readonly q: number; readonly k: number; readonly v: number };
  /** First key row and number of keys, first query row and number of queries. */
  readonly tiles: readonly AttentionTile[];
  readonly scale: number;
}

export type AttentionTile = readonly [firstKey: number, keys: number, firstQuery: number, queries: number];

/** out [T, heads * headDim]. */
export function denseAttention(c: DenseAttentionCase): Float64Array {
  const { heads, headDim, strides, columns } = c;
  const rows = Math.max(...c.tiles.map(([, , row, queries]) => row + queries));
  const out = new Float64Array(rows * heads * headDim);
  c.tiles.forEach(([first, count, row, queries]) => {
    for (let t = row; t < row + queries; t++) {
      for (let h = 0; h < heads; h++) {
        const weights = new Float64Array(count);
        for (let s = 0; s < count; s++) {
          for (let d = 0; d < headDim; d++) {
            const query = c.q[t * strides.q + columns.q + h * headDim + d]!;
            weights[s]! += query * c.k[(first + s) * strides.k + columns.k + h * headDim + d]! * c.scale;
          }
        }
        const highest = Math.max(...weights);
        let sum = 0;
        for (let s = 0; s < count; s++) sum += weights[s] = Math.exp(weights[s]! - highest);
        for (let s = 0; s < count; s++) {
          for (let d = 0; d < headDim; d++) {
            const value = c.v[(first + s) * strides.v + columns.v + h * headDim + d]!;
            out[(t * heads + h) * headDim + d]! += (weights[s]! / sum) * value;
          }
        }
      }
    }
  });
  return out;
}

/** A copy of `cache` [S, columns] with row slots[t] = x[t, column..column + columns]. */
export function denseStore(
  cache: ArrayLike<number>,
  x: ArrayLike<number>,
  stride: number,
  column: number,
  slots: readonly number[],
  columns: number,
): Float64Array {
  const out = Float64Array.from(cache);
  slots.forEach((slot, t) => {
    for (let c = 0; c < columns; c++) out[slot * columns + c] = x[t * stride + column + c]!;
  });
  return out;
}
