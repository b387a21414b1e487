/** Pointwise functions by their definitions. */
export { activation } from '../../engine/runner/plain.ts';

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
