/** Reads RIFF/WAVE files, and writes the 16-bit mono ones that speech is answered with. */
import { EngineError } from '../errors.ts';
import { Downmix } from './downmix.ts';

/** Encodings of samples that are read. `alaw` and `mulaw` are G.711, in which telephone calls are recorded. */
export type WavEncoding = 'u8' | 's16' | 's24' | 's32' | 'f32' | 'f64' | 'alaw' | 'mulaw';

/** A parsed WAV file. */
export interface WavFile {
  readonly encoding: WavEncoding;
  /** Sample rate in Hz. */
  readonly sampleRate: number;
  readonly channels: number;
  /** Samples per channel. */
  readonly frames: number;
  /** Interleaved samples as the file has them. */
  readonly data: Uint8Array;
  /** Bytes of samples that the file declares but lacks, because its end was cut off. */
  readonly missingBytes: number;
}

const PCM = 1;
const FLOAT = 3;
const A_LAW = 6;
const MU_LAW = 7;
/** Mu-law's bias of 16-bit samples, with which each segment begins at a power of two. */
const MU_LAW_BIAS = 0x84;
const EXTENSIBLE = 0xfffe;
/** Bytes of a fmt chunk: the least, and those of the longest one known (MS ADPCM). */
const FORMAT_SIZE = 16;
const FORMAT_BYTES = 64;
const MAX_CHANNELS = 32;
/** Sample rates that are read, in Hz, whatever the file format. */
export const MIN_RATE = 4_000;
export const MAX_RATE = 384_000;
/** Most chunks before the samples. Real files have a handful; one of nothing but empty chunks would block its reader. */
const MAX_CHUNKS = 1_000;

/** Whether a size is a placeholder of a writer that cannot seek: 0, or a number near 2^31 or 2^32 (sox: 0x7ffff000 and up; ffmpeg, OpenAI: 0xffffffff). */
export const isPlaceholder = (size: number): boolean => size === 0 || (size >= 0x7fff_f000 && size <= 0x7fff_ffff) || size >= 0xffff_f000;

/** RF64's placeholder of a size that its ds64 chunk has in 64 bits. */
const LONG = 0xffff_ffff;

const invalid = (message: string): EngineError => new EngineError('invalid_audio', message);

/** Whether the bytes begin like a WAV file (RIFF, or RF64 for files beyond 4 GiB). */
export function isWav(bytes: Uint8Array): boolean {
  const magic = latin1(bytes, 0, 4);
  return (magic === 'RIFF' || magic === 'RF64') && latin1(bytes, 8, 12) === 'WAVE';
}

/** Bytes of a file, which need not be contiguous. */
export interface FileBytes {
  readonly length: number;
  /** The bytes [from, to), by default up to the end; copied if they are not contiguous. */
  subarray(from: number, to?: number): Uint8Array;
}

/** Format of a WAV file, and where its samples are. */
export interface WavHeader extends Omit<WavFile, 'data'> {
  /** Offset of the samples, their size, and the size of a frame, in bytes. */
  readonly from: number;
  readonly dataBytes: number;
  readonly frameBytes: number;
}

/** Parses a WAV file. Throws EngineError('invalid_audio') if it is no WAV file, ends within its headers, or has an unknown encoding. */
export function parseWav(bytes: Uint8Array): WavFile {
  const { encoding, sampleRate, channels, frames, from, dataBytes, missingBytes } = parseWavHeader(bytes);
  return { encoding, sampleRate, channels, frames, missingBytes, data: bytes.subarray(from, from + dataBytes) };
}

/** Parses a WAV file's headers like parseWav, without a view of its samples, whose bytes need not be contiguous. */
export function parseWavHeader(bytes: FileBytes): WavHeader {
  const { format, size, from, declared } = findWavData(bytes);
  return describe(parseFormat(format, size), from, bytes.length - from, declared);
}

/** A WAV file's format and the place of its data, whatever its encoding. */
export interface WavData {
  /** The fmt chunk's first FORMAT_BYTES bytes, and its declared size, which is at least FORMAT_SIZE. */
  readonly format: DataView;
  readonly size: number;
  /** Offset of the data, and its declared size, which may exceed the file or be a placeholder. */
  readonly from: number;
  readonly declared: number;
}

