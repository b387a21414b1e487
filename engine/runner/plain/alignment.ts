/** Attention of chosen heads as times of words are made of it, in f64. */

/** softmax over the keys of q[row] . k[key] * scale for one head: [rows, keys]. */
export function attentionWeights(c: {
  readonly q: ArrayLike<number>;
  readonly k: ArrayLike<number>;
  readonly strides: { readonly q: number; readonly k: number };
  readonly head: number;
  readonly headDim: number;
  readonly rows: { readonly first: number; readonly count: number };
  readonly keys: { readonly first: number; readonly count: number };
}): number[][] {
  return Array.from({ length: c.rows.count }, (_, t) => {
    const scores = Array.from({ length: c.keys.count }, (_, s) => {
      let score = 0;
      for (let d = c.head * c.headDim; d < (c.head + 1) * c.headDim; d++) {
        score += c.q[(c.rows.first + t) * c.strides.q + d]! * c.k[(c.keys.first + s) * c.strides.k + d]!;
      }
      return score / Math.sqrt(c.headDim);
    });
    const highest = Math.max(...scores);
    const exps = scores.map((score) => Math.exp(score - highest));
    const sum = exps.reduce((a, b) => a + b, 0);
    return exps.map((value) => value / sum);
  });
}

/** weights[head][row][position] -> [rows, positions]: normalised over the rows, median of 7 along the positions, mean of the heads. */
export function alignmentMatrix(weights: readonly (readonly (readonly number[])[])[]): number[][] {
  const smooth = weights.map((rows) => {
    const columns = rows[0]!.length;
    const stats = Array.from({ length: columns }, (_, s) => {
      const mean = rows.reduce((sum, row) => sum + row[s]!, 0) / rows.length;
      const deviation = Math.sqrt(rows.reduce((sum, row) => sum + (row[s]! - mean) ** 2, 0) / rows.length);
      return { mean, deviation };
    });
    return rows.map((row) => {
      const even = row.map((value, s) => (stats[s]!.deviation === 0 ? 0 : (value - stats[s]!.mean) / stats[s]!.deviation));
      if (columns <= 3) return even;
      const mirrored = (s: number): number => (s < 0 ? -s : s >= columns ? 2 * (columns - 1) - s : s);
      return even.map((_, s) => [-3, -2, -1, 0, 1, 2, 3].map((d) => even[mirrored(s + d)]!).sort((a, b) => a - b)[3]!);
    });
  });
  return smooth[0]!.map((row, t) => row.map((_, s) => smooth.reduce((sum, head) => sum + head[t]![s]!, 0) / smooth.length));
}
