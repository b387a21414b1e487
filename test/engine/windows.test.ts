import { describe, expect, test } from 'vitest';
import { splitAtPauses } from '../../engine/audio/windows.ts';

const RATE = 16000;

/** Noise at the given amplitude, quiet between the given seconds. */
function speechLike(seconds: number, pauses: readonly (readonly [number, number])[], amplitude = 0.3): Float32Array {
  return Float32Array.from({ length: Math.round(seconds * RATE) }, (_, i) => {
    const quiet = pauses.some(([from, to]) => i / RATE >= from && i / RATE < to);
    return (quiet ? 0.002 : amplitude) * Math.sin(i * i * 0.37);
  });
}

describe('splitAtPauses', () => {
  test('keeps audio that fits as one window', () => {
    const windows = splitAtPauses(speechLike(30, []), RATE, 30);
    expect(windows).toHaveLength(1);
    expect(windows[0]).toMatchObject({ start: 0, silent: false });
    expect(windows[0]!.samples).toHaveLength(30 * RATE);
  });

  test('cuts in the pauses, and the windows are the whole audio in order', () => {
    const samples = speechLike(75, [[5, 5.5], [24, 24.4], [27, 27.1], [48.5, 49]]); // prettier-ignore
    const windows = splitAtPauses(samples, RATE, 30);
    expect(windows).toHaveLength(3);
    const cuts = windows.slice(1).map(({ start }) => start / RATE);
    expect(cuts[0]).toBeGreaterThan(24);
    expect(cuts[0]).toBeLessThan(24.4);
    expect(cuts[1]).toBeGreaterThan(48.5);
    expect(cuts[1]).toBeLessThan(49);
    const whole = new Float32Array(samples.length);
    for (const { start, samples: part } of windows) whole.set(part, start);
    expect(Buffer.compare(Buffer.from(whole.buffer), Buffer.from(samples.buffer))).toBe(0);
  });

  test('looks for a pause in the last 10 s of a window, of a short one in all but its first third', () => {
    const cut = (seconds: number, pauses: [number, number][]): number =>
      splitAtPauses(speechLike(1.5 * seconds, pauses), RATE, seconds)[1]!.start / RATE;
    expect(cut(30, [[15, 15.5], [21, 21.2]])).toBeCloseTo(21.1, 1); // prettier-ignore
    expect(cut(10, [[2, 2.5], [4, 4.2]])).toBeCloseTo(4.1, 1); // prettier-ignore
  });

  test('cuts audio without pauses all the same, and never into slivers', () => {
    const windows = splitAtPauses(speechLike(30.01, []), RATE, 30);
    expect(windows.map(({ samples }) => samples.length / RATE).every((seconds) => seconds > 0.02 && seconds <= 30)).toBe(true);
    expect(windows.reduce((sum, { samples }) => sum + samples.length, 0)).toBe(Math.round(30.01 * RATE));
    expect(windows).toHaveLength(2);
  });

  test('marks windows without sound as silent, and only those', () => {
    const silence = new Float32Array(40 * RATE);
    expect(splitAtPauses(silence, RATE, 30).map(({ silent }) => silent)).toEqual([true, true]);
    const hiss = Float32Array.from({ length: RATE }, (_, i) => 5e-4 * Math.sin(i * i));
    expect(splitAtPauses(hiss, RATE, 30)[0]!.silent).toBe(true);
    // A quiet word in a long silence.
    silence.set(speechLike(0.3, [], 0.01), 3 * RATE);
    expect(splitAtPauses(silence, RATE, 30).map(({ silent }) => silent)).toEqual([false, true]);
  });

  test('has no window for no audio', () => {
    expect(splitAtPauses(new Float32Array(0), RATE, 30)).toEqual([]);
  });
});
