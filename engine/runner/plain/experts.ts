/** Mixtures of experts, plain loops in f64. Pair t k + j is row t with the j-th of its k experts. */
import { linear } from '../plain.ts';

interface RouteOptions {
  readonly stride?: number;
  readonly sigmoid?: boolean;
  readonly bias?: ArrayLike<number>;
  readonly groups?: { readonly count: number; readonly kept: number };
  readonly cutoff?: number | undefined;
}

/**
 * Chooses the k largest of the first E columns of each row of logits [T, stride], best first and of equal ones the first, with their
 * shares: probabilities in a softmax over all, or with `sigmoid` sigmoids of the logits, to either of which a bias [E] is added for
 * choosing. With `cutoff` a share is a probability among those experts that are chosen no earlier and whose logits are less by at most
 * `cutoff` times the larger of the expert's logit and their own size. With `groups` only those of the `kept` groups are chosen whose best two sum to most, or without `sigmoid` whose best is largest.
 */
export function routes(
  logits: ArrayLike<number>,
  experts: number,
  k: number,
  { stride = experts, sigmoid = false, bias, groups, cutoff }: RouteOptions = {},
): { readonly chosen: number[]; readonly shares: number[] } {
  const [chosen, shares]: number[][] = [[], []];
  for (let from = 0; from < logits.length; from += stride) {
    const row = Array.from({ length: experts }, (_, e) => logits[from + e]!);
    const most = Math.max(...row);
    const sum = row.reduce((total, value) => total + Math.exp(value - most), 0);
    const share = row.map((value) => (sigmoid ? 1 / (1 + Math.exp(-value)) : Math.exp(value - most) / sum));
    const score = (e: number): number => (sigmoid || bias ? share[e]! + (bias?.[e] ?? 0) : row[e]!);
    const open =
      groups &&
      bestGroups(
        row.map((_, e) => score(e)),
        groups,
        sigmoid,
      );
    const isOpen = (e: number): boolean => !open || open.includes(Math.floor((e * groups.count) / experts));
    const order = row.map((_, e) => e).filter(isOpen).sort((a, b) => score(b) - score(a) || a - b); // prettier-ignore
    order.slice(0, k).forEach((e, place) => {
      chosen!.push(e);
      shares!.push(cutoff === undefined ? share[e]! : nearShare(order.slice(place).map((other) => row[other]!), cutoff)); // prettier-ignore
    });
  }
  return { chosen: chosen!, shares: shares! };
}

/** The probability of the first of some logits, the largest, among those near it. */
function nearShare(logits: readonly number[], cutoff: number): number {
  const [most = 0] = logits;
  const near = logits.filter((logit) => most - logit <= cutoff * Math.max(Math.abs(logit), most));
  return 1 / near.reduce((sum, logit) => sum + Math.exp(logit - most), 0);
}

/** The groups whose best two scores sum to most, or whose best score is largest. */
function bestGroups(
  scores: readonly number[],
  { count, kept }: { readonly count: number; readonly kept: number },
  ofTwo: boolean,
): number[] {
  const size = scores.length / count;
  const sums = Array.from({ length: count }, (_, g) => {
    const [best = 0, second = 0] = scores.slice(g * size, (g + 1) * size).sort((a, b) => b - a);
    return ofTwo ? best + second : best;
  });
  return sums.map((_, g) => g).sort((a, b) => sums[b]! - sums[a]! || a - b).slice(0, kept); // prettier-ignore
}

/** The expert of each tile of at most `size` pairs, in order; experts outside of [from, to) have none. */
export function tileExperts(chosen: readonly number[], { from, to }: { from: number; to: number }, size: number): number[] {
  const found: number[] = [];
  for (let e = from; e < to; e++) {
    for (let left = chosen.filter((other) => other === e).length; left > 0; left -= size) found.push(e);
  }
  return found;
}

/** x W[expert]^T for every pair; x [pairs, K], weight of an expert [N, K]. */
export function expertLinear(
  x: ArrayLike<number>,
  chosen: readonly number[],
  weightOf: (expert: number) => ArrayLike<number>,
  n: number,
  k: number,
): Float64Array[] {
  return chosen.map((expert, pair) => linear(Array.prototype.slice.call(x, pair * k, (pair + 1) * k), weightOf(expert), 1, n, k));
}

interface Combined {
  readonly k: number;
  readonly columns: number;
  readonly normalised: boolean;
  /** Added to the sum that shares are divided by. */
  readonly floor?: number;
  /** The least that they are divided by. */
  readonly least?: number;
  readonly scale?: number;
  /** By expert: factor of its share. */
  readonly scales?: ArrayLike<number>;
  /** Output of the shared expert, [T, columns], and the logit whose sigmoid is its share, [T]. */
  readonly shared?: { readonly rows: ArrayLike<number>; readonly gates: ArrayLike<number> };
  isHeld(expert: number): boolean;
}

/**
 * residual + the sum of a row's experts by their shares times scale, and of an expert of all rows by the sigmoid of its logit; y [pairs,
 * C]; experts for which `isHeld` is false are left out, after shares are normalised.
 */
export function combine(
  y: ArrayLike<number>,
  residual: ArrayLike<number>,
  { chosen, shares }: { readonly chosen: readonly number[]; readonly shares: ArrayLike<number> },
  { k, columns, normalised, floor = 0, least = 0, scale = 1, scales, shared, isHeld }: Combined,
): Float64Array {
  const out = Float64Array.from(residual);
  chosen.forEach((expert, pair) => {
    const row = Math.floor(pair / k);
    let total = floor;
    for (let j = 0; j < k; j++) total += shares[row * k + j]!;
    const share = scale * (scales?.[expert] ?? 1) * (normalised ? shares[pair]! / Math.max(total, least) : shares[pair]!);
    if (isHeld(expert)) for (let c = 0; c < columns; c++) out[row * columns + c] = out[row * columns + c]! + share * y[pair * columns + c]!;
  });
  if (shared) out.forEach((value, i) => (out[i] = value + shared.rows[i]! / (1 + Math.exp(-shared.gates[Math.floor(i / columns)]!))));
  return out;
}
