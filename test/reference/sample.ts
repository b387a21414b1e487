/** Sampling by the definitions: sort, cumulate, cut; and the counter-based noise in integer arithmetic. */
import type { SamplingRow } from '../../engine/ops/sampling-row.ts';
import { GREEDY_SAMPLING } from '../../engine/sampling.ts';
import type { CutName } from '../../engine/sampling.ts';

export type Sampling = Pick<SamplingRow, CutName | 'temperature'>;

export const GREEDY: SamplingRow = { ...GREEDY_SAMPLING, choice: 0, position: 0, slot: 0 };

/** What every sampler is held to, on one device and over slices of the vocabulary. */
export const SETTINGS: readonly Partial<SamplingRow>[] = [
  {},
  { temperature: 1, seed: 7 },
  { temperature: 0.7, topK: 40, seed: 8, position: 3 },
  { temperature: 1.3, topP: 0.9, seed: 2 ** 40 + 5 },
  { temperature: 1, topK: 50, topP: 0.5, seed: -9, choice: 2 },
  { temperature: 2, minP: 0.05, seed: 1 },
  { temperature: 1, topP: 0, seed: 3 },
  { temperature: 1, topK: 1, seed: 4 },
  { temperature: 0.9, topK: 300, topP: 0.99, minP: 0.001, seed: 5 },
  { temperature: 1.5, topK: 2000, seed: 6 },
  { temperature: 1, topP: 0.999, seed: 9 },
  { temperature: 1.5, topNSigma: 1, seed: 10 },
  { temperature: 3, topNSigma: 0.3, seed: 11 },
  { temperature: 1.2, topK: 200, topP: 0.98, minP: 0.001, topNSigma: 1.5, seed: 12 },
];

/** Probabilities after temperature, top-k, top-p, min-p and top-n-sigma; ties at a cut are kept. */
export function distribution(logits: ArrayLike<number>, { temperature, topK, topP, minP, topNSigma }: Sampling): Float64Array {
  const top = logits[argmax(logits)]!;
  const weights = Float64Array.from(logits, (logit) => Math.exp((logit - top) / temperature));
  const order = Array.from(weights.keys()).sort((a, b) => logits[b]! - logits[a]!);
  let least = -Infinity;
  if (topK > 0 && topK < order.length) least = logits[order[topK - 1]!]!;
  if (topP < 1) {
    const kept = order.filter((i) => logits[i]! >= least);
    const wanted = topP * kept.reduce((sum, i) => sum + weights[i]!, 0);
    let sum = 0;
    for (const i of kept) {
      sum += weights[i]!;
      least = logits[i]!;
      if (sum >= wanted) break;
    }
  }
  const possible = Array.from(logits).filter((logit) => logit > -1e29);
  const mean = possible.reduce((sum, logit) => sum + logit / possible.length, 0);
  const sigma = Math.sqrt(possible.reduce((sum, logit) => sum + (logit - mean) ** 2 / possible.length, 0));
  const floor = Math.max(minP > 0 ? top + Math.log(minP) * temperature : -Infinity, topNSigma > 0 ? top - topNSigma * sigma : -Infinity);
  const out = weights.map((weight, i) => (logits[i]! >= least && logits[i]! >= floor ? weight : 0));
  const total = out.reduce((a, b) => a + b, 0);
  return out.map((weight) => weight / total);
}

function pcg4d(seed: readonly number[]): number[] {
  const v = seed.map((x) => (Math.imul(x, 1664525) + 1013904223) | 0) as [number, number, number, number];
  const mix = (): void => {
    v[0] = (v[0] + Math.imul(v[1], v[3])) | 0;
    v[1] = (v[1] + Math.imul(v[2], v[0])) | 0;
    v[2] = (v[2] + Math.imul(v[0], v[1])) | 0;
    v[3] = (v[3] + Math.imul(v[1], v[2])) | 0;
  };
  mix();
  for (let i = 0; i < 4; i++) v[i]! ^= v[i]! >>> 16;
  mix();
  return v.map((x) => x >>> 0);
}

/** Gumbel noise of a token: seed halves as the kernel gets them. */
export function gumbel(token: number, position: number, seedLow: number, seedHigh: number): number {
  const bits = pcg4d([Math.floor(token / 4), position, seedLow, seedHigh])[token % 4]!;
  return -Math.log(-Math.log(((bits >>> 9) + 0.5) / 8388608));
}

/** The token a row draws: the largest of log-probability + noise. */
export function draw(probabilities: ArrayLike<number>, noise: (token: number) => number): number {
  let best = -Infinity;
  let token = 0;
  for (let i = 0; i < probabilities.length; i++) {
    const value = probabilities[i]! > 0 ? Math.log(probabilities[i]!) + noise(i) : -Infinity;
    if (value > best) [best, token] = [value, i];
  }
  return token;
}

/** First index of the largest value. */
export function argmax(values: ArrayLike<number>): number {
  let best = 0;
  for (let i = 1; i < values.length; i++) if (values[i]! > values[best]!) best = i;
  return best;
}

/** Rows of x [T, columns] with each pair's first row in the place of its second, none of which is a first. */
export function copyRows(x: Float32Array, pairs: readonly (readonly [from: number, to: number])[], columns: number): Float32Array {
  const out = x.slice();
  for (const [from, to] of pairs) out.set(x.subarray(from * columns, (from + 1) * columns), to * columns);
  return out;
}
