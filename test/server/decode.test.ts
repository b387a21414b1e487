/** Uploads as files of samples: what is in them, and that none is left. */
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { resample } from '../../engine/audio/resample.ts';
import { parseWav, wavToMono } from '../../engine/audio/wav.ts';
import type { WavEncoding } from '../../engine/audio/wav.ts';
import { MAX_AUDIO_SECONDS, decodeUpload, decodedBytes, sampleBytes } from '../../server/audio/upload/decode.ts';
import { TemporaryFolder, removeAbandoned, writeFailure } from '../../server/audio/temporary-folder.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { sampleFile } from '../../engine/platform/sample-file.ts';
import { Blocks } from '../../server/body/blocks.ts';
import { tone, wavFile } from '../support/wav-file.ts';

const platform = createNodePlatform();

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'decode-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** A file as it is collected, in pieces of this many bytes. */
function collected(bytes: Uint8Array, size = 1000): Blocks {
  const blocks = new Blocks();
  for (let at = 0; at < bytes.length; at += size) blocks.push(bytes.subarray(at, at + size));
  return blocks;
}

describe('blocks', () => {
  test('are the bytes that came, wherever they are cut, and can be handed on', () => {
    const bytes = Uint8Array.from({ length: 3_000_000 }, (_, i) => i * 7 + (i >> 8));
    for (const size of [1, 1000, 700_001, 3_000_000]) {
      const blocks = collected(bytes.subarray(0, size === 1 ? 5000 : bytes.length), size);
      const { length } = blocks;
      const moved = Blocks.of(blocks.take());
      expect([blocks.length, moved.length]).toEqual([0, length]);
      for (const [from, to] of [
        [0, length],
        [0, 12],
        [500, 530],
        [length - 3, length + 100],
        [length, length + 1],
      ] as const)
        // prettier-ignore
        expect(Buffer.compare(moved.subarray(from, to), bytes.subarray(from, Math.min(to, length))), `${from} to ${to}`).toBe(0);
    }
  });
});

test('blocks are freed when they are no longer needed, and not when a collector comes by', () => {
  // What is given back to the allocator: whether that gives it to the system at once is its own affair.
  const held = (): number => process.memoryUsage().arrayBuffers / 2 ** 20;
  const before = held();
  const blocks = new Blocks();
  const chunk = new Uint8Array(1 << 20).fill(1);
  for (let i = 0; i < 200; i++) blocks.push(chunk);
  expect(held() - before).toBeGreaterThan(150);
  blocks.free();
  expect(blocks.length).toBe(0);
  expect(held() - before).toBeLessThan(50);
});

describe('decodeUpload', () => {
  test.each<readonly [WavEncoding, number, number, 's16' | 'f32']>([
    ['s16', 16000, 1, 's16'],
    ['s16', 16000, 2, 'f32'],
    ['s16', 44100, 1, 'f32'],
    ['u8', 8000, 1, 'f32'],
    ['s24', 48000, 2, 'f32'],
    ['f32', 16000, 1, 'f32'],
  ])(
    'writes what decoding all of it at once gives, to the bit: %s at %i Hz, %i channels',
    async (encoding, sampleRate, channels, stored) => {
      // More than one piece.
      const sound = tone(440, sampleRate, (channels * 150_000) / sampleRate, 0.9).map((value, i) => value * Math.cos(i / 999));
      const bytes = wavFile(sound, { encoding, sampleRate, channels });
      const path = join(temporaryFolder(), 'samples');
      const { samples, warnings } = decodeUpload(collected(bytes), path);
      expect(warnings).toEqual([]);
      const wanted = resample(wavToMono(parseWav(bytes)), sampleRate, 16000);
      expect(samples).toEqual({ path, encoding: stored, length: wanted.length });
      const size = readFileSync(path).length;
      expect([sampleBytes(samples), decodedBytes(collected(bytes))]).toEqual([size, size]);
      const source = sampleFile(platform, samples);
      expect(Buffer.from((await source.read(0, wanted.length)).buffer).equals(Buffer.from(wanted.buffer))).toBe(true);
      expect(await source.read(7, 1234)).toEqual(wanted.subarray(7, 1234));
      await source.close();
    },
  );

  test('reads a file whose headers are long', () => {
    const extraChunks = [{ id: 'LIST', bytes: new Uint8Array(3_000_001) }];
    const file = wavFile(tone(440, 48000, 0.5), { encoding: 's16', sampleRate: 48000, extraChunks });
    expect(decodeUpload(collected(file, 100_000), join(temporaryFolder(), 'samples')).samples).toHaveLength(8000);
  });

  test('refuses more sound than its budget before it decodes it', () => {
    const header = wavFile([], { encoding: 'u8', sampleRate: 4000, declaredSize: 0xffffffff });
    const file = new Uint8Array(header.length + 4000 * (MAX_AUDIO_SECONDS + 1));
    file.set(header);
    expect(() => decodeUpload(file, '/nowhere')).toThrow(
      expect.objectContaining({ status: 413, code: 'request_too_large', param: 'file' }),
    );
  });

  test.each([
    ['fLaC....', 'FLAC'],
    ['ID3.....', 'MP3'],
    ['OggS....', 'Ogg'],
    ['....ftypM4A ', 'MP4'],
    ['\x1aE\xdf\xa3....', 'WebM'],
    ['\xff\xf1\x50\x80', 'AAC'],
    ['FORM....AIFF', 'AIFF'],
    ['caff....', 'CAF'],
    ['.snd....', 'AU'],
    ['riff\x2e\x91\xcf\x11\xa5\xd6\x28\xdb', 'W64'],
    ['FLV\x01....', 'FLV'],
    ['#!AMR', 'AMR'],
    [`G${'.'.repeat(187)}G`, 'an MPEG transport stream'],
    [`....G${'.'.repeat(191)}G`, 'an MPEG transport stream'],
    [`OggS${'.'.repeat(24)}Speex   `, 'Speex in Ogg'],
    ['\xff\xd8\xff\xe0', 'JPEG'],
    ['\x89PNG....', 'PNG'],
    ['what', 'no known audio format; WAV, MP3, FLAC, Ogg, MP4, WebM, AAC, AIFF, CAF, AU, W64, and FLV files are read'],
  ])('names what %j is', (start, name) => {
    expect(() => decodeUpload(Buffer.from(start, 'latin1'), join(temporaryFolder(), 'samples'))).toThrow(
      expect.objectContaining({ status: 400, code: 'unsupported_audio', message: expect.stringContaining(name) }),
    );
  });
});

