/** Sound files: good WAV of every encoding, and what is left of it after a mutation. */
import { tone, wavFile } from '../support/wav-file.ts';
import { between, chance, choose, logBetween, randomBytes } from './rng.ts';
import type { Rng } from './rng.ts';

interface Sound {
  readonly name: string;
  readonly bytes: Buffer;
}

const ENCODINGS = ['u8', 's16', 's24', 's32', 'f32', 'f64'] as const;
const RATES = [8000, 11025, 16000, 22050, 24000, 44100, 48000, 96000];

/** A short tone. */
export function goodWav(rng: Rng): Sound {
  const [encoding, sampleRate, channels] = [choose(rng, ENCODINGS), choose(rng, RATES), between(rng, 1, 3)];
  const samples = tone(220 * between(rng, 1, 6), sampleRate * channels, 0.1 + rng.uniform() * 0.6);
  const bytes = wavFile(samples, { encoding, sampleRate, channels, extensible: chance(rng, 0.3) });
  return { name: `${encoding} at ${sampleRate} Hz`, bytes: Buffer.from(bytes) };
}

/** Samples that are no sound. */
function oddSamples(rng: Rng): Sound {
  const encoding = choose(rng, ['f32', 'f64'] as const);
  const value = choose(rng, [NaN, Infinity, -Infinity, 1e38, -3e38, 1e-40, -0]);
  const samples = Float64Array.from({ length: between(rng, 1, 20_000) }, () => (chance(rng, 0.5) ? value : rng.uniform() - 0.5));
  return { name: `${encoding} with ${value}`, bytes: Buffer.from(wavFile(samples, { encoding, sampleRate: 16000 })) };
}

/** A field of the header with an absurd value. Offsets are those of a WAV file without extra chunks. */
function oddHeader(rng: Rng): Sound {
  const { bytes } = goodWav(rng);
  const [name, at, size, values] = choose<readonly [string, number, 2 | 4, readonly number[]]>(rng, [
    ['RIFF size', 4, 4, [0, 1, 0xffffffff, 0x80000000]],
    ['format size', 16, 4, [0, 1, 2, 15, 17, 18, 0xffffffff, 0x7fffffff]],
    ['format tag', 20, 2, [0, 2, 6, 7, 0x11, 0x55, 0xfffe, 0xffff]],
    ['channels', 22, 2, [0, 2, 8, 255, 0xffff]],
    ['rate', 24, 4, [0, 1, 2, 7, 50, 200_000, 1e6, 0x7fffffff, 0xffffffff]],
    ['bytes a second', 28, 4, [0, 0xffffffff]],
    ['block size', 32, 2, [0, 1, 3, 0xffff]],
    ['bits', 34, 2, [0, 1, 4, 7, 12, 33, 64, 128, 0xffff]],
    ['data size', 40, 4, [0, 1, 0x7fffffff, 0xffffffff, 0xfffffffe]],
  ]);
  const value = choose(rng, values);
  if (size === 2) bytes.writeUInt16LE(value, at);
  else bytes.writeUInt32LE(value, at);
  return { name: `${name} ${value}`, bytes };
}

/** Chunks that are missing, too many, or in another order. */
function oddChunks(rng: Rng): Sound {
  const { bytes } = goodWav(rng);
  const [riff, format, data] = [bytes.subarray(0, 12), bytes.subarray(12, 36), bytes.subarray(36)];
  const chunk = (id: string, declared: number, body = Buffer.alloc(0)): Buffer => {
    const head = Buffer.alloc(8, id, 'latin1');
    head.writeUInt32LE(declared >>> 0, 4);
    return Buffer.concat([head, body]);
  };
  const [name, pieces] = choose<readonly [string, readonly Buffer[]]>(rng, [
    ['no format', [riff, data]],
    ['no data', [riff, format]],
    ['data before format', [riff, data, format]],
    ['data twice', [riff, format, data, data]],
    ['format twice', [riff, format, format, data]],
    ['many empty chunks', [riff, ...Array.from({ length: logBetween(rng, 10, 20_000) }, () => chunk('junk', 0)), format, data]],
    ['a chunk longer than the file', [riff, chunk('LIST', 0xffffffff), format, data]],
    ['a chunk of odd length', [riff, chunk('LIST', 3, Buffer.alloc(4)), format, data]],
    ['only its first bytes', [bytes.subarray(0, between(rng, 0, 44))]],
    ['a long tail', [bytes, Buffer.alloc(logBetween(rng, 1, 2_000_000))]],
  ]);
  return { name, bytes: Buffer.concat(pieces) };
}

/** Other containers, by their first bytes. */
function otherContainer(rng: Rng): Sound {
  const [name, magic] = choose<readonly [string, Buffer]>(rng, [
    ['flac', Buffer.from('fLaC')],
    ['ogg', Buffer.from('OggS')],
    ['mp3', Buffer.from([0x49, 0x44, 0x33, 4, 0, 0])],
    ['mp4', Buffer.from('\0\0\0\x20ftypM4A ')],
    ['webm', Buffer.from([0x1a, 0x45, 0xdf, 0xa3])],
    ['big-endian WAV', Buffer.from('RIFX\0\0\0\0WAVE')],
    ['64-bit WAV', Buffer.from('RF64\xff\xff\xff\xffWAVEds64', 'latin1')],
    ['aiff', Buffer.from('FORM\0\0\0\0AIFF')],
    ['zip', Buffer.from('PK\x03\x04')],
    ['nothing', Buffer.alloc(0)],
  ]);
  return { name, bytes: Buffer.concat([magic, randomBytes(rng, logBetween(rng, 1, 5000))]) };
}

/** Any sound file. */
export function anySound(rng: Rng): Sound {
  const sound = choose(rng, [goodWav, oddSamples, oddHeader, oddHeader, oddChunks, otherContainer, flipped, cutShort])(rng);
  return { ...sound, name: `wav: ${sound.name}` };
}

function flipped(rng: Rng): Sound {
  const { bytes } = goodWav(rng);
  const reach = chance(rng, 0.7) ? 60 : bytes.length;
  for (let i = between(rng, 1, 12); i > 0; i--) bytes[rng.integer(Math.min(reach, bytes.length))] = rng.integer(256);
  return { name: 'bytes changed', bytes };
}

function cutShort(rng: Rng): Sound {
  const { name, bytes } = goodWav(rng);
  return { name: `${name}, cut`, bytes: bytes.subarray(0, rng.integer(bytes.length)) };
}
