import { expect, test } from 'vitest';
import { PAUSE, joinable } from '../../engine/audio/pauses.ts';

const RATE = 24_000;

/** A tone of a second with silence around it, in which there is a little noise. */
function piece(before: number, after: number): Float32Array {
  const [first, last] = [Math.round(before * RATE), Math.round((before + 1) * RATE)];
  return Float32Array.from({ length: last + Math.round(after * RATE) }, (_, i) => (i >= first && i < last ? 0.5 * Math.cos(i - first) : 0.001 * Math.sin(i)));
} // prettier-ignore

/** Seconds from the tone's end to the next piece's tone, where that one begins with `before` seconds of silence. */
function gap(before: number, after: number, pause: keyof typeof PAUSE, speed = 1): number {
  const joined = joinable(piece(before, after), RATE, { pause, speed });
  return joined.length / RATE - before - 1 + before;
}

test.each([
  ['sentence', 0, 0, 0.45],
  ['sentence', 0.1, 0.15, 0.45],
  ['paragraph', 0.1, 0.15, 0.7],
  // Published Kokoro's: nothing is added, and between sentences nothing is taken.
  ['sentence', 0.31, 0.49, 0.8],
  ['paragraph', 0.31, 0.49, 0.8],
  // A sentence that had to be cut goes on sooner.
  ['clause', 0.31, 0.49, 0.34],
  ['clause', 0.1, 0.1, 0.31],
] as const)('after a %s, %f and %f s of silence become a pause of %f s', (pause, before, after, wanted) => {
  expect(gap(before, after, pause)).toBeCloseTo(wanted, 3);
});

test('faster speech pauses shorter', () => {
  expect(gap(0, 0, 'sentence', 2)).toBeCloseTo(PAUSE.sentence / 2, 3);
});

test('keeps the samples of the speech, and ramps only its ends', () => {
  const samples = piece(0.31, 0.49);
  const joined = joinable(samples, RATE, { pause: 'clause', speed: 1 });
  const [from, to] = [Math.round(0.3 * RATE), Math.round(1.31 * RATE)];
  expect(joined.slice(from, to)).toEqual(samples.slice(from, to));
  expect([joined[0], joined.at(-1)].map(Math.abs as (x: unknown) => number)).toEqual([0, 0]);
});

test('a piece without a sound stays as long as it is, or as its pause', () => {
  expect(joinable(new Float32Array(RATE), RATE, { pause: 'sentence', speed: 1 })).toHaveLength(RATE + Math.round(PAUSE.sentence * RATE));
});

test('a pause that the text gives is silence to the sample, at any speed, and the silence beside it is cut', () => {
  for (const speed of [0.5, 1, 4]) {
    const ended = joinable(piece(0.31, 0.49), RATE, { pause: 'given', speed });
    expect(ended.length / RATE).toBeCloseTo(0.31 + 1 + 0.03, 3);
    const begun = joinable(piece(0.31, 0.49), RATE, { pause: 'given', speed, silence: 1.5 });
    expect(begun.length / RATE).toBeCloseTo(1.5 + 0.03 + 1 + 0.03, 3);
    expect(begun.findIndex((sample) => sample !== 0)).toBe(1.5 * RATE + 1);
    // Little silence stays.
    expect(joinable(piece(0.01, 0.02), RATE, { pause: 'given', speed, silence: 0 }).length / RATE).toBeCloseTo(1.03, 3);
  }
});
