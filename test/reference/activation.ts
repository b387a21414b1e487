/** Pointwise functions by their definitions. */
export { activation } from '../../engine/runner/plain.ts';

/** gpt-oss's gate: what a gate lets through of its up. */
export function clampedGate(gate: number, up: number, { alpha, limit }: { readonly alpha: number; readonly limit: number }): number {
  const kept = Math.min(gate, limit);
  return ((Math.max(-limit, Math.min(up, limit)) + 1) * kept) / (1 + Math.exp(-alpha * kept));
}
