/** Files that are shown to the reader of another format, and codecs of our own: to the bit, and with lengths that recorders leave open or get wrong. */
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { findWavData, parseWav, wavToMono } from '../../engine/audio/wav.ts';
import { decodeUpload, decodedBytes, sampleBytes } from '../../server/audio/upload/decode.ts';
import { GSM_BLOCK_BYTES, GsmDecoder } from '../../server/audio/upload/gsm.ts';
import { soundTrack } from '../../server/audio/upload/mp4-boxes.ts';
import { splitPacket } from '../../server/audio/upload/opus-packets.ts';
import { likeness } from '../support/likeness.ts';

const FIXTURES = fileURLToPath(new URL('../fixtures/', import.meta.url));
const read = (name: string): Buffer => readFileSync(join(FIXTURES, 'audio-formats', name));
const clip = wavToMono(parseWav(readFileSync(join(FIXTURES, 'parley-transcribe/clip.wav'))));

function heard(bytes: Uint8Array): Float32Array {
  const folder = mkdtempSync(join(tmpdir(), 'unwrap-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const { samples } = decodeUpload(bytes, join(folder, 'samples'));
  const data = readFileSync(samples.path);
  expect(data.length).toBe(sampleBytes(samples));
  return wavToMono({ data, encoding: samples.encoding, channels: 1, frames: samples.length });
}

test('GSM 06.10 is decoded as ffmpeg does, to the bit', () => {
  const file = read('wav-8000-gsm.wav');
  const decoder = new GsmDecoder();
  const hash = createHash('sha256');
  for (let at = findWavData(file).from; at + GSM_BLOCK_BYTES <= file.length; at += GSM_BLOCK_BYTES) {
    const { buffer } = decoder.decode(file.subarray(at, at + GSM_BLOCK_BYTES));
    hash.update(new Uint8Array(buffer));
  }
  // ffmpeg -c:a gsm_ms -i wav-8000-gsm.wav -f s16le - | sha256sum
  expect(hash.digest('hex')).toBe('3e0cf2aa73eef4d3d0611da3a9e7a9415e2a5e68765b071352dd507ab4668d91');
});

describe('a packet of several Opus streams', () => {
  const bytes = (...all: readonly (number | readonly number[])[]): Uint8Array => Uint8Array.from(all.flat());
  const long = Array.from({ length: 300 }, (_, i) => i & 255);
  /** The length of 300 bytes: 252 + 4 * 12. */
  const LONG = [252, 12];

  test.each<readonly [string, Uint8Array, Uint8Array]>([
    ['one frame', bytes(0x10, 3, [7, 8, 9]), bytes(0x10, [7, 8, 9])],
    ['one long frame', bytes(0x10, LONG, long), bytes(0x10, long)],
    ['two equal frames', bytes(0x11, 2, [1, 2, 3, 4]), bytes(0x11, [1, 2, 3, 4])],
    ['two frames', bytes(0x12, 1, 3, [1, 2, 3, 4]), bytes(0x12, 1, [1, 2, 3, 4])],
    ['three equal frames', bytes(0x13, 3, 2, [1, 2, 3, 4, 5, 6]), bytes(0x13, 3, [1, 2, 3, 4, 5, 6])],
    ['three frames', bytes(0x13, 0x83, 1, 2, 3, [1, 2, 3, 4, 5, 6]), bytes(0x13, 0x83, 1, 2, [1, 2, 3, 4, 5, 6])],
    ['padding', bytes(0x13, 0x42, 3, 1, [1, 2], [0, 0, 0]), bytes(0x13, 0x42, 3, [1, 2], [0, 0, 0])],
    ['no sound', bytes(0x10, 0), bytes(0x10)],
  ])('is taken apart: %s', (_, first, wanted) => {
    const last = bytes(0x11, [5, 6, 5, 6]);
    const found = splitPacket(Uint8Array.from([...first, ...first, ...last]), 3);
    expect(found).toEqual([wanted, wanted, last]);
  });

  test('that does not hold what it says is none', () => {
    for (const one of [
      bytes(),
      bytes(0x10),
      bytes(0x10, 9, 1),
      bytes(0x13),
      bytes(0x13, 0x42),
      bytes(0x13, 0x83, 1),
      bytes(0x10, 252),
      bytes(0x10, 1, 5),
    ])
      expect(splitPacket(one, 2), [...one].join()).toBeUndefined();
    expect(splitPacket(bytes(0x10, 9), 1)).toEqual([bytes(0x10, 9)]);
  });
});

describe('a recorder that cannot go back', () => {
  /** A file with these bytes of its own elsewhere. */
  const changed = (name: string, at: number, ...values: readonly number[]): Buffer => {
    const file = Buffer.from(read(name));
    file.set(values, at);
    return file;
  };
  const OPEN = [0xff, 0xff, 0xff, 0xff] as const;

  test.each([
    ['AU', 'au-8000-mulaw.au', 8],
    ['ADPCM', 'wav-8000-adpcm-ms.wav', findWavData(read('wav-8000-adpcm-ms.wav')).from - 4],
    ['GSM', 'wav-8000-gsm.wav', findWavData(read('wav-8000-gsm.wav')).from - 4],
    ['MP3 in WAV', 'wav-22050-mp3.wav', findWavData(read('wav-22050-mp3.wav')).from - 4],
  ])('leaves the length of %s open, and nothing is lost', (_, name, at) => {
    expect(heard(changed(name, at, ...OPEN))).toEqual(heard(read(name)));
  });

  test('leaves the lengths of AIFF and CAF open, and nothing is lost', () => {
    const aiff = Buffer.from(read('aiff-16000-16.aiff'));
    // The file's size, the frames, and the size of the samples.
    for (const at of [4, aiff.indexOf('COMM') + 10, aiff.indexOf('SSND') + 4]) aiff.writeUInt32BE(0, at);
    expect(heard(aiff)).toEqual(heard(read('aiff-16000-16.aiff')));
    const caf = 'caf-16000-16.caf';
    expect(heard(changed(caf, read(caf).indexOf('data') + 4, ...OPEN, ...OPEN))).toEqual(heard(read(caf)));
  });

  test('leaves the lengths of W64 open, and nothing is lost', () => {
    const name = 'w64-48000-stereo.w64';
    const at = read(name).indexOf('data') + 16;
    for (const size of [0, 0xff]) expect(heard(changed(name, at, ...Array<number>(8).fill(size)))).toEqual(heard(read(name)));
  });

  test('ends in the middle of a tag or block, and what came before is heard', () => {
    for (const [name, before] of [
      ['flv-aac.flv', 371],
      ['film.flv', 743],
      ['wav-8000-gsm.wav', 0],
      ['wav-8000-adpcm-ms.wav', 0],
    ] as const) {
      const found = heard(read(name).subarray(0, 0.7 * read(name).length)).subarray(before);
      expect(found.length, name).toBeGreaterThan(0.5 * clip.length);
      expect(likeness(found, clip), name).toBeGreaterThan(0.8);
    }
  });
});

describe('Opus in CAF, as Messages on a phone records it', () => {
  /** The packets of an Ogg file, without its two headers. */
  const packetsOf = (file: Buffer): Buffer[] => {
    const packets: Buffer[] = [];
    const parts: Buffer[] = [];
    for (let at = 0; at < file.length;) {
      const sizes = file.subarray(at + 27, at + 27 + file[at + 26]!);
      at += 27 + sizes.length;
      for (const size of sizes) {
        parts.push(file.subarray(at, at + size));
        at += size;
        if (size < 255) packets.push(Buffer.concat(parts.splice(0)));
      }
    }
    return packets.slice(2);
  };
  const chunk = (name: string, content: Buffer): Buffer => {
    const head = Buffer.from(`${name}01234567`);
    head.writeBigInt64BE(BigInt(content.length), 4);
    return Buffer.concat([head, content]);
  };
  const caf = (channels: number): Buffer => {
    const packets = packetsOf(read('ogg-opus.opus'));
    const description = Buffer.alloc(32);
    description.writeDoubleBE(48_000, 0);
    description.write('opus', 8);
    description.writeUInt32BE(960, 20);
    description.writeUInt32BE(channels, 24);
    const table = Buffer.alloc(24);
    table.writeBigInt64BE(BigInt(packets.length), 0);
    table.writeBigInt64BE(BigInt(960 * packets.length), 8);
    const sizes = packets.flatMap(({ length }) => (length < 128 ? [length] : [0x80 | (length >> 7), length & 127]));
    return Buffer.concat([
      Buffer.from('caff\0\x01\0\0'),
      chunk('desc', description),
      chunk('data', Buffer.concat([Buffer.alloc(4), ...packets])),
      chunk('pakt', Buffer.concat([table, Buffer.from(sizes)])),
    ]);
  };

  test('is heard, though nothing in the file is a head of Opus', () => {
    // 312 samples at 48 kHz come before the sound, which its Ogg file says.
    for (const channels of [1, 2]) expect(likeness(heard(caf(channels)).subarray(104), clip), `${channels}`).toBeGreaterThan(0.8);
  });

  test('of more channels than two is refused, since its packets are laid out in no known way', () => {
    expect(() => heard(caf(6))).toThrow('of a codec that is not read');
  });
});

describe('a codec that is not read is refused by its name', () => {
  const renamed = (name: string, from: string, to: string): Buffer => {
    const file = Buffer.from(read(name));
    for (let at = file.indexOf(from); at >= 0; at = file.indexOf(from, at + 4)) file.write(to, at, 'latin1');
    return file;
  };

  test.each([
    ['AIFF', renamed('aifc-8000-mulaw.aifc', 'ulaw', 'MAC6'), "'MAC6'; PCM, float"],
    ['CAF', renamed('caf-16000-16.caf', 'lpcm', 'samr'), "'samr'; PCM, float"],
    ['CAF', renamed('caf-16000-16.caf', 'lpcm', 'ms\0\x02'), "'ms??'; PCM, float"],
    ['MP4', renamed('m4a-16000-mono.m4a', 'mp4a', 'samr'), 'AMR; AAC, ALAC'],
    ['MP4', renamed('m4a-16000-mono.m4a', 'mp4a', 'what'), "'what'; AAC, ALAC"],
    ['WebM', renamed('mkv-flac.mkv', 'A_FLAC', 'A_WHAT'), "'A_WHAT'; AAC, ALAC"],
  ])('%s', (format, file, name) => {
    expect(() => heard(file)).toThrow(`the sound in the ${format} file is of a codec that is not read: ${name}`);
  });

  test('and a description that has no room for it is damage', () => {
    const file = Buffer.concat([Buffer.from('caff\0\x01\0\0desc'), Buffer.alloc(8), Buffer.from('data'), Buffer.alloc(8)]);
    expect(() => heard(file)).toThrow('the CAF file is damaged or cut short');
  });
});

describe('PCM of a QuickTime film', () => {
  const NAME = 'mov-16000-float.mov';
  /** The film with the bytes of its samples the other way round, and `enda` that says so or does not. */
  const turned = (says: boolean): Buffer => {
    const file = Buffer.from(read(NAME));
    const from = file.indexOf('mdat') + 4;
    file.subarray(from, from + file.readUInt32BE(from - 8) - 8).swap32();
    file.writeUInt16BE(says ? 1 : 0, file.indexOf('enda') + 4);
    return file;
  };

  test('has its highest byte first, unless it says that the lowest is', () => {
    const found = heard(read(NAME));
    expect(likeness(found, clip.subarray(0, found.length))).toBeGreaterThan(0.99);
    expect(heard(turned(true))).toEqual(found);
    expect(heard(turned(false))).not.toEqual(found);
  });

  test('has a description with or without boxes', () => {
    const file = Buffer.from(read(NAME));
    // Its boxes do not count: the description ends behind its own fields.
    file.writeUInt32BE(52, file.indexOf('fl32') - 4);
    expect(heard(file)).toEqual(heard(read(NAME)));
  });
});

describe('PCM of an MP4 file', () => {
  const NAME = 'mp4-16000-pcm.mp4';
  /** The film with other bits, bytes of its samples, or tables. */
  const changed = (change: (file: Buffer) => void): Buffer => {
    const file = Buffer.from(read(NAME));
    change(file);
    return file;
  };
  const field = (file: Buffer, box: string, at: number): number => file.indexOf(box) + 4 + at;

  test('is heard to the bit, in either order', () => {
    const found = heard(read(NAME));
    expect(found).toEqual(clip.subarray(0, found.length));
    const turned = changed((file) => {
      const from = file.indexOf('mdat') + 4;
      file.subarray(from, from + file.readUInt32BE(from - 8) - 8).swap16();
      file[field(file, 'pcmC', 4)] = 0;
    });
    expect(heard(turned)).toEqual(found);
  });

  test('is heard as the edit list says', () => {
    // One edit that begins a quarter of a second in, and lasts a tenth.
    const cut = changed((file) => {
      file.writeUInt32BE(1600, field(file, 'elst', 8));
      file.writeUInt32BE(4000, field(file, 'elst', 12));
    });
    expect(heard(cut)).toEqual(clip.subarray(4000, 5600));
  });

  test('is heard of thousands of fragments, which nobody looks at before it is decoded', () => {
    const file = read('mp4-8000-float-fragments.mp4');
    const second = file.indexOf('moof', file.indexOf('mdat')) - 4;
    const fragment = file.subarray(second, file.indexOf('moof', second + 8) - 4);
    const long = Buffer.concat([file.subarray(0, file.indexOf('moof') - 4), ...Array<Buffer>(3000).fill(fragment)]);
    let looks = 0;
    const bytes = decodedBytes({ length: long.length, subarray: (from, to) => (looks++, long.subarray(from, to)) });
    expect(looks).toBeLessThan(1000);
    const { length } = heard(long);
    // Each has 1,024 samples at 8 kHz.
    expect(length).toBe(3000 * 2048);
    expect(bytes).toBeGreaterThanOrEqual(sampleBytes({ encoding: 'f32', length }));
  });

  test('makes no hours of a small file whose chunks share their bytes', () => {
    const bomb = changed((file) => file.writeUInt32BE(0x7fff_ffff, field(file, 'stsc', 12)));
    expect(heard(bomb).length).toBeLessThan(read(NAME).length);
  });
});

test('an MP4 file of nothing but tracks does not hold up the thread that looks for its sound', () => {
  const box = (type: string, ...parts: readonly Uint8Array[]): Buffer => {
    const head = Buffer.alloc(8);
    head.writeUInt32BE(8 + parts.reduce((sum, { length }) => sum + length, 0));
    head.write(type, 4, 'latin1');
    return Buffer.concat([head, ...parts]);
  };
  const free = Array<Buffer>(998).fill(box('free'));
  const track = box('trak', ...free, box('mdia', ...free, box('hdlr', Buffer.from('\0\0\0\0\0\0\0\0vide'))));
  const file = box('moov', ...Array<Buffer>(1000).fill(track));
  let looks = 0;
  const counted = { length: file.length, subarray: (from: number, to?: number) => (looks++, file.subarray(from, to)) };
  expect(soundTrack(counted)).toBeUndefined();
  expect(looks).toBeLessThan(300_000);
});

describe('what no reader takes is refused with what is read', () => {
  /** An FLV file with one tag of sound. */
  const flv = (...tag: readonly number[]): Uint8Array =>
    Uint8Array.from([0x46, 0x4c, 0x56, 1, 4, 0, 0, 0, 9, 0, 0, 0, 0, 8, 0, 0, tag.length, 0, 0, 0, 0, 0, 0, 0, ...tag, 0, 0, 0, 0]);
  const wav = (tag: number): Uint8Array => {
    const file = Buffer.from(read('wav-8000-gsm.wav'));
    file.writeUInt16LE(tag, 20);
    return file;
  };
  const au = (encoding: number, channels = 1): Uint8Array => {
    const file = Buffer.from(read('au-8000-mulaw.au'));
    file.writeUInt32BE(encoding, 12);
    file.writeUInt32BE(channels, 20);
    return file;
  };

  test.each<readonly [string, Uint8Array, string]>([
    ['G.726 in WAV', wav(0x45), 'WAV encoding 69 is not read; PCM, float, A-law, mu-law, MS ADPCM, IMA ADPCM, GSM 06.10, and MPEG are'],
    ['G.721 in AU', au(23), 'the AU file has encoding 23, which is not read; PCM, float, A-law and mu-law are'],
    ['AU without channels', au(1, 0), 'the AU file declares 0 channels; 1 to 32 are read'],
    ['half an AU header', read('au-8000-mulaw.au').subarray(0, 20), 'the AU file is cut short in its header'],
    ['W64 without samples', read('w64-48000-stereo.w64').subarray(0, 90), 'the W64 file has no samples behind a description of them'],
    [
      'Speex in FLV',
      flv(0xb6, 1, 2),
      'the sound in the FLV file is of a codec that is not read: Speex; MP3, AAC, PCM, A-law and mu-law are',
    ],
    [
      'AAC in FLV without its configuration',
      flv(0xaf, 1, 2),
      'the sound in the FLV file is of a codec that is not read: AAC of an unknown kind; MP3, AAC, PCM, A-law and mu-law are',
    ],
    ['FLV of pictures', flv(), 'the FLV file has no sound'],
  ])('%s', (_, bytes, message) => {
    expect(() => heard(bytes)).toThrow(expect.objectContaining({ status: 400, code: 'unsupported_audio', param: 'file', message }));
  });
});
