/** Reads WAV files from disk piece by piece; only the headers are read until their length is known. */
import { Downmix } from '../../../engine/audio/downmix.ts';
import { isPlaceholder, isWav, parseWav, wavToMono } from '../../../engine/audio/wav.ts';
import type { WavFile } from '../../../engine/audio/wav.ts';

/** A WAV file whose samples are still on disk. */
export interface WavBlob {
  readonly file: Blob;
  /** The file's format, without its samples. */
  readonly format: Omit<WavFile, 'data' | 'frames' | 'missingBytes'>;
  readonly frames: number;
  /** Byte offset of the samples, and bytes per frame. */
  readonly from: number;
  readonly frameBytes: number;
  /** Byte offset behind the samples. */
  readonly end: number;
}

const RIFF_BYTES = 12;
/** The longest fmt chunk in use has 40 bytes. */
const LONGEST_FORMAT = 1024;
/** Byte offset, in a fmt chunk with its header, of the number of bytes per frame. */
const BLOCK_ALIGN = 20;
/** A data chunk whose length is unknown. */
const EMPTY_DATA = Uint8Array.from('data\0\0\0\0', (character) => character.charCodeAt(0));

/** True when the file begins as a WAV file does. */
export async function isWavBlob(file: Blob): Promise<boolean> {
  return isWav(await bytesOf(file, 0, RIFF_BYTES));
}

/**
 * Reads the headers of a WAV file. Throws EngineError('invalid_audio') when it is not WAV, or in an encoding that is not supported. A
 * truncated file has the frames that exist.
 */
export async function openWavBlob(file: Blob): Promise<WavBlob> {
  const riff = await bytesOf(file, 0, RIFF_BYTES);
  let format = new Uint8Array(0);
  for (let at = RIFF_BYTES; at + 8 <= file.size;) {
    const header = await bytesOf(file, at, at + 8);
    const id = String.fromCharCode(...header.subarray(0, 4));
    const size = new DataView(header.buffer).getUint32(4, true);
    const body = at + 8;
    if (id === 'fmt ') format = await bytesOf(file, at, body + Math.min(size, LONGEST_FORMAT));
    if (id === 'data') {
      const { encoding, sampleRate, channels } = parseWav(joined(riff, format, EMPTY_DATA));
      // The reader has checked that the declared frame is what the format makes it.
      const frameBytes = new DataView(format.buffer).getUint16(BLOCK_ALIGN, true);
      const present = file.size - body;
      const bytes = isPlaceholder(size) ? present : Math.min(size, present);
      const frames = Math.floor(bytes / frameBytes);
      return { file, format: { encoding, sampleRate, channels }, frames, from: body, frameBytes, end: body + bytes };
    }
    at = body + size + (size & 1);
  }
  // Throws: without samples, the engine's own reader says what is missing.
  parseWav(joined(riff, format));
  throw new Error('the WAV file has no data chunk');
}

/** Reads the headers of a WAV file and of those that were joined to it, one behind the other. Throws as `openWavBlob` does. */
export async function openWavBlobs(file: Blob): Promise<readonly WavBlob[]> {
  const wavs: WavBlob[] = [];
  for (let next: Blob | undefined = file; next;) {
    const wav: WavBlob = await openWavBlob(next);
    wavs.push(wav);
    next = await wavBehind(wav);
  }
  return wavs;
}

/** What begins as a WAV file does behind the samples of another and its last chunks. */
async function wavBehind({ file, end }: WavBlob): Promise<Blob | undefined> {
  for (let at = end; at + RIFF_BYTES <= file.size;) {
    const rest = file.slice(at);
    if (await isWavBlob(rest)) return rest;
    // Behind an odd number of bytes comes one of padding, which some writers forget.
    if (at % 2 === 1) {
      at++;
      continue;
    }
    const header = await bytesOf(rest, 0, 8);
    // Nothing that has a length.
    if (header[0] === 0) break;
    const size = new DataView(header.buffer).getUint32(4, true);
    at += 8 + size + (size & 1);
  }
  return undefined;
}

/** Mono samples of the frames from `first` to before `end`. All pieces of a file have the same `mix`. */
export async function readFrames(
  { file, format, from, frameBytes }: WavBlob,
  first: number,
  end: number,
  mix = new Downmix(),
): Promise<Float32Array> {
  const data = await bytesOf(file, from + first * frameBytes, from + end * frameBytes);
  return wavToMono({ ...format, frames: Math.floor(data.length / frameBytes), data }, mix);
}

async function bytesOf(file: Blob, from: number, to: number): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await file.slice(from, to).arrayBuffer());
}

function joined(...parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
