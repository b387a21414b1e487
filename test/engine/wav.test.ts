import { describe, expect, test } from 'vitest';
import { floatToPcm16, parseWav, wavHeader, wavToMono, writeWav } from '../../engine/audio/wav.ts';
import type { WavEncoding } from '../../engine/audio/wav.ts';
import { EngineError } from '../../engine/errors.ts';
import { tone, wavFile } from '../support/wav-file.ts';

const ENCODINGS: readonly (readonly [WavEncoding, number])[] = [
  // Half a step, and the writer's 127 to the reader's 128.
  ['u8', 1.5 / 128],
  ['s16', 1e-4],
  ['s24', 1e-6],
  ['s32', 1e-7],
  ['f32', 1e-7],
  ['f64', 1e-7],
  // Half a step of the loudest segment.
  ['alaw', 1 / 64],
  ['mulaw', 1 / 64],
];

function largestDifference(a: ArrayLike<number>, b: ArrayLike<number>): number {
  expect(a.length).toBe(b.length);
  return Array.from(a).reduce((most, value, i) => Math.max(most, Math.abs(value - b[i]!)), 0);
}

const errorOf = (bytes: Uint8Array): EngineError => {
  try {
    parseWav(bytes);
  } catch (error) {
    if (error instanceof EngineError) return error;
    throw error;
  }
  throw new Error('expected parseWav to throw');
};