/** Walks the chunks of a WAV file to its data. Throws EngineError('invalid_audio') if no data chunk follows a fmt chunk. */
export function findWavData(bytes: FileBytes): WavData {
  if (!isWav(bytes.subarray(0, 12))) throw invalid('the file does not begin with a RIFF/WAVE header');
  let format: Pick<WavData, 'format' | 'size'> | undefined;
  let longSize: number | undefined;
  let chunks = 0;
  for (let at = 12; at + 8 <= bytes.length;) {
    if (++chunks > MAX_CHUNKS) throw invalid(`the WAV file has more than ${MAX_CHUNKS} chunks before its samples`);
    const head = bytes.subarray(at, at + 8);
    const id = latin1(head, 0, 4);
    const size = viewOf(head).getUint32(4, true);
    const body = at + 8;
    if (id === 'data') {
      if (!format) throw invalid('the WAV file has its data chunk before its fmt chunk');
      return { ...format, from: body, declared: size === LONG ? (longSize ?? size) : size };
    }
    if (body + size > bytes.length) throw invalid(`the WAV file ends inside its '${id}' chunk (${size} bytes declared)`);
    // RF64's 64-bit sizes of the file and of its data. Other chunks may follow the data.
    if (id === 'ds64' && size >= 16) longSize = Number(viewOf(bytes.subarray(body + 8, body + 16)).getBigUint64(0, true));
    if (id === 'fmt ') format = { format: viewOf(bytes.subarray(body, body + Math.min(size, FORMAT_BYTES))), size: checkedSize(size) };
    at = body + size + (size & 1);
  }
  throw invalid(format ? 'the WAV file has no data chunk' : 'the WAV file has no fmt chunk');
}

function checkedSize(size: number): number {
  if (size < FORMAT_SIZE) throw invalid(`the WAV file's fmt chunk has ${size} bytes; at least ${FORMAT_SIZE} are needed`);
  return size;
}

/** A WAV file's format tag, Microsoft's number of its encoding. */
export function wavTag({ format, size }: Pick<WavData, 'format' | 'size'>): number {
  const tag = format.getUint16(0, true);
  // Extensible: the real tag is the first field of the sub-format GUID.
  return tag === EXTENSIBLE && size >= 40 ? format.getUint16(24, true) : tag;
}

const viewOf = ({ buffer, byteOffset, byteLength }: Uint8Array): DataView => new DataView(buffer, byteOffset, byteLength);

interface Format {
  readonly encoding: WavEncoding;
  readonly channels: number;
  readonly sampleRate: number;
  readonly blockAlign: number;
}

/** Parses a fmt chunk that declares `size` bytes; `view` has its first ones. */
function parseFormat(view: DataView, size: number): Format {
  const channels = view.getUint16(2, true);
  const sampleRate = view.getUint32(4, true);
  const blockAlign = view.getUint16(12, true);
  const bits = view.getUint16(14, true);
  const tag = wavTag({ format: view, size });
  const encoding = encodingOf(tag, bits);
  if (!encoding)
    throw invalid(
      `WAV encoding ${tag} with ${bits} bits is not read; PCM of 8, 16, 24 or 32 bits, float of 32 or 64 bits, A-law and mu-law are`,
    );
  if (channels < 1 || channels > MAX_CHANNELS) throw invalid(`the WAV file declares ${channels} channels; 1 to ${MAX_CHANNELS} are read`);
  if (sampleRate < MIN_RATE || sampleRate > MAX_RATE) {
    throw invalid(`the WAV file declares a sample rate of ${sampleRate} Hz; ${MIN_RATE} to ${MAX_RATE} are read`);
  }
  const expected = channels * BYTES[encoding];
  if (blockAlign !== expected) throw invalid(`the WAV file declares ${blockAlign} bytes a frame; its format needs ${expected}`);
  return { encoding, channels, sampleRate, blockAlign };
}

const BYTES: Readonly<Record<WavEncoding, number>> = { u8: 1, s16: 2, s24: 3, s32: 4, f32: 4, f64: 8, alaw: 1, mulaw: 1 };

function encodingOf(tag: number, bits: number): WavEncoding | undefined {
  if (tag === FLOAT) return bits === 32 ? 'f32' : bits === 64 ? 'f64' : undefined;
  if (tag === A_LAW || tag === MU_LAW) return bits !== 8 ? undefined : tag === A_LAW ? 'alaw' : 'mulaw';
  if (tag !== PCM) return undefined;
  return bits === 8 ? 'u8' : bits === 16 ? 's16' : bits === 24 ? 's24' : bits === 32 ? 's32' : undefined;
}

