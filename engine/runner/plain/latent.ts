/** Multi-head latent attention, plain loops in f64. */
import { attend, rmsNorm, rotate } from '../plain.ts';

/** The latent's channels, R, and the rotated ones, P. */
export interface LatentSizes {
  readonly rank: number;
  readonly rotary: number;
}

/** Queries [T, H, R + P] of their parts latent [T, H, R] and rotary [T, H, P], which is rotated; frequencies [P / 2]. */
export function latentQueries(
  latent: Float32Array,
  rotary: Float32Array,
  { rank, rotary: turned }: LatentSizes,
  positions: readonly number[],
  frequencies: ArrayLike<number>,
): number[] {
  const heads = latent.length / rank / positions.length;
  return Array.from({ length: positions.length * heads }, (_, i) => [
    ...latent.subarray(i * rank, (i + 1) * rank),
    ...rotate(rotary.subarray(i * turned, (i + 1) * turned), positions[Math.floor(i / heads)]!, frequencies),
  ]).flat();
}

/** Keys [T, R + P] of x [T, R + P]: its latent, normed, and the channels behind it, rotated. */
export function latentKeys(
  x: Float32Array,
  norm: ArrayLike<number>,
  { rank, rotary }: LatentSizes,
  { positions, frequencies, eps }: { readonly positions: readonly number[]; readonly frequencies: ArrayLike<number>; readonly eps: number },
): number[] {
  const columns = rank + rotary;
  return positions.flatMap((position, t) => [
    ...rmsNorm(x.subarray(t * columns, t * columns + rank), norm, 1, rank, eps),
    ...rotate(x.subarray(t * columns + rank, (t + 1) * columns), position, frequencies),
  ]);
}

/** Attention [R] of a query [R + P] to the first `count` of keys [S, R + P], whose values are their first channels. */
export function attendLatent(query: ArrayLike<number>, keys: ArrayLike<number>, count: number, rank: number): Float64Array {
  return attend(query, keys, keys, count).subarray(0, rank);
}