describe('a folder for temporary files', () => {
  const mine = (): string[] => readdirSync(tmpdir()).filter((name) => name.includes(`-${process.pid}-`));

  test('is gone when it is closed, with all that is in it', async () => {
    const before = mine();
    const files = new TemporaryFolder();
    const [one, other] = [files.newPath(), files.newPath()];
    expect(mine()).toHaveLength(before.length + 1);
    for (const path of [one, other]) writeFileSync(path, 'x');
    await files.remove(one);
    await files.remove(one);
    expect(readdirSync(join(other, '..'))).toHaveLength(1);
    files.close();
    expect(mine()).toEqual(before);
  });

  test('is made anew when somebody has removed it, and is gone all the same when it is closed', () => {
    const before = mine();
    const files = new TemporaryFolder();
    rmSync(join(files.newPath(), '..'), { recursive: true });
    expect(mine()).toEqual(before);
    writeFileSync(files.newPath(), 'x');
    expect(mine()).toHaveLength(before.length + 1);
    files.close();
    expect(mine()).toEqual(before);
  });

  test.each([
    ['ENOSPC', 'is full'],
    ['EDQUOT', 'has used up its quota'],
    ['EFBIG', 'takes no file of this size'],
    ['ENOENT', 'is missing'],
    ['ENOTDIR', 'is not a folder'],
    ['EACCES', 'may not be written'],
    ['EROFS', 'is read-only'],
  ])('that takes no file (%s) is a 503 to come back from, which says what it is', (code, problem) => {
    const failed = Object.assign(new Error(`${code}: write '/secret'`), { code });
    expect(writeFailure(failed)).toMatchObject({ status: 503, code: 'out_of_memory', headers: { 'retry-after': '5' } });
    expect((writeFailure(failed) as Error).message).toBe(
      `the server's folder for temporary files ${problem}, so the samples of this audio have no place`,
    );
  });

  test('leaves a failure that is no matter of the folder as it is', () => {
    const other = Object.assign(new Error('EBADF: write'), { code: 'EBADF' });
    expect(writeFailure(other)).toBe(other);
  });

  test('is removed at the next start where its process was killed, and no other is', () => {
    const parent = temporaryFolder();
    const host = hostname().replaceAll(/[^\w.]/g, '_');
    // No process has this number: it is beyond what Linux gives out.
    const dead = `parley-${host}-4194305-abc123`;
    const others = [`parley-${host}-${process.ppid}-abc123`, 'parley-elsewhere-4194305-abc123', `parley-${host}-notes`, 'else'];
    for (const name of [dead, `parley-${host}-${process.pid}-abc123`, ...others]) mkdirSync(join(parent, name));
    writeFileSync(join(parent, dead, 'samples'), 'x');
    removeAbandoned(parent);
    expect(readdirSync(parent).sort()).toEqual([...others].sort());
    expect(() => removeAbandoned(join(parent, 'no such folder'))).not.toThrow();
  });
});
