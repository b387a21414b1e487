/** Weights of one direction: input [4H, I], recurrent [4H, H], bias [4H]; gates i, f, g, o. */
export interface Direction {
  readonly input: ArrayLike<number>;
  readonly recurrent: ArrayLike<number>;
  readonly bias: ArrayLike<number>;
}

const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));

/** h and c [H] of one direction. */
export interface LstmState {
  readonly h: Float64Array;
  readonly c: Float64Array;
}

/**
 * LSTM in f64, of one direction or forward and backward; x [T, I] -> [T, D H]. `states` of the directions are those it begins from, and get
 * its end.
 */
export function lstm(
  x: ArrayLike<number>,
  directions: readonly Direction[],
  steps: number,
  inFeatures: number,
  hidden: number,
  states: readonly LstmState[] = directions.map(() => ({ h: new Float64Array(hidden), c: new Float64Array(hidden) })),
): Float64Array {
  const count = directions.length;
  const out = new Float64Array(steps * count * hidden);
  directions.forEach(({ input, recurrent, bias }, d) => {
    const { h: kept, c } = states[d]!;
    let h = kept.slice();
    for (let step = 0; step < steps; step++) {
      const t = d === 0 ? step : steps - 1 - step;
      const gates = Float64Array.from({ length: 4 * hidden }, (_, n) => {
        let sum = bias[n]!;
        for (let k = 0; k < inFeatures; k++) sum += input[n * inFeatures + k]! * x[t * inFeatures + k]!;
        for (let k = 0; k < hidden; k++) sum += recurrent[n * hidden + k]! * h[k]!;
        return sum;
      });
      h = h.map((_, j) => {
        c[j] = sigmoid(gates[hidden + j]!) * c[j]! + sigmoid(gates[j]!) * Math.tanh(gates[2 * hidden + j]!);
        return sigmoid(gates[3 * hidden + j]!) * Math.tanh(c[j]);
      });
      out.set(h, (t * count + d) * hidden);
    }
    kept.set(h);
  });
  return out;
}
