/** Decodes an upload into a file of mono samples at 16 kHz, which the transcriber reads. Runs in the codec worker, and holds one piece at a time. */
import { closeSync, openSync, writeSync } from 'node:fs';
import type { SampleFile } from '../../../engine/api.ts';
import { Resampler } from '../../../engine/audio/resample.ts';
import { TRANSCRIPTION_RATE } from '../../../engine/audio/sample-source.ts';
import { Downmix } from '../../../engine/audio/downmix.ts';
import { MAX_RATE, MIN_RATE, floatToPcm16, parseWavHeader, wavToMono } from '../../../engine/audio/wav.ts';
import type { FileBytes, WavHeader } from '../../../engine/audio/wav.ts';
import { EngineError } from '../../../engine/errors.ts';
import { HttpError, requestTooLarge } from '../../http/errors.ts';
import { writeFailure } from '../temporary-folder.ts';
import { ContainerError, decodeContainer } from './containers.ts';
import type { Damage, Piece } from './containers.ts';
import { GSM_BLOCK_BYTES, GSM_RATE, GsmDecoder } from './gsm.ts';
import { behindSamples, partsOf } from './repair/joined.ts';
import { cutOut } from './repair/part.ts';
import type { Part } from './repair/part.ts';
import { READ_FORMATS, formatOf, nameOf } from './sniff.ts';
import type { FileFormat, KnownFile } from './sniff.ts';
import { UnreadError, soundOf } from './unwrap.ts';
import type { Sound } from './unwrap.ts';

/** Longest sound of any file. A small file may hold hours; this bounds memory and work. */
export const MAX_AUDIO_SECONDS = 2 * 60 * 60;

/**
 * The longest sound that a compressed file may decode to: ten minutes, and one second more per 500 bytes (4 kbit/s). No speech codec has a lower
 * rate, so a longer sound is silence or a decompression bomb. Without this bound a file of a few bytes would need room for hours.
 */
const FREE_SECONDS = 600;
const BYTES_PER_SECOND = 500;
/** Most milliseconds that decoding one file may take. */
const BUDGET_MS = 600_000;
/** Most changes of the rate within a file, each of which costs the design of a filter. */
const MAX_CHANGES = 20;

/** Longest sound, in seconds, that bytes of no known meaning behind the samples may be without being mentioned. */
const NOTES_SECONDS = 0.5;

/** Frames that are decoded at a time. */
const PIECE_FRAMES = 1 << 16;

/** A decoded upload. */
export interface Decoded {
  readonly samples: SampleFile;
  /** Problems of a file that could be read nevertheless, one sentence each. */
  readonly warnings: readonly string[];
}

/** `now` is a clock in milliseconds; `onProgress` is called now and then while a file is decoded. */
export interface DecodeOptions {
  readonly now?: () => number;
  readonly onProgress?: () => void;
}

/**
 * Decodes an upload, whose format is detected from its content, into a new file at `path`. Throws HttpError 400 `unsupported_audio`, `audio_too_short`, 413, 503,
 * or EngineError('invalid_audio').
 */
export function decodeUpload(bytes: FileBytes, path: string, options: DecodeOptions = {}): Decoded {
  if (bytes.length === 0) throw refusal('audio_too_short', 'the file is empty');
  const known = formatOf(bytes);
  if (!known) throw refusal('unsupported_audio', `the file is ${nameOf(bytes)}; ${READ_LIST} files are read`);
  const { format } = known;
  const sounds = soundsIn(known, bytes);
  const [first] = sounds.all;
  return first?.kind === 'wav' && sounds.parts === 1
    ? decodeWav(format, first.bytes, path)
    : decodeOther({ format, sounds, fileBytes: bytes.length }, path, options);
}

/** The sound of a file, and those of the files that were joined to it. */
interface Sounds {
  readonly all: readonly Sound[];
  /** Number of files, of which some may be too damaged to have a sound. */
  readonly parts: number;
  readonly isDamaged: boolean;
}

