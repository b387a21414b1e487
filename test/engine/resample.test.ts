import { describe, expect, test } from 'vitest';
import { Resampler, resample } from '../../engine/audio/resample.ts';
import { tone } from '../support/wav-file.ts';

const RATIOS: readonly (readonly [number, number])[] = [
  [44100, 16000],
  [48000, 16000],
  [24000, 16000],
  [8000, 16000],
  [22050, 16000],
  [11025, 16000],
  [16000, 24000],
  [96000, 16000],
  // More phases than the table holds, so phases are interpolated.
  [44101, 16000],
  [7999, 16000],
];

/** Root mean square without the ends, where the filter sees the silence outside. */
function rms(samples: Float32Array): number {
  const edge = Math.floor(samples.length / 8);
  const middle = samples.subarray(edge, samples.length - edge);
  return Math.sqrt(middle.reduce((sum, x) => sum + x * x, 0) / middle.length);
}

const dB = (ratio: number): number => 20 * Math.log10(Math.max(ratio, 1e-12));

describe.each(RATIOS)('%i Hz to %i Hz', (from, to) => {
  const nyquist = Math.min(from, to) / 2;

  test('passes tones below 90 % of the lower Nyquist frequency within 0.01 dB, in time', () => {
    for (const share of [0.01, 0.2, 0.5, 0.8, 0.9]) {
      const frequency = share * nyquist;
      const got = resample(tone(frequency, from, 0.5), from, to);
      const want = tone(frequency, to, 0.5);
      const middle = (x: Float32Array): Float32Array => x.subarray(to / 8, (3 * to) / 8);
      const error = middle(got).map((x, i) => x - middle(want)[i]!);
      expect(dB(rms(error) / rms(want)), `${share} of Nyquist`).toBeLessThan(-60);
      expect(Math.abs(dB(rms(got) / rms(want))), `${share} of Nyquist`).toBeLessThan(0.01);
    }
  });

  test('removes at least 80 dB of what lies above the lower Nyquist frequency or its mirror images', () => {
    // Down: tones above the new Nyquist frequency vanish. Up: what is not the tone itself (its images) is absent.
    for (const share of [1, 1.05, 1.3, 1.7]) {
      if (to < from && share * nyquist < from / 2) {
        const got = resample(tone(share * nyquist, from, 0.5), from, to);
        expect(dB(rms(got) / (0.5 / Math.SQRT2)), `${share} of Nyquist`).toBeLessThan(-80);
      }
    }
    const frequency = 0.6 * nyquist;
    const got = resample(tone(frequency, from, 0.5), from, to);
    const residue = got.map((x, i) => x - 0.5 * Math.sin((2 * Math.PI * frequency * i) / to));
    expect(dB(rms(residue) / rms(got))).toBeLessThan(-75);
  });

  test('keeps a constant and the length', () => {
    for (const length of [0, 1, 3, 63, 64, 65, 257, from]) {
      expect(resample(new Float32Array(length).fill(0.25), from, to).length).toBe(Math.round((length * to) / from));
    }
    const middle = resample(new Float32Array(from).fill(0.25), from, to).subarray(to / 4, to / 2);
    expect(Math.max(...middle.map((x) => Math.abs(x - 0.25)))).toBeLessThan(1e-5);
  });
});

test('a sweep from 0 Hz to 22 kHz leaves nothing once it is above 8 kHz', () => {
  const seconds = 2;
  const rate = 44100;
  const top = 22050;
  const sweep = Float32Array.from({ length: rate * seconds }, (_, i) => {
    const t = i / rate;
    return 0.5 * Math.sin(((Math.PI * top) / seconds) * t * t);
  });
  const out = resample(sweep, rate, 16000);
  const at = (frequency: number): number => Math.round((frequency / top) * out.length);
  // 250 Hz past the edge: the length of the filter.
  const above = out.subarray(at(8250), out.length - 400);
  const below = out.subarray(at(200), at(7200));
  expect(dB(Math.max(...above.map(Math.abs)) / 0.5)).toBeLessThan(-80);
  expect(Math.max(...below.map(Math.abs))).toBeGreaterThan(0.499);
  expect(Math.max(...below.map(Math.abs))).toBeLessThan(0.501);
});

test('equal rates pass through untouched', () => {
  const input = tone(440, 16000, 0.1);
  expect(resample(input, 16000, 16000)).toBe(input);
});

test.each([
  [8000, 16000],
  [16000, 16000],
  [44100, 16000],
  [48000, 16000],
  [192000, 16000],
  [44101, 16000],
])('blocks of %s Hz become what the whole does at %s Hz, sample by sample', (from, to) => {
  const input = Float32Array.from({ length: 30_011 }, (_, i) => Math.sin(i * i * 1e-5));
  const whole = resample(input, from, to);
  for (const size of [1013, 9000, 40_000]) {
    const resampler = new Resampler(from, to);
    const parts: Float32Array[] = [];
    for (let at = 0; at < input.length; at += size) parts.push(resampler.push(input.subarray(at, at + size)));
    parts.push(resampler.flush());
    expect(Float32Array.from(parts.flatMap((part) => [...part]))).toEqual(whole);
  }
});
