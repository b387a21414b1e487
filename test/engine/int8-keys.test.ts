/** The CPU reference of int8 keys: what spreading their channels and keeping two pairs apart is for. No adapter is asked, so it is no kernel case. */
import { describe, expect, test } from 'vitest';
import { createRng } from '../../engine/util/rng.ts';
import * as kvReference from '../reference/kv.ts';

describe('spreading the channels of keys and queries', () => {
  const rng = createRng(7);
  const head = (size: number): number[] => Array.from({ length: size }, () => rng.normal());
  const dot = (a: readonly number[], b: readonly number[]): number => a.reduce((sum, value, i) => sum + value * b[i]!, 0);

  test.each([8, 16, 64, 80, 96, 128])('%i channels: products stay, and one large channel becomes many small ones', (size) => {
    const [q, k] = [head(size), head(size)];
    expect(dot(kvReference.spreadChannels(q), kvReference.spreadChannels(k))).toBeCloseTo(dot(q, k), 9);
    const largest = Math.max(...kvReference.spreadChannels(k.map((_, d) => (d === 3 ? 100 : 0))).map(Math.abs));
    expect(largest).toBeLessThan(size % 5 === 0 || size % 3 === 0 ? 25 : 100 / Math.sqrt(size) + 1e-9);
  });

  // Scores of queries against keys with large channels. The bias is the same for all keys, turned by their positions: what counts is the error beside
  // the scores without it. Of N(0, 1) channels alone, bytes lose 3e-5 to 5e-5.
  const largePairs = [[], [5], [5, 9]];
  const shapes = [48, 64, 80, 96, 128].flatMap((size) => largePairs.map((pairs) => [size, pairs] as const));
  test.each(shapes)('%i channels: a key bias of 100 in the pairs %j costs scores nothing that counts', (size, pairs) => {
    const unit = 105 / 15;
    const apart = [{ pair: pairs[0] ?? 0, unit }, { pair: pairs[1] ?? 1, unit: pairs[1] === undefined ? 0.3 : unit }] as const; // prettier-ignore
    const error = { bytes: 0, spread: 0, apart: 0 };
    let power = 0;
    for (let i = 0; i < 200; i++) {
      const [q, base] = [head(size), head(size)];
      const k = [...base];
      for (const pair of pairs) {
        const angle = 2 * Math.PI * rng.uniform();
        k[pair]! += 100 * Math.cos(angle);
        k[pair + size / 2]! += 100 * Math.sin(angle);
      }
      power += dot(q, base) ** 2;
      const { bytes, scale } = kvReference.quantizeValue(k);
      error.bytes += (dot(q, Array.from(bytes, (byte) => (byte / 127) * scale)) - dot(q, k)) ** 2; // prettier-ignore
      for (const [name, kept] of [['spread', kvReference.NO_PAIRS], ['apart', apart]] as const) {
        error[name] += (kvReference.storedScore(kvReference.spreadQuery(q, kept), kvReference.quantizeKey(k, kept)) - dot(q, k)) ** 2;
      } // prettier-ignore
    }
    const shown = Object.entries(error).map(([name, sum]) => `${name} ${(sum / power).toExponential(1)}`);
    console.log(`${size} channels, large pairs [${pairs.join(', ')}]: NMSE ${shown.join(', ')}`);
    expect(error.apart / power).toBeLessThan(8e-5);
  });

  test('a key without counts beyond their limits stays in bytes of the rest', () => {
    const key = head(64).map((value, d) => (d === 5 ? 400 : value));
    const { counts, scale } = kvReference.quantizeKey(key, [{ pair: 5, unit: 1 }, { pair: 6, unit: 1 }]); // prettier-ignore
    expect(counts[0]).toBe(15);
    expect(scale).toBeGreaterThan(385 / 8 - 4);
    expect(kvReference.unpackKeyWord(kvReference.packKeyWord(scale, counts))).toEqual({ scale, counts });
    expect(kvReference.unpackKeyWord(kvReference.packKeyWord(2, [-16, 15, -1, 0]))).toEqual({ scale: 2, counts: [-16, 15, -1, 0] });
  });
});
