/** Pointwise functions in f64, by their definitions. */
import type { Activation } from '../../engine/ops/activation.ts';

/** erf by its Taylor series (|x| < 3) or complementary continued fraction; 1e-15 accurate. */
function erf(x: number): number {
  if (Math.abs(x) < 3) {
    let term = x;
    let sum = x;
    for (let n = 1; n < 200 && Math.abs(term) > 1e-18; n++) {
      term *= (-x * x) / n;
      sum += term / (2 * n + 1);
    }
    return (2 / Math.sqrt(Math.PI)) * sum;
  }
  const a = Math.abs(x);
  let f = 0;
  for (let n = 60; n > 0; n--) f = n / 2 / (a + f);
  return Math.sign(x) * (1 - Math.exp(-a * a) / ((a + f) * Math.sqrt(Math.PI)));
}

/** f(x) of an activation. */
export function activation(kind: Activation, x: number): number {
  switch (kind) {
    case 'gelu': return 0.5 * x * (1 + erf(x / Math.SQRT2)); // prettier-ignore
    case 'gelu_tanh': return 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))); // prettier-ignore
    case 'silu': return x / (1 + Math.exp(-x)); // prettier-ignore
    case 'relu': return Math.max(x, 0); // prettier-ignore
    case 'leaky_relu': return x >= 0 ? x : 0.2 * x; // prettier-ignore
    case 'sigmoid': return 1 / (1 + Math.exp(-x)); // prettier-ignore
    case 'tanh': return Math.tanh(x); // prettier-ignore
    case 'relu2': return Math.max(x, 0) ** 2; // prettier-ignore
    case 'none': return x; // prettier-ignore
  }
}

/** What is left of a row's gates when those below their mean and `deviations` standard deviations are 0, and the others lose as much. */
export function sparseGates(gates: readonly number[], deviations: number): number[] {
  const mean = gates.reduce((sum, gate) => sum + gate / gates.length, 0);
  const deviation = Math.sqrt(gates.reduce((sum, gate) => sum + (gate - mean) ** 2 / gates.length, 0));
  return gates.map((gate) => Math.max(gate - mean - deviations * deviation, 0));
}

/** gpt-oss's gate: what a gate lets through of its up. */
export function clampedGate(gate: number, up: number, { alpha, limit }: { readonly alpha: number; readonly limit: number }): number {
  const kept = Math.min(gate, limit);
  return ((Math.max(-limit, Math.min(up, limit)) + 1) * kept) / (1 + Math.exp(-alpha * kept));
}
