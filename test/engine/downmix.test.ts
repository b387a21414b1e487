/** The mix of a recording's channels: their mean, and no silence where they cancel each other. */
import { describe, expect, test } from 'vitest';
import { Downmix } from '../../engine/audio/downmix.ts';
import { tone } from '../support/wav-file.ts';

const FRAMES = 1600;
/** Channels of this length, interleaved. */
const joined = (...channels: readonly Float32Array[]): Float32Array =>
  Float32Array.from({ length: channels.length * FRAMES }, (_, at) => channels[at % channels.length]![Math.floor(at / channels.length)]!);
const scaled = (samples: Float32Array, by: number): Float32Array => samples.map((sample) => by * sample);

const sound = tone(440, 16000, 0.1);
const other = tone(1000, 16000, 0.1);
const silence = new Float32Array(FRAMES);

describe('channels', () => {
  test.each([
    ['equal ones', [sound, sound], (at: number) => sound[at]!],
    ['unrelated ones', [sound, other], (at: number) => (sound[at]! + other[at]!) / 2],
    ['one with sound of two', [silence, sound], (at: number) => sound[at]! / 2],
    ['one with sound of thirty-two', [...Array<Float32Array>(31).fill(silence), sound], (at: number) => sound[at]! / 32],
    ['opposite ones of unlike strength', [sound, scaled(sound, -0.25)], (at: number) => (sound[at]! * 0.75) / 2],
    ['none with sound', [silence, silence], () => 0],
  ] as const)('are averaged: %s', (_, channels, wanted) => {
    const mixed = new Downmix().push(joined(...channels), channels.length);
    expect(mixed).toHaveLength(FRAMES);
    for (const [at, sample] of mixed.entries()) expect(sample).toBeCloseTo(wanted(at), 5);
  });

  test('that cancel each other are heard all the same', () => {
    expect(new Downmix().push(joined(sound, scaled(sound, -1)), 2)).toEqual(sound);
    // The first that is about as loud as any.
    const nearly = scaled(sound, 0.9);
    expect(new Downmix().push(joined(scaled(sound, 0.1), nearly, scaled(sound, -1)), 3)).toEqual(nearly);
  });

  test('that cancel each other are heard as one channel through a pause with noise in both', () => {
    const mix = new Downmix();
    mix.push(joined(sound, scaled(sound, -1)), 2);
    const noise = scaled(other, 0.01);
    expect(mix.push(joined(noise, noise), 2)).toEqual(noise);
    expect(mix.push(joined(sound, scaled(sound, -1)), 2)).toEqual(sound);
  });

  test('of planes are mixed as interleaved ones are', () => {
    for (const planes of [[sound, other], [sound, scaled(sound, -1)], [sound]])
      expect(new Downmix().pushPlanes(planes, 100, 1500)).toEqual(
        new Downmix().push(joined(...planes).subarray(100 * planes.length, 1500 * planes.length), planes.length),
      );
  });

  test('that cancel each other from somewhere on only are averaged before', () => {
    const long = tone(440, 16000, 60);
    const half = long.length / 2;
    const turned = Float32Array.from(long, (sample, at) => (at < half ? sample : -sample));
    const mixed = new Downmix().pushPlanes([long, turned], 0, long.length);
    expect(mixed.every((sample, at) => (at >= half && at < 1.8 * half) || sample === long[at])).toBe(true);
  });

  test('may change in number', () => {
    const mix = new Downmix();
    mix.push(joined(sound, scaled(sound, -1)), 2);
    expect(mix.push(sound, 1)).toBe(sound);
    expect(mix.push(joined(sound, sound, sound), 3)[9]).toBeCloseTo(sound[9]!, 6);
    expect(mix.push(joined(sound, scaled(sound, -1)), 2)).toEqual(sound);
  });

  test('with damaged samples lose those alone', () => {
    const mix = new Downmix();
    const damaged = sound.with(9, NaN);
    expect(mix.push(joined(damaged, damaged), 2)).toEqual(sound.with(9, 0));
    expect(mix.push(joined(sound, sound), 2)).toEqual(sound);
  });
});
