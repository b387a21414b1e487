/** Which stretches of audio hold speech, against Silero's own rules, and how what is kept of a sound is read and placed. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { keptSound, wholeSound } from '../../engine/audio/kept-sound.ts';
import { arraySource } from '../../engine/audio/sample-source.ts';
import { SpeechFinder, withShortEnds } from '../../engine/audio/speech-segments.ts';

interface Case {
  readonly threshold: number;
  readonly minSpeechMs: number;
  readonly minSilenceMs: number;
  readonly padMs: number;
  readonly length: number;
  readonly probabilities: readonly number[];
  readonly segments: readonly (readonly [number, number])[];
}
const { cases } = JSON.parse(readFileSync(new URL('../fixtures/silero-vad/golden.json', import.meta.url), 'utf8')) as {
  readonly cases: readonly Case[];
};

describe('speech', () => {
  test.each(cases)('is found as the package finds it: threshold $threshold, silence $minSilenceMs ms, pad $padMs ms', (one) => {
    const rules = { threshold: one.threshold, leastSpeech: one.minSpeechMs / 1000, silence: one.minSilenceMs / 1000, before: one.padMs / 1000, after: one.padMs / 1000 }; // prettier-ignore
    const finder = new SpeechFinder(rules, { sampleRate: 16000, chunk: 512 });
    for (const probability of one.probabilities) finder.push(probability);
    expect(one.segments.length).toBeGreaterThan(0);
    expect(finder.finish(one.length).map(({ from, to }) => [from, to])).toEqual(one.segments);
  });

  test('is nowhere in what nobody says', () => {
    const finder = new SpeechFinder(
      { threshold: 0.5, leastSpeech: 0.25, silence: 1, before: 0.3, after: 0.3 },
      { sampleRate: 16000, chunk: 512 },
    );
    // A click of one chunk.
    for (const probability of [0, 0, 0.9, 0, 0, 0]) finder.push(probability);
    expect(finder.finish(6 * 512)).toEqual([]);
  });
});

test('speech that is short must be sure at some moment; what is long need not', () => {
  const rules = { threshold: 0.5, leastSpeech: 0.05, sure: { probability: 0.93, within: 0.2 }, silence: 0.03, before: 0, after: 0 };
  const found = (...probabilities: number[]): number => {
    const finder = new SpeechFinder(rules, { sampleRate: 16000, chunk: 512 });
    for (const probability of probabilities) finder.push(probability);
    return finder.finish(probabilities.length * 512).length;
  };
  expect(found(0, 0.9, 0.9, 0.9, 0, 0, 0)).toBe(0);
  expect(found(0, 0.9, 0.94, 0.9, 0, 0, 0)).toBe(1);
  // Sure before it was speech is not sure of it.
  expect(found(0.95, 0, 0, 0, 0.6, 0.6, 0.6, 0, 0)).toBe(0);
  expect(found(0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0, 0)).toBe(1);
});

test('the ends of audio are heard with the speech next to them where they are short', () => {
  const stretches = [{ from: 100, to: 200 }, { from: 500, to: 850 }]; // prettier-ignore
  expect(withShortEnds(stretches, 1000, 100, 1)).toEqual([{ from: 0, to: 200 }, { from: 500, to: 850 }]); // prettier-ignore
  expect(withShortEnds(stretches, 1000, 100, 1.5)).toEqual([{ from: 0, to: 200 }, { from: 500, to: 1000 }]); // prettier-ignore
  expect(withShortEnds(stretches, 1000, 100, -1)).toEqual(stretches);
  expect(withShortEnds([], 1000, 100, 20)).toEqual([]);
});

describe('what is kept of a sound', () => {
  const samples = Float32Array.from({ length: 100 }, (_, i) => i);
  // The first two touch.
  const kept = keptSound(arraySource(samples), [{ from: 5, to: 10 }, { from: 10, to: 12 }, { from: 40, to: 50 }, { from: 98, to: 100 }], { before: 2, after: 1 }); // prettier-ignore

  test('is read across its seams', async () => {
    expect(kept.length).toBe(19);
    expect([...(await kept.read(0, 19))]).toEqual([5, 6, 7, 8, 9, 10, 11, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 98, 99]);
    expect([...(await kept.read(6, 9))]).toEqual([11, 40, 41]);
    expect([...(await kept.read(17, 18))]).toEqual([98]);
    expect(await kept.read(3, 3)).toHaveLength(0);
  });

  const spans = (list: readonly (readonly [number, number])[], undivided: boolean): number[][] =>
    list.map(([start, end]) => Object.values(kept.span({ start, end }, undivided)));

  test('lies where it was: at a seam an end before the gap, and a start behind it', () => {
    expect([0, 5.5, 7, 16.5, 17, 19].map((at) => kept.place(at))).toEqual([5, 10.5, 40, 49.5, 98, 100]);
    for (const undivided of [true, false]) {
      expect(spans([[0, 5.5], [0, 7], [7, 16.5], [7, 17], [17, 19], [7, 7], [19, 19]], undivided)).toEqual([[5, 10.5], [5, 12], [40, 49.5], [40, 50], [98, 100], [40, 40], [100, 100]]); // prettier-ignore
    }
  });

  test('ends before a gap, and begins behind it, where it reaches over the seam into silence only', () => {
    for (const undivided of [true, false]) {
      // The last of these lies in silence on both sides.
      expect(spans([[4, 9], [6, 11], [2, 8.5], [16, 18.5], [6.5, 8]], undivided)).toEqual([[9, 12], [40, 44], [7, 12], [98, 99.5], [40, 41]]); // prettier-ignore
    }
    // Over two seams.
    expect(spans([[6, 18.5]], false)).toEqual([[40, 50]]);
  });

  test('lies on one side of a gap where it is a word, and on both where pauses may belong to it', () => {
    const list = [[5, 9.5], [3, 10], [4, 11], [0, 16]] as const; // prettier-ignore
    expect(spans(list, false)).toEqual([[10, 42.5], [8, 43], [9, 44], [5, 49]]); // prettier-ignore
    expect(spans(list, true)).toEqual([[40, 42.5], [8, 12], [40, 44], [40, 49]]); // prettier-ignore
  });

  test('has its words in order, wherever they meet', () => {
    const times = Array.from({ length: 39 }, (_, i) => i / 2);
    const triples = times.flatMap((from) => times.flatMap((middle) => times.map((to) => [from, middle, to] as const)));
    const disordered = triples.filter(([from, middle, to]) => {
      if (from > middle || middle > to) return false;
      const [a, b, c, d] = spans([[from, middle], [middle, to]], true).flat() as [number, number, number, number]; // prettier-ignore
      return !(a <= b && b <= c && c <= d);
    });
    expect(disordered).toEqual([]);
  });

  test('is all of it where nothing is left out, and nothing where all is', async () => {
    const whole = wholeSound(arraySource(samples));
    expect([whole.length, whole.place(17), whole.span({ start: 17, end: 18 })]).toEqual([100, 17, { start: 17, end: 18 }]);
    expect(keptSound(arraySource(samples), [], { before: 0, after: 0 }).length).toBe(0);
  });
});
