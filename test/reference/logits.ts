/** Logit processing by definition in f64; logits [rows, vocabulary]. */

export interface Penalty {
  readonly repetition: number;
  readonly presence: number;
  readonly frequency: number;
}

/** One row: `prompt` and `answer` are the tokens seen. */
export function penalize(logits: ArrayLike<number>, prompt: readonly number[], answer: readonly number[], p: Penalty): Float64Array {
  const out = Float64Array.from(logits);
  for (const token of new Set([...prompt, ...answer])) {
    out[token] = out[token]! < 0 ? out[token]! * p.repetition : out[token]! / p.repetition;
    const times = answer.filter((t) => t === token).length;
    if (times > 0) out[token] -= p.presence + p.frequency * times;
  }
  return out;
}

/** log sum exp of a row. */
export function logSumExp(row: ArrayLike<number>): number {
  let most = -Infinity;
  for (let i = 0; i < row.length; i++) most = Math.max(most, row[i]!);
  let sum = 0;
  for (let i = 0; i < row.length; i++) sum += Math.exp(row[i]! - most);
  return most + Math.log(sum);
}

/** The `count` best tokens of a row, ties to the smaller token. */
export function topTokens(row: ArrayLike<number>, count: number): number[] {
  return Array.from({ length: row.length }, (_, i) => i)
    .sort((a, b) => row[b]! - row[a]! || a - b)
    .slice(0, count);
}
