/** Choices of a seeded generator: every case draws from one of its own, so that it can be made again without those before it. */
import { createRng } from '../../engine/util/rng.ts';
import type { Rng } from '../../engine/util/rng.ts';

export type { Rng };

/** The generator of one case; cases of neighbouring numbers and seeds have nothing in common. */
export function caseRng(seed: number, index: number): Rng {
  // Knuth's multiplicative constant spreads the seed over all bits before the number is mixed in.
  return createRng(Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(index + 1, 0x85ebca6b));
}

/** One of the values, each as likely as the others. */
export function choose<T>(rng: Rng, values: readonly T[]): T {
  const value = values[rng.integer(values.length)];
  if (value === undefined && values.length === 0) throw new RangeError('there is nothing to choose from');
  return value as T;
}

/** True with this probability. */
export const chance = (rng: Rng, probability: number): boolean => rng.uniform() < probability;

/** An integer from `low` to `high`, both included. */
export const between = (rng: Rng, low: number, high: number): number => low + rng.integer(high - low + 1);

/** An integer from `low` to `high` whose logarithm is uniform: small ones as often as large ones. */
export function logBetween(rng: Rng, low: number, high: number): number {
  return Math.round(Math.exp(Math.log(low) + rng.uniform() * (Math.log(high) - Math.log(low))));
}

/** One of the entries, as likely as its weight says. */
export function weighted<T>(rng: Rng, entries: readonly (readonly [weight: number, value: T])[]): T {
  let left = rng.uniform() * entries.reduce((sum, [weight]) => sum + weight, 0);
  for (const [weight, value] of entries) {
    left -= weight;
    if (left < 0) return value;
  }
  return entries.at(-1)![1];
}

export function randomBytes(rng: Rng, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  for (let i = 0; i < length; i++) bytes[i] = rng.integer(256);
  return bytes;
}
