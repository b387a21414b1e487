/** Uploads that were joined, that lack pieces of their middle, or that are not as long as they declare: what is heard of them, and what is said about the rest. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { wavToMono, writeWav } from '../../engine/audio/wav.ts';
import { decodeUpload, decodedBytes, sampleBytes } from '../../server/audio/upload/decode.ts';
import { joinBytes } from '../../server/audio/join-bytes.ts';
import { caseRng } from '../fuzz/rng.ts';
import { likeness } from '../support/likeness.ts';
import { tone } from '../support/wav-file.ts';

const FORMATS = fileURLToPath(new URL('../fixtures/audio-formats/', import.meta.url));
const RATE = 16_000;
const read = (name: string): Buffer => readFileSync(join(FORMATS, name));

function newPath(): string {
  const folder = mkdtempSync(join(tmpdir(), 'damaged-audio-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return join(folder, 'samples');
}

function decode(bytes: Uint8Array): { readonly heard: Float32Array; readonly warnings: readonly string[] } {
  const { samples, warnings } = decodeUpload(bytes, newPath());
  const data = readFileSync(samples.path);
  expect(decodedBytes(bytes)).toBeGreaterThanOrEqual(sampleBytes(samples));
  return { warnings, heard: wavToMono({ data, encoding: samples.encoding, channels: 1, frames: samples.length }) };
}

const CUT = /^the \w+ file is cut short or damaged: it is transcribed as far as it could be read$/;

describe('an ID3 tag before a file of any kind changes nothing', () => {
  const tag = Buffer.concat([Buffer.from('ID3\x04\0\0\0\0\x0f\x68', 'latin1'), Buffer.alloc(15 * 128 + 0x68, 'TIT2')]);
  test.each([
    'aac-22050.aac',
    'aiff-16000-16.aiff',
    'au-8000-mulaw.au',
    'caf-alac.caf',
    'flac-16000-16.flac',
    'flv-aac.flv',
    'm4a-44100-stereo.m4a',
    'mov-16000-float.mov',
    'mp3-16000-mono.mp3',
    'ogg-opus.opus',
    'w64-48000-stereo.w64',
    'wav-8000-adpcm-ms.wav',
    'wav-16000-rf64.wav',
    'webm-opus.webm',
  ])('%s', (name) => {
    const { heard, warnings } = decode(Buffer.concat([tag, read(name)]));
    expect(warnings).toEqual([]);
    expect(heard).toEqual(decode(read(name)).heard);
  });
});

describe('files that were joined are heard one after the other', () => {
  test.each([
    ['wav-8000-alaw.wav', 'wav-22050-adpcm-ima-stereo.wav'],
    ['wav-48000-one-silent.wav', 'wav-16000-rf64.wav'],
    ['w64-8000-adpcm-ms.w64', 'w64-48000-stereo.w64'],
    ['aiff-16000-16.aiff', 'aiff-44100-24-stereo.aiff'],
    ['au-8000-mulaw.au', 'au-16000-float.au'],
    ['caf-16000-16.caf', 'caf-alac.caf'],
    ['flac-16000-16.flac', 'flac-48000-24-stereo.flac'],
    ['mp3-16000-mono.mp3', 'mp3-44100-stereo.mp3'],
    ['aac-22050.aac', 'aac-48000-stereo.aac'],
    ['m4a-16000-mono.m4a', 'opus.mp4'],
    ['mp4-fragments.mp4', 'm4a-fast-start.m4a'],
    ['webm-opus.webm', 'webm-vorbis.webm'],
    ['webm-live.webm', 'mkv-aac.mkv'],
    ['flv-aac.flv', 'flv-aac.flv'],
  ])('%s and %s', (one, other) => {
    const wanted = [decode(read(one)).heard, decode(read(other)).heard];
    const { heard, warnings } = decode(Buffer.concat([read(one), read(other)]));
    expect(warnings).toEqual([]);
    // A decoder that goes on from file to file has no silence of its own before the second one.
    expect(Math.abs(heard.length - wanted[0]!.length - wanted[1]!.length)).toBeLessThan(0.05 * RATE);
    expect(likeness(heard, wanted[0]!)).toBeGreaterThan(0.99);
    expect(likeness(heard.subarray(-wanted[1]!.length), wanted[1]!)).toBeGreaterThan(0.95);
  });

  test('and of one that is cut off in its headers is said that it is', () => {
    for (const name of ['flac-16000-16.flac', 'wav-8000-adpcm-ms.wav', 'webm-opus.webm', 'wav-16000-rf64.wav']) {
      const { heard, warnings } = decode(Buffer.concat([read(name), read(name).subarray(0, 60)]));
      expect(heard.length, name).toBeGreaterThanOrEqual(decode(read(name)).heard.length - 1);
      expect(warnings, name).toContainEqual(expect.stringMatching(/^the \w+ file is /));
    }
  });
});

describe('joined files of more than one sample rate', () => {
  /** As many files, each of a hundredth of a second, whose rates alternate. */
  const joined = (files: number): Uint8Array =>
    joinBytes(Array.from({ length: files }, (_, i) => writeWav(tone(440, 8000 * (1 + (i % 2)), 0.01), 8000 * (1 + (i % 2)))));

  test('are heard while the rate changes 20 times, and beyond that the changes are what is refused', () => {
    expect(decode(joined(21)).heard).toHaveLength(21 * 160);
    expect(() => decode(joined(22))).toThrow(
      'the sample rate changes more than 20 times within the WAV file; send what was joined as several files, or with one rate',
    );
  });

  test('are refused for a rate that is not read', () => {
    const aiff = Buffer.from(read('aiff-16000-16.aiff'));
    // An eighth: an exponent that is smaller by 3.
    aiff.writeUInt16BE(aiff.readUInt16BE(aiff.indexOf('COMM') + 16) - 3, aiff.indexOf('COMM') + 16);
    expect(() => decode(aiff)).toThrow('the AIFF file has sound with a sample rate of 2000 Hz; 4000 to 384000 are read');
  });
});

