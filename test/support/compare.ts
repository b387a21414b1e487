/** Error measures; the tolerances of the kernel cases are stated in NMSE. */
import { expect } from 'vitest';

/** Normalised mean squared error: sum((a - e)^2) / sum(e^2); NaN anywhere gives NaN. */
export function nmse(actual: ArrayLike<number>, expected: ArrayLike<number>): number {
  let error = 0;
  let energy = 0;
  for (let i = 0; i < expected.length; i++) {
    const difference = actual[i]! - expected[i]!;
    error += difference * difference;
    energy += expected[i]! * expected[i]!;
  }
  return energy === 0 ? error : error / energy;
}

/** Where two arrays differ most, as a sentence. */
export function worst(actual: ArrayLike<number>, expected: ArrayLike<number>): string {
  let at = 0;
  let most = -1;
  for (let i = 0; i < expected.length; i++) {
    const difference = Math.abs(actual[i]! - expected[i]!);
    if (!(difference <= most)) {
      most = difference;
      at = i;
      if (Number.isNaN(difference)) break;
    }
  }
  return `largest difference ${most} at [${at}]: got ${actual[at]}, expected ${expected[at]}`;
}

/** Throws unless lengths agree and NMSE <= tolerance. */
export function expectClose(name: string, actual: ArrayLike<number>, expected: ArrayLike<number>, tolerance: number): void {
  if (actual.length !== expected.length) throw new Error(`${name}: ${actual.length} values, expected ${expected.length}`);
  const error = nmse(actual, expected);
  if (!(error <= tolerance)) throw new Error(`${name}: NMSE ${error} above ${tolerance}; ${worst(actual, expected)}`);
}

/** Number of logits whose bits differ. */
export function differing(actual: readonly Float32Array[], expected: readonly Float32Array[]): number {
  expect(actual).toHaveLength(expected.length);
  return actual.reduce((sum, row, i) => sum + row.reduce((count, value, j) => count + (Object.is(value, expected[i]![j]!) ? 0 : 1), 0), 0);
}

/** Throws unless the lists are the same. */
export function expectEqual(name: string, actual: readonly number[], expected: readonly number[]): void {
  if (actual.join() !== expected.join()) throw new Error(`${name}: ${actual.join()}, expected ${expected.join()}`);
}