function soundsIn(known: KnownFile, file: FileBytes): Sounds {
  const all: Sound[] = [];
  const parts = orRefused(() => partsIn(known, file));
  for (const { bytes } of parts) {
    try {
      all.push(orRefused(() => soundOf({ format: known.format, at: 0 }, bytes)));
    } catch (error) {
      // A joined file may be cut off in its headers.
      if (!(error instanceof EngineError) || all.length === 0) throw error;
    }
  }
  return { all, parts: parts.length, isDamaged: all.length < parts.length || parts.some(({ isDamaged }) => isDamaged) };
}

function orRefused<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof UnreadError ? refusal('unsupported_audio', error.message, error) : error;
  }
}

function partsIn({ format, at }: KnownFile, file: FileBytes): readonly Part[] {
  const bytes = at === 0 ? file : cutOut(file, at, file.length);
  // The samples of an MP4 file are collected by its tables, which lead anywhere.
  const isWhole = format === 'MP4' && soundOf({ format, at: 0 }, bytes, true).kind === 'wav';
  return isWhole ? [{ bytes, isDamaged: false }] : partsOf(format, bytes);
}

function decodeWav(format: FileFormat, bytes: FileBytes, path: string): Decoded {
  const wav = parseWavHeader(bytes);
  if (wav.frames === 0) throw noSamples();
  const seconds = wav.frames / wav.sampleRate;
  if (seconds > MAX_AUDIO_SECONDS) {
    throw requestTooLarge(`the audio is ${Math.round(seconds)} seconds long; at most ${MAX_AUDIO_SECONDS} are transcribed`, 'file');
  }
  writePieces(path, wavPieces(bytes, wav));
  const { dataBytes, missingBytes, sampleRate, frameBytes } = wav;
  const { unread } = behindSamples(bytes);
  const cut = `the ${format} file is cut short: ${dataBytes + missingBytes} bytes of samples declared, ${dataBytes} present and transcribed`;
  const left = `the ${format} file declares ${dataBytes} bytes of samples, which were transcribed; ${unread} bytes behind them were not`;
  // Programs append all kinds of notes, which are shorter than this.
  const isLeft = unread / frameBytes > NOTES_SECONDS * sampleRate;
  return { samples: { path, ...decodedShapeOf(wav) }, warnings: [...(missingBytes > 0 ? [cut] : []), ...(isLeft ? [left] : [])] };
}

interface Packed {
  /** Format of the file, which may differ from the one as which its sound is decoded. */
  readonly format: FileFormat;
  readonly sounds: Sounds;
  readonly fileBytes: number;
}

/** Decodes all but plain samples. The result is stored in 16 bits, which is precise enough for speech. */
function decodeOther({ format, sounds, fileBytes }: Packed, path: string, options: DecodeOptions): Decoded {
  const tick = budget(format, options);
  const damage: Damage = {
    packets: 0,
    isCut: sounds.isDamaged || sounds.all.some((sound) => sound.kind !== 'wav' && sound.isCut === true),
  };
  let length = 0;
  const limit = maxSecondsOf(fileBytes) * TRANSCRIPTION_RATE;
  const counted = function* (): Generator<Uint8Array> {
    for (const samples of resampled(format, piecesOf(sounds.all, tick, damage))) {
      length += samples.length;
      if (length > limit) throw tooLong(fileBytes);
      yield floatToPcm16(samples);
    }
  };
  try {
    writePieces(path, counted());
  } catch (error) {
    throw error instanceof ContainerError ? refusal('unsupported_audio', sentenceOf(format, error), error) : error;
  }
  if (length === 0) throw damage.packets > 0 ? refusal('unsupported_audio', nothingIn(format)) : noSamples();
  return { samples: { path, encoding: 's16', length }, warnings: warningsOf(format, damage) };
}

/** Decodes sounds that follow one another. Of several, one that cannot be decoded is noted as damage. */
function* piecesOf(sounds: readonly Sound[], tick: () => void, damage: Damage): Generator<Piece> {
  let failure: ContainerError | undefined;
  let failures = 0;
  for (const sound of sounds) {
    try {
      if (sound.kind === 'packed') yield* decodeContainer({ ...sound, tick }, damage);
      else if (sound.kind === 'gsm') yield* gsmPieces(sound.bytes, tick);
      else yield* samplePieces(sound.bytes, tick, damage);
    } catch (error) {
      if (!(error instanceof ContainerError)) throw error;
      failure ??= error;
      failures++;
      damage.isCut = true;
    }
  }
  if (failure && failures === sounds.length) throw failure;
}