describe('a file that is damaged in its middle is read on behind it', () => {
  const rng = caseRng(31, 0);
  const noise = (length: number): Uint8Array => Uint8Array.from({ length }, () => rng.integer(256));
  /** Seconds of sound that may be lost around the damage: packets, and of MP4 the fragment that was hit and the one whose description was. */
  const FILES = [
    ['webm-opus.webm', 0.3],
    ['webm-live.webm', 0.3],
    ['film.webm', 0.3],
    ['mkv-aac.mkv', 0.4],
    ['flv-aac.flv', 0.4],
    ['mp4-fragments.mp4', 1.1],
  ] as const;

  test.each(
    FILES.flatMap(([name, lost]) => [
      [
        name,
        'lost',
        lost,
        (file: Buffer, at: number, size: number) => joinBytes([file.subarray(0, at), file.subarray(at + size)]),
      ] as const,
      [
        name,
        'replaced',
        lost,
        (file: Buffer, at: number, size: number) => joinBytes([file.subarray(0, at), noise(size), file.subarray(at + size)]),
      ] as const,
      [
        name,
        'zero',
        lost,
        (file: Buffer, at: number, size: number) => joinBytes([file.subarray(0, at), new Uint8Array(size), file.subarray(at + size)]),
      ] as const,
      [
        name,
        'between',
        lost,
        (file: Buffer, at: number, size: number) => joinBytes([file.subarray(0, at), noise(size), file.subarray(at)]),
      ] as const,
    ]),
  )('%s where bytes are %s', (name, _, lost, damage) => {
    const file = read(name);
    const whole = decode(file).heard;
    const { heard, warnings } = decode(damage(file, Math.floor(file.length * 0.55), Math.floor(file.length * 0.04)));
    expect(warnings).toContainEqual(expect.stringMatching(/^the \w+ file is (cut short or )?damaged/));
    expect(heard.length).toBeGreaterThan(whole.length - (lost + 0.04 * 2) * RATE);
    expect(likeness(heard.subarray(-0.4 * RATE), whole.subarray(-0.4 * RATE))).toBeGreaterThan(0.9);
  });

  test('and of two pieces of rubbish, both are passed over', () => {
    const file = read('webm-opus.webm');
    const [a, b] = [Math.floor(file.length * 0.4), Math.floor(file.length * 0.7)];
    const { heard } = decode(joinBytes([file.subarray(0, a), noise(300), file.subarray(a, b), noise(300), file.subarray(b)]));
    expect(heard.length).toBeGreaterThan(0.8 * decode(file).heard.length);
  });

  test('with work that grows with the file only', () => {
    const head = (name: string, mark: string): Buffer => read(name).subarray(0, read(name).indexOf(mark, 0, 'latin1'));
    const webm = head('webm-live.webm', '\x1f\x43\xb6\x75');
    const mp4 = read('mp4-fragments.mp4').subarray(0, read('mp4-fragments.mp4').indexOf('moof') - 4);
    const flv = Buffer.from('FLV\x01\x04\0\0\0\x09\0\0\0\0', 'latin1');
    const tag = Buffer.from('08000002000000000000002f010000000d08', 'hex');
    const block = 'a3868100008000';
    for (const [start, part] of [
      [webm, Buffer.from('1f43b675', 'hex')],
      [webm, Buffer.from('a3', 'hex')],
      [webm, Buffer.from(`1f43b67501ffffffffffffffe78100${block.repeat(3)}00`, 'hex')],
      [webm, Buffer.from(`${block.repeat(5)}00`, 'hex')],
      [mp4, Buffer.from('\0\0\xff\xffmoof\0\0\0\x10mfhd', 'latin1')],
      [flv, tag],
      [flv, Buffer.from('08', 'hex')],
    ] as const) {
      const file = Buffer.concat([start, Buffer.alloc(1 << 19, part)]);
      let bytes = 0;
      const subarray = (from: number, to = file.length): Uint8Array => {
        const piece = file.subarray(from, to);
        bytes += piece.length;
        return piece;
      };
      try {
        decodeUpload({ length: file.length, subarray }, newPath());
      } catch (error) {
        expect(error).toMatchObject({ status: 400 });
      }
      expect(bytes / file.length, part.toString('hex')).toBeLessThan(250);
    }
  });
});