describe('parseWav', () => {
  for (const [encoding, tolerance] of ENCODINGS) {
    for (const extensible of [false, true]) {
      test(`reads ${encoding}${extensible ? ' in extensible form' : ''}`, () => {
        const samples = tone(440, 8000, 0.05, 0.9);
        const wav = parseWav(wavFile(samples, { encoding, sampleRate: 8000, extensible }));
        expect(wav).toMatchObject({ encoding, sampleRate: 8000, channels: 1, frames: 400 });
        expect(largestDifference(wavToMono(wav), samples)).toBeLessThan(tolerance);
      });
    }
  }

  test('reads G.711 as its tables say', () => {
    // From the tables of ITU-T G.711: codes of the loudest and the least of either sign, in steps of 13 and 14 bits.
    const of = (encoding: 'alaw' | 'mulaw', codes: readonly number[]): number[] => [
      ...wavToMono({ encoding, channels: 1, frames: codes.length, data: Uint8Array.from(codes) }),
    ];
    expect(of('alaw', [0xaa, 0x2a, 0xd5, 0x55]).map((value) => value * 4096)).toEqual([4032, -4032, 1, -1]);
    expect(of('mulaw', [0x80, 0x00, 0xff, 0x7f]).map((value) => value * 8192)).toEqual([8031, -8031, 0, 0]);
  });

  test.each([1, 2, 3, 6, 8])('averages %i channels', (channels) => {
    const interleaved = Float32Array.from({ length: channels * 100 }, (_, i) => ((i % channels) + 1) / 16);
    const wav = parseWav(wavFile(interleaved, { encoding: 'f32', sampleRate: 44100, channels }));
    expect(wav.frames).toBe(100);
    expect(largestDifference(wavToMono(wav), new Float32Array(100).fill((channels + 1) / 32))).toBeLessThan(1e-7);
  });

  test.each([0, 0xffffffff, 0x7ffff024, 0x7fffffff])('takes a declared data size of %i as "until the end"', (declaredSize) => {
    const wav = parseWav(wavFile(new Float32Array(333), { encoding: 's16', sampleRate: 16000, declaredSize }));
    expect(wav.frames).toBe(333);
  });

  test('skips other chunks, odd sizes included', () => {
    const extraChunks = [
      { id: 'LIST', bytes: new Uint8Array(27) },
      { id: 'fact', bytes: new Uint8Array(4) },
    ];
    expect(parseWav(wavFile(new Float32Array(10), { encoding: 's16', sampleRate: 16000, extraChunks })).frames).toBe(10);
  });

  test('reads of RF64 what its sizes of 64 bits say, and not the chunks behind the data', () => {
    const sizes = Buffer.alloc(28);
    sizes.writeBigUInt64LE(6n, 8);
    const extraChunks = [{ id: 'ds64', bytes: sizes }];
    const file = Buffer.concat([
      wavFile([0.25, 0.5, -0.5], { encoding: 's16', sampleRate: 16000, extraChunks, declaredSize: 0xffff_ffff }),
      Buffer.from('axml\x08\0\0\0<m>h</m>'),
    ]);
    file.write('RF64');
    expect(parseWav(file)).toMatchObject({ frames: 3, missingBytes: 0 });
    sizes.writeBigUInt64LE(2n ** 33n, 8);
    const long = Buffer.from(wavFile([0.25], { encoding: 's16', sampleRate: 16000, extraChunks, declaredSize: 0xffff_ffff }));
    expect(parseWav(long).frames).toBe(1);
  });

  test('reads what lies at an odd offset in a larger buffer', () => {
    const samples = tone(440, 8000, 0.01);
    const file = wavFile(samples, { encoding: 'f64', sampleRate: 8000 });
    const shifted = new Uint8Array(file.length + 3);
    shifted.set(file, 3);
    expect(largestDifference(wavToMono(parseWav(shifted.subarray(3))), samples)).toBeLessThan(1e-7);
  });

  test('turns NaN, infinity and what is louder than any sound into silence', () => {
    for (const [encoding, loud] of [
      ['f32', 1e20],
      ['f64', 1e300],
    ] as const) {
      const samples = [NaN, Infinity, -Infinity, loud, -loud, 0.5, -(2 ** 31)];
      expect([...wavToMono(parseWav(wavFile(samples, { encoding, sampleRate: 8000 })))]).toEqual([0, 0, 0, 0, 0, 0.5, -(2 ** 31)]);
    }
  });

  const whole = wavFile(tone(440, 16000, 0.01), { encoding: 's16', sampleRate: 16000 });
  const patched = (at: number, ...bytes: number[]): Uint8Array => {
    const copy = whole.slice();
    copy.set(bytes, at);
    return copy;
  };

  test('reads what there is of a file that is cut in its samples, and says how much is missing', () => {
    expect(parseWav(whole)).toMatchObject({ frames: 160, missingBytes: 0 });
    for (let length = 44; length < whole.length; length++) {
      const wav = parseWav(whole.slice(0, length));
      expect(wav).toMatchObject({ frames: Math.floor((length - 44) / 2), missingBytes: whole.length - length });
      expect(wavToMono(wav)).toEqual(wavToMono(parseWav(whole)).subarray(0, wav.frames));
    }
  });

  test.each([
    ['an empty file', new Uint8Array(), /RIFF/],
    ['text', new TextEncoder().encode('this is not audio at all, is it?'), /RIFF/],
    ['a file cut inside the header', whole.slice(0, 30), /ends inside its 'fmt ' chunk/],
    ['a file without samples chunk', whole.slice(0, 36), /no data chunk/],
    ['no channels', patched(22, 0), /0 channels/],
    ['a rate of 0 Hz', patched(24, 0, 0), /sample rate of 0/],
    ['A-law', patched(20, 6), /encoding 6/],
    ['12 bits', patched(34, 12), /12 bits/],
    ['a wrong frame size', patched(32, 3), /3 bytes a frame/],
    ['data before the format', wavFileWithDataFirst(), /before its fmt/],
  ])('refuses %s', (_, bytes, message) => {
    const error = errorOf(bytes);
    expect(error).toMatchObject({ code: 'invalid_audio' });
    expect(error.message).toMatch(message);
  });

  test('survives every prefix and every damaged byte of a header', () => {
    for (let length = 0; length < 44; length++) expect(errorOf(whole.slice(0, length)).code).toBe('invalid_audio');
    for (let at = 0; at < 44; at++) {
      for (const value of [0, 1, 0x7f, 0xff]) {
        try {
          const wav = parseWav(patched(at, value));
          expect(wavToMono(wav).length).toBe(wav.frames);
        } catch (error) {
          expect(error).toMatchObject({ code: 'invalid_audio' });
        }
      }
    }
  });
});

function wavFileWithDataFirst(): Uint8Array {
  const file = new Uint8Array(24);
  file.set(new TextEncoder().encode('RIFF....WAVEdata'));
  return file;
}

describe('writing', () => {
  test('a file reads back as written', () => {
    const samples = tone(440, 24000, 0.1, 1);
    const wav = parseWav(writeWav(samples, 24000));
    expect(wav).toMatchObject({ encoding: 's16', sampleRate: 24000, channels: 1, frames: 2400 });
    expect(largestDifference(wavToMono(wav), samples)).toBeLessThan(1e-4);
  });

  test('sizes are exact, or open for a stream', () => {
    const exact = new DataView(wavHeader(24000, 100).buffer);
    expect([exact.getUint32(4, true), exact.getUint32(40, true)]).toEqual([136, 100]);
    const open = new DataView(wavHeader(24000).buffer);
    expect([open.getUint32(4, true), open.getUint32(40, true)]).toEqual([0xffffffff, 0xffffffff]);
  });

  test('samples are rounded and clipped, not wrapped', () => {
    expect([...new Int16Array(floatToPcm16(Float32Array.of(0, 1, -1, 1.5, -1.5, 0.5, 1e-5)).buffer)]).toEqual([
      0, 32767, -32767, 32767, -32768, 16384, 0,
    ]);
  });
});