/** The samples of one of several WAV files. */
function* samplePieces(bytes: FileBytes, tick: () => void, damage: Damage): Generator<Piece> {
  const wav = parseWavHeader(bytes);
  const mix = new Downmix();
  damage.isCut ||= wav.missingBytes > 0;
  for (const block of wavBlocks(bytes, wav)) {
    tick();
    yield { samples: wavToMono({ ...wav, ...block }, mix), rate: wav.sampleRate };
  }
}

function* gsmPieces(bytes: FileBytes, tick: () => void): Generator<Piece> {
  const decoder = new GsmDecoder();
  for (let at = 0; at + GSM_BLOCK_BYTES <= bytes.length; at += GSM_BLOCK_BYTES) {
    tick();
    const samples = Float32Array.from(decoder.decode(bytes.subarray(at, at + GSM_BLOCK_BYTES)), (value) => value / 0x8000);
    yield { samples, rate: GSM_RATE };
  }
}

/** Returns a function to call at every step, which throws once the file has taken BUDGET_MS. */
function budget(format: FileFormat, { now = () => performance.now(), onProgress }: DecodeOptions): () => void {
  const end = now() + BUDGET_MS;
  return () => {
    if (now() > end) throw requestTooLarge(`the ${format} file takes longer than ${BUDGET_MS / 1000} seconds to decode`, 'file');
    onProgress?.();
  };
}

/** Resamples the pieces of a file to the model's rate. */
function* resampled(format: FileFormat, all: Iterable<Piece>): Generator<Float32Array> {
  // The first rate is no change.
  let changes = -1;
  let current = 0;
  let resampler: Resampler | undefined;
  for (const { samples, rate } of all) {
    if (rate !== current) {
      if (resampler) yield resampler.flush();
      if (rate < MIN_RATE || rate > MAX_RATE) {
        throw refusal(
          'unsupported_audio',
          `the ${format} file has sound with a sample rate of ${rate} Hz; ${MIN_RATE} to ${MAX_RATE} are read`,
        );
      }
      if (++changes > MAX_CHANGES) {
        const advice = 'send what was joined as several files, or with one rate';
        throw refusal('unsupported_audio', `the sample rate changes more than ${MAX_CHANGES} times within the ${format} file; ${advice}`);
      }
      resampler = new Resampler(rate, TRANSCRIPTION_RATE);
      current = rate;
    }
    yield resampler!.push(samples);
  }
  if (resampler) yield resampler.flush();
}

/** Upper bound of the bytes of samples that decodeUpload makes of a file; 0 for one that it will refuse. */
export function decodedBytes(bytes: FileBytes): number {
  const known = formatOf(bytes);
  if (!known) return 0;
  const most = sampleBytes({ encoding: 's16', length: maxSecondsOf(bytes.length) * TRANSCRIPTION_RATE });
  // An FLV file's sound is copied out of its tags.
  if (known.format === 'FLV') return most + bytes.length;
  try {
    const sound = soundOf(known, bytes, true);
    if (sound.kind !== 'wav' || (known.format !== 'MP4' && partsOf(known.format, bytes).length > 1)) return most;
    const wav = parseWavHeader(sound.bytes);
    const { encoding, length } = decodedShapeOf(wav);
    const longest = MAX_AUDIO_SECONDS * TRANSCRIPTION_RATE;
    // The quick estimate of an MP4 file may be too large.
    return length > longest && known.format !== 'MP4' ? 0 : sampleBytes({ encoding, length: Math.min(length, longest) });
  } catch {
    // The decoding will report why the file cannot be read.
    return 0;
  }
}

/** Longest sound, in seconds, that a compressed file of this many bytes may hold. */
const maxSecondsOf = (bytes: number): number => Math.min(MAX_AUDIO_SECONDS, FREE_SECONDS + Math.ceil(bytes / BYTES_PER_SECOND));