/** Makes the header of a file whose data chunk begins at `from`, declares `size` bytes, and is followed by `rest` bytes. */
function describe({ encoding, channels, sampleRate, blockAlign }: Format, from: number, rest: number, size: number): WavHeader {
  const declared = isPlaceholder(size) ? rest : size;
  const dataBytes = Math.min(declared, rest);
  const frames = Math.floor(dataBytes / blockAlign);
  return { encoding, channels, sampleRate, frames, from, dataBytes, frameBytes: blockAlign, missingBytes: declared - dataBytes };
}

/** Frames that are read at once, because the samples of all channels take more room than the file has for them. */
const BLOCK = 1 << 16;

/**
 * Mixes the channels to [frames] samples in -1..1 (float files may exceed that). Damaged samples become 0. A file that is read piece by piece has one `mix` for all of
 * them.
 */
export function wavToMono(wav: Pick<WavFile, 'encoding' | 'channels' | 'frames' | 'data'>, mix = new Downmix()): Float32Array {
  const { data, encoding, channels, frames } = wav;
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const read = READERS[encoding];
  const step = BYTES[encoding];
  const mono = new Float32Array(frames);
  for (let first = 0, at = 0; first < frames; first += BLOCK) {
    const samples = new Float32Array(Math.min(BLOCK, frames - first) * channels);
    for (let i = 0; i < samples.length; i++, at += step) samples[i] = read(view, at);
    mono.set(mix.push(samples, channels), first);
  }
  return mono;
}

const READERS: Readonly<Record<WavEncoding, (view: DataView, at: number) => number>> = {
  u8: (view, at) => (view.getUint8(at) - 128) / 128,
  s16: (view, at) => view.getInt16(at, true) / 0x8000,
  s24: (view, at) => (view.getUint16(at, true) + view.getInt8(at + 2) * 0x10000) / 0x80_0000,
  s32: (view, at) => view.getInt32(at, true) / 0x8000_0000,
  f32: (view, at) => view.getFloat32(at, true),
  f64: (view, at) => view.getFloat64(at, true),
  alaw: (view, at) => {
    const code = view.getUint8(at) ^ 0x55;
    const [exponent, mantissa] = [(code >> 4) & 7, code & 15];
    const size = exponent === 0 ? 16 * mantissa + 8 : (16 * mantissa + 0x108) << (exponent - 1);
    return (code & 0x80 ? size : -size) / 0x8000;
  },
  mulaw: (view, at) => {
    const code = ~view.getUint8(at);
    const size = ((8 * (code & 15) + MU_LAW_BIAS) << ((code >> 4) & 7)) - MU_LAW_BIAS;
    // Its second code of silence is 0 as well, not -0.
    return (code & 0x80 ? 0 - size : size) / 0x8000;
  },
};

/** Makes a 44-byte header for 16-bit mono PCM; `dataBytes` absent = a stream of unknown length (0xffffffff, as OpenAI sends). */
export function wavHeader(sampleRate: number, dataBytes?: number): Uint8Array {
  const header = new Uint8Array(44);
  const view = new DataView(header.buffer);
  const ascii = (at: number, text: string): void => header.set(new TextEncoder().encode(text), at);
  ascii(0, 'RIFF');
  view.setUint32(4, dataBytes === undefined ? 0xffff_ffff : 36 + dataBytes, true);
  ascii(8, 'WAVEfmt ');
  view.setUint32(16, 16, true);
  view.setUint16(20, PCM, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, sampleRate, true);
  view.setUint32(28, sampleRate * 2, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  ascii(36, 'data');
  view.setUint32(40, dataBytes ?? 0xffff_ffff, true);
  return header;
}

/** Converts samples in -1..1 to signed 16-bit little endian, rounded and clipped. */
export function floatToPcm16(samples: Float32Array): Uint8Array {
  const bytes = new Uint8Array(samples.length * 2);
  const view = new DataView(bytes.buffer);
  for (let i = 0; i < samples.length; i++) {
    const scaled = Math.round(samples[i]! * 0x7fff);
    view.setInt16(i * 2, Math.max(-0x8000, Math.min(0x7fff, scaled)), true);
  }
  return bytes;
}

/** Makes a 16-bit mono WAV file. */
export function writeWav(samples: Float32Array, sampleRate: number): Uint8Array {
  const pcm = floatToPcm16(samples);
  const file = new Uint8Array(44 + pcm.length);
  file.set(wavHeader(sampleRate, pcm.length));
  file.set(pcm, 44);
  return file;
}

function latin1(bytes: Uint8Array, from: number, to: number): string {
  return String.fromCharCode(...bytes.subarray(from, to));
}
