/** An uploaded file to what the transcriber hears: a file of mono samples at 16 kHz. Runs in the codec worker, and holds a piece at a time. */
import { closeSync, openSync, writeSync } from 'node:fs';
import type { SampleFile } from '../../engine/api.ts';
import { Resampler } from '../../engine/audio/resample.ts';
import { isWav, parseWavHeader, wavToMono } from '../../engine/audio/wav.ts';
import type { FileBytes, WavHeader } from '../../engine/audio/wav.ts';
import { HttpError, requestTooLarge } from '../http/errors.ts';

/** Hz of everything the transcription model hears. */
export const TRANSCRIPTION_RATE = 16_000;
/** A small file may hold hours; this bounds memory and work. */
export const MAX_AUDIO_SECONDS = 2 * 60 * 60;

/** First bytes of files people send, to say what they are; name and declared type are not looked at. */
const MAGICS: readonly (readonly [string, RegExp])[] = [
  ['FLAC', /^fLaC/],
  ['MP3', /^(ID3|\xff[\xe2\xe3\xf2\xf3\xfa\xfb])/],
  ['Ogg', /^OggS/],
  ['MP4', /^[\s\S]{4}ftyp/],
  ['WebM', /^\x1aE\xdf\xa3/],
  ['AAC', /^\xff[\xf0\xf1\xf8\xf9]/],
  ['AIFF', /^FORM[\s\S]{4}AIF/],
  ['JPEG', /^\xff\xd8\xff/],
  ['PNG', /^\x89PNG/],
  ['PDF', /^%PDF/],
  ['ZIP', /^PK\x03\x04/],
];

/** Frames decoded at once. */
const PIECE_FRAMES = 1 << 16;

export interface Decoded {
  readonly samples: SampleFile;
  /** What the caller should know of a file that was read all the same, in a sentence each. */
  readonly warnings: readonly string[];
}

/**
 * Decodes by content into a new file at `path`; throws HttpError 400 `unsupported_audio`, `audio_too_short`, 413, 503, or
 * EngineError('invalid_audio').
 */
export function decodeUpload(bytes: FileBytes, path: string): Decoded {
  if (bytes.length === 0) throw refusal('audio_too_short', 'the file is empty');
  const head = bytes.subarray(0, 16);
  if (!isWav(head)) throw refusal('unsupported_audio', `the file must be WAV audio; this is ${nameOf(head)}`);
  const wav = parseWavHeader(bytes);
  if (wav.frames === 0) throw refusal('audio_too_short', 'the file has no samples');
  const seconds = wav.frames / wav.sampleRate;
  if (seconds > MAX_AUDIO_SECONDS) {
    throw requestTooLarge(`the audio is ${Math.round(seconds)} seconds long; at most ${MAX_AUDIO_SECONDS} are transcribed`, 'file');
  }
  writePieces(path, pieces(bytes, wav));
  const { dataBytes, missingBytes } = wav;
  const cut = `the WAV file is cut short: ${dataBytes + missingBytes} bytes of samples declared, ${dataBytes} present and transcribed`;
  return { samples: { path, ...shapeOf(wav) }, warnings: missingBytes > 0 ? [cut] : [] };
}

/** Bytes of the samples that decodeUpload makes of a file, from its headers; 0 for what it will refuse. */
export function decodedBytes(bytes: FileBytes): number {
  try {
    const wav = parseWavHeader(bytes);
    return wav.frames / wav.sampleRate > MAX_AUDIO_SECONDS ? 0 : sampleBytes(shapeOf(wav));
  } catch {
    // Why it cannot be read is said by the decoding.
    return 0;
  }
}

/** Bytes of a file of samples. */
export function sampleBytes({ encoding, length }: Omit<SampleFile, 'path'>): number {
  return length * (encoding === 's16' ? 2 : 4);
}

/** 16-bit samples that are mono at the model's rate stay as they are, at half the bytes. */
const isKept = ({ encoding, channels, sampleRate }: WavHeader): boolean =>
  encoding === 's16' && channels === 1 && sampleRate === TRANSCRIPTION_RATE;

function shapeOf(wav: WavHeader): Omit<SampleFile, 'path'> {
  const length = Math.round((wav.frames * TRANSCRIPTION_RATE) / wav.sampleRate);
  return { encoding: isKept(wav) ? 's16' : 'f32', length };
}

/** The samples of a WAV file as they go into the file for the engine. */
function* pieces(bytes: FileBytes, wav: WavHeader): Generator<Uint8Array> {
  const { from, frames, frameBytes } = wav;
  const resampler = new Resampler(wav.sampleRate, TRANSCRIPTION_RATE);
  for (let first = 0; first < frames; first += PIECE_FRAMES) {
    const end = Math.min(first + PIECE_FRAMES, frames);
    const data = bytes.subarray(from + first * frameBytes, from + end * frameBytes);
    yield isKept(wav) ? data : bytesOf(resampler.push(wavToMono({ ...wav, data, frames: end - first })));
  }
  yield bytesOf(resampler.flush());
}

const bytesOf = ({ buffer, byteOffset, byteLength }: Float32Array): Uint8Array => new Uint8Array(buffer, byteOffset, byteLength);

function writePieces(path: string, all: Iterable<Uint8Array>): void {
  const file = openSync(path, 'wx', 0o600);
  try {
    for (const piece of all) for (let done = 0; done < piece.length;) done += writeSync(file, piece, done);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ENOSPC') throw cause;
    const message = 'the folder for temporary files has no room for the samples of this audio';
    throw new HttpError(503, 'out_of_memory', message, { headers: { 'retry-after': '5' }, cause });
  } finally {
    closeSync(file);
  }
}

function nameOf(bytes: Uint8Array): string {
  const start = String.fromCharCode(...bytes.subarray(0, 16));
  const known = MAGICS.find(([, magic]) => magic.test(start));
  return known ? known[0] : 'no known audio format';
}

const refusal = (code: string, message: string): HttpError => new HttpError(400, code, message, { param: 'file' });