const tooLong = (bytes: number): HttpError =>
  requestTooLarge(`the audio is longer than ${maxSecondsOf(bytes)} seconds, the most that a file of ${bytes} bytes is decoded to`, 'file');

const READ_LIST = new Intl.ListFormat('en', { type: 'conjunction' }).format(READ_FORMATS);
const READ_CODECS = 'AAC, ALAC, FLAC, MP3, Opus, PCM, and Vorbis';
const noSamples = (): HttpError => refusal('audio_too_short', 'the file has no samples');

function sentenceOf(format: FileFormat, { problem, codec }: ContainerError): string {
  if (codec !== undefined) return `the sound in the ${format} file is of a codec that is not read: ${codec}; ${READ_CODECS} are`;
  if (problem === 'no-track') return `the ${format} file has no sound track of a codec that is read; ${READ_CODECS} are`;
  if (problem === 'no-codec') return `the sound in the ${format} file is of a codec that is not read; ${READ_CODECS} are`;
  return nothingIn(format);
}

const nothingIn = (format: FileFormat): string => `the ${format} file is damaged or cut short: nothing in it can be decoded`;

function warningsOf(format: FileFormat, { packets, isCut }: Damage): string[] {
  const left = packets === 1 ? '1 packet was' : `${packets} packets were`;
  return [
    ...(isCut ? [`the ${format} file is cut short or damaged: it is transcribed as far as it could be read`] : []),
    ...(packets > 0 ? [`the ${format} file is damaged: ${left} left out`] : []),
  ];
}

/** Size of a file of samples in bytes. */
export function sampleBytes({ encoding, length }: Omit<SampleFile, 'path'>): number {
  return length * (encoding === 's16' ? 2 : 4);
}

/** Whether a WAV file's samples are stored unchanged, at half the bytes of f32: 16-bit mono at the model's rate. */
const isKept = ({ encoding, channels, sampleRate }: WavHeader): boolean =>
  encoding === 's16' && channels === 1 && sampleRate === TRANSCRIPTION_RATE;

function decodedShapeOf(wav: WavHeader): Omit<SampleFile, 'path'> {
  const length = Math.round((wav.frames * TRANSCRIPTION_RATE) / wav.sampleRate);
  return { encoding: isKept(wav) ? 's16' : 'f32', length };
}

/** Yields the samples of a WAV file in the encoding of the file for the engine. */
function* wavPieces(bytes: FileBytes, wav: WavHeader): Generator<Uint8Array> {
  const resampler = new Resampler(wav.sampleRate, TRANSCRIPTION_RATE);
  const mix = new Downmix();
  for (const block of wavBlocks(bytes, wav)) yield isKept(wav) ? block.data : bytesOf(resampler.push(wavToMono({ ...wav, ...block }, mix)));
  yield bytesOf(resampler.flush());
}

interface WavBlock {
  readonly data: Uint8Array;
  readonly frames: number;
}

/** Yields the samples of a WAV file as it has them, PIECE_FRAMES at a time. */
function* wavBlocks(bytes: FileBytes, { from, frames, frameBytes }: WavHeader): Generator<WavBlock> {
  for (let first = 0; first < frames; first += PIECE_FRAMES) {
    const end = Math.min(first + PIECE_FRAMES, frames);
    yield { data: bytes.subarray(from + first * frameBytes, from + end * frameBytes), frames: end - first };
  }
}

const bytesOf = ({ buffer, byteOffset, byteLength }: Float32Array): Uint8Array => new Uint8Array(buffer, byteOffset, byteLength);

function writePieces(path: string, all: Iterable<Uint8Array>): void {
  try {
    const file = openSync(path, 'wx', 0o600);
    try {
      for (const piece of all) for (let done = 0; done < piece.length;) done += writeSync(file, piece, done);
    } finally {
      closeSync(file);
    }
  } catch (cause) {
    throw writeFailure(cause);
  }
}

const refusal = (code: string, message: string, cause?: unknown): HttpError => new HttpError(400, code, message, { param: 'file', cause });