describe('a file that is not as long as it declares says so', () => {
  test.each(['mp3-16000-mono.mp3', 'mp3-44100-stereo.mp3', 'mp3-22050-vbr.mp3', 'flac-16000-16.flac'])(
    '%s, without its end or middle',
    (name) => {
      const file = read(name);
      const at = (share: number): number => Math.floor(share * file.length);
      expect(decode(file).warnings).toEqual([]);
      expect(decode(file.subarray(0, at(0.7))).warnings).toContainEqual(expect.stringMatching(CUT));
      const { heard, warnings } = decode(joinBytes([file.subarray(0, at(0.5)), file.subarray(at(0.65))]));
      expect(warnings).toContainEqual(expect.stringMatching(CUT));
      expect(heard.length).toBeGreaterThan(0.7 * decode(file).heard.length);
    },
  );

  test('Ogg, of which a page was changed', () => {
    for (const name of ['ogg-opus.opus', 'ogg-vorbis-44100.ogg']) {
      const file = read(name);
      file[file.length - 100]! ^= 0xff;
      expect(decode(file).warnings, name).toContainEqual(expect.stringMatching(CUT));
    }
  });

  test('WAV, whose header counts a part of the samples only', () => {
    const file = readFileSync(fileURLToPath(new URL('../fixtures/parley-transcribe/clip.wav', import.meta.url)));
    const at = file.indexOf('data') + 4;
    const size = file.readUInt32LE(at);
    file.writeUInt32LE(16_000, at);
    const { heard, warnings } = decode(file);
    expect(heard).toHaveLength(8000);
    expect(warnings).toEqual([
      `the WAV file declares 16000 bytes of samples, which were transcribed; ${size - 16_000} bytes behind them were not`,
    ]);
  });
});

test('notes of other programs behind the sound change nothing', () => {
  const id3 = Buffer.from(`TAG${'x'.repeat(125)}`, 'latin1');
  const ape = Buffer.alloc(92, 'x');
  for (const at of [0, 60]) {
    ape.write('APETAGEX', at, 'latin1');
    ape.set([0xd0, 7, 0, 0, 60, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, at === 0 ? 0xa0 : 0x80], at + 8);
  }
  for (const name of [
    'flac-16000-16.flac',
    'caf-16000-16.caf',
    'webm-opus.webm',
    'flv-aac.flv',
    'wav-8000-alaw.wav',
    'mp3-16000-mono.mp3',
  ]) {
    const wanted = decode(read(name));
    for (const tail of [id3, Buffer.concat([ape, id3]), new Uint8Array(5000)])
      expect(decode(joinBytes([read(name), tail])), name).toEqual(wanted);
  }
});
