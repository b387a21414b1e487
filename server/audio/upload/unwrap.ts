/**
 * Chooses the decoder of a file. Most formats have one; the sound of the others is presented to the decoder of another format, after the headers that this one
 * expects. Sources: Sony's "Wave 64", Sun's <audio/au.h>, Adobe's "Adobe Flash Video File Format Specification" 10.1.
 */
import { findWavData, isPlaceholder, wavTag } from '../../../engine/audio/wav.ts';
import type { FileBytes, WavData } from '../../../engine/audio/wav.ts';
import { withKnownChannels } from './aac-channels.ts';
import { placeOfSound, samplesIn, withRealSize } from './cut-short.ts';
import type { Sized } from './cut-short.ts';
import { flvSound } from './flv.ts';
import { AIFF_DESCRIPTION_BYTES, Spliced, aiffHeader, cafFormat, cafHeader, printable, viewOf, wavHeader } from './headers.ts';
import { mp4Samples } from './mp4-pcm.ts';
import { textAt } from './repair/part.ts';
import type { FileFormat, KnownFile } from './sniff.ts';

/**
 * How a file's sound is decoded: `wav` = as the samples of a WAV file; `gsm` = blocks of GSM 06.10; `packed` = by the codecs, as a file of this format. `isCut` =
 * the file declared more.
 */
export type Sound =
  | { readonly kind: 'wav'; readonly bytes: FileBytes }
  | ({ readonly bytes: FileBytes; readonly isCut?: boolean } & (
      | { readonly kind: 'gsm' }
      | { readonly kind: 'packed'; readonly format: FileFormat }
    ));

/** A file that is refused because of its headers; the message is a sentence. */
export class UnreadError extends Error {}

const MS_ADPCM = 2;
const IMA_ADPCM = 0x11;
const GSM = 0x31;
const MPEG = [0x50, 0x55] as const;
/** Format tags of PCM, float, A-law and mu-law. */
const SAMPLES = [1, 3, 6, 7] as const;

/**
 * Chooses how a file is decoded, and as what. Throws UnreadError, or EngineError('invalid_audio') for broken headers. With `isRough` the result may have more
 * sound than the file, and is found sooner.
 */
export function soundOf({ format, at }: KnownFile, file: FileBytes, isRough = false): Sound {
  const bytes = at === 0 ? file : new Spliced(new Uint8Array(), file, at);
  if (format === 'WAV') return wavSound(bytes);
  if (format === 'W64') return wavSound(w64AsWav(bytes));
  if (format === 'AU') return { kind: 'packed', format: 'AIFF', ...auAsAiff(bytes) };
  if (format === 'FLV') return flashSound(bytes);
  if (format === 'MP4') return mp4Sound(bytes, isRough);
  if (format === 'AIFF') return aiffSound(bytes);
  if (format === 'CAF') return cafSound(bytes);
  return { kind: 'packed', format, bytes };
}

function mp4Sound(bytes: FileBytes, isRough: boolean): Sound {
  const samples = mp4Samples(bytes, isRough);
  return samples ? { kind: 'wav', bytes: samples } : { kind: 'packed', format: 'MP4', bytes: withKnownChannels(bytes) };
}

function flashSound(bytes: FileBytes): Sound {
  const sound = flvSound(bytes);
  if (!sound) throw new UnreadError('the FLV file has no sound');
  if ('codec' in sound)
    throw new UnreadError(`the sound in the FLV file is of a codec that is not read: ${sound.codec}; MP3, AAC, PCM, A-law and mu-law are`);
  return sound.format === 'WAV' ? wavSound(sound.bytes) : { kind: 'packed', ...sound };
}

function wavSound(bytes: FileBytes): Sound {
  const data = findWavData(bytes);
  const tag = wavTag(data);
  const isCut = !isPlaceholder(data.declared) && data.declared > bytes.length - data.from;
  if (tag === GSM) return { kind: 'gsm', bytes: contentOf(bytes, data), isCut };
  if (MPEG.some((one) => one === tag)) return { kind: 'packed', format: 'MP3', bytes: contentOf(bytes, data), isCut };
  if (SAMPLES.some((one) => one === tag)) return { kind: 'wav', bytes };
  if (tag !== MS_ADPCM && tag !== IMA_ADPCM) {
    throw new UnreadError(`WAV encoding ${tag} is not read; PCM, float, A-law, mu-law, MS ADPCM, IMA ADPCM, GSM 06.10, and MPEG are`);
  }
  const content = contentOf(bytes, data);
  // Without the chunks before the data, and with its real length.
  return { kind: 'packed', format: 'WAV', bytes: new Spliced(wavHeader(data.format, content.length), content), isCut };
}

function contentOf(bytes: FileBytes, { from, declared }: WavData): FileBytes {
  const rest = bytes.length - from;
  return new Spliced(new Uint8Array(), bytes, from, isPlaceholder(declared) ? rest : Math.min(rest, declared));
}

const MAX_CHANNELS = 32;

function checkedChannels(format: FileFormat, channels: number): number {
  if (channels >= 1 && channels <= MAX_CHANNELS) return channels;
  throw new UnreadError(`the ${format} file declares ${channels} channels; 1 to ${MAX_CHANNELS} are read`);
}

/** A refusal of a file whose description names this codec. */
const unknownType = (format: FileFormat, type: string, read: string): UnreadError =>
  new UnreadError(`the sound in the ${format} file is of a codec that is not read: ${printable(type)}; ${read} are`);

/** AIFF-C's compression types whose samples are read as they are, in small letters. */
const AIFF_TYPES = ['none', 'twos', 'sowt', 'raw ', 'in24', 'in32', '23ni', 'fl32', 'fl64', 'alaw', 'ulaw'];

/** IMA ADPCM in AIFF-C has the blocks that it has in CAF, whose reader knows it. */
function aiffSound(bytes: FileBytes): Sound {
  const place = placeOfSound('AIFF', bytes);
  const plain = (): Sound => ({ kind: 'packed', format: 'AIFF', ...withRealSize('AIFF', bytes, place) });
  if (place?.description === undefined || textAt(bytes, 8, 4) !== 'AIFC') return plain();
  const type = textAt(bytes, place.description + AIFF_DESCRIPTION_BYTES, 4);
  if (AIFF_TYPES.includes(type.toLowerCase())) return plain();
  if (type !== 'ima4') throw unknownType('AIFF', type, 'PCM, float, A-law, mu-law and IMA ADPCM');
  const common = viewOf(bytes, place.description, place.description + AIFF_DESCRIPTION_BYTES);
  const channels = checkedChannels('AIFF', common.getUint16(0));
  // An 80-bit float: the exponent, and the upper half of a mantissa whose first bit is 1.
  const rate = common.getUint32(10) * 2 ** ((common.getUint16(8) & 0x7fff) - 16383 - 31);
  const shape = { type, rate, channels, packetBytes: 34 * channels, packetFrames: 64 };
  const { from, count, isCut } = samplesIn('AIFF', bytes, place);
  const whole = count - (count % shape.packetBytes);
  return { kind: 'packed', format: 'CAF', bytes: new Spliced(cafHeader(shape, whole), bytes, from, whole), isCut };
}

/** CAF's names of codecs that are read. */
const CAF_TYPES = ['lpcm', 'ima4', 'alaw', 'ulaw', 'alac', 'aac ', 'opus', '.mp1', '.mp2', '.mp3'];

/** Samples of 8 bits, which are signed, A-law or mu-law, are presented as AIFF-C: the reader of CAF has neither. */
function cafSound(bytes: FileBytes): Sound {
  const place = placeOfSound('CAF', bytes);
  const packed = (): Sound => ({ kind: 'packed', format: 'CAF', ...withRealSize('CAF', bytes, place) });
  if (place?.description === undefined) return packed();
  const { type, rate, isFloat, channels, bits } = cafFormat(bytes, place.description);
  if (!CAF_TYPES.includes(type)) throw unknownType('CAF', type, 'PCM, float, A-law, mu-law, IMA ADPCM, ALAC, AAC, Opus and MP3');
  const isLaw = type === 'alaw' || type === 'ulaw';
  if (!isLaw && (type !== 'lpcm' || isFloat || bits !== 8)) return packed();
  const { from, count, isCut } = samplesIn('CAF', bytes, place);
  const frames = Math.floor(count / checkedChannels('CAF', channels));
  const head = aiffHeader({ type: isLaw ? type : 'NONE', bits: 8, rate: Math.round(rate), channels, frames });
  return { kind: 'packed', format: 'AIFF', bytes: new Spliced(head, bytes, from, frames * channels), isCut };
}

const GUID_BYTES = 16;
/** Bytes of a chunk's name and size; the size includes both. */
const W64_CHUNK = GUID_BYTES + 8;
/** Bytes of the file's name and size, and of the name `WAVE`. */
const W64_HEAD = W64_CHUNK + GUID_BYTES;
const MAX_CHUNKS = 1_000;

/** Rewrites the headers of Wave 64, which is WAV with names of 16 bytes and sizes of 8. */
function w64AsWav(bytes: FileBytes): FileBytes {
  let format: DataView | undefined;
  let at = W64_HEAD;
  for (let chunks = 0; at + W64_CHUNK <= bytes.length && chunks < MAX_CHUNKS; chunks++) {
    const head = viewOf(bytes, at, at + W64_CHUNK);
    const name = String.fromCharCode(...bytes.subarray(at, at + 4));
    const size = Number(head.getBigUint64(GUID_BYTES, true));
    const rest = bytes.length - at - W64_CHUNK;
    if (name === 'data' && format) {
      const declared = size - W64_CHUNK;
      // Recorders that cannot seek leave 0 or all ones.
      const isOpen = declared <= 0 || isPlaceholder(declared);
      return new Spliced(wavHeader(format, isOpen ? rest : declared), bytes, at + W64_CHUNK, isOpen ? rest : Math.min(rest, declared));
    }
    if (size < W64_CHUNK || size - W64_CHUNK > rest) break;
    if (name === 'fmt ') format = unpadded(viewOf(bytes, at + W64_CHUNK, at + Math.min(size, 128)));
    at += Math.ceil(size / 8) * 8;
  }
  throw new UnreadError('the W64 file has no samples behind a description of them');
}

/** A fmt chunk without its padding to 8 bytes; its last fields tell its real length. */
function unpadded(format: DataView): DataView {
  const size = format.byteLength < 18 ? 16 : 18 + format.getUint16(16, true);
  return new DataView(format.buffer, format.byteOffset, Math.min(size, format.byteLength));
}

const AU_HEAD_BYTES = 24;
/** AIFF-C's compression types of AU's encodings, and their bits per sample. */
const AU_ENCODINGS: Readonly<Record<number, readonly [type: string, bits: number]>> = {
  1: ['ulaw', 8], 2: ['NONE', 8], 3: ['NONE', 16], 4: ['NONE', 24], 5: ['NONE', 32], 6: ['fl32', 32], 7: ['fl64', 64], 27: ['alaw', 8],
}; // prettier-ignore

/** Presents an AU file as AIFF-C, since its samples are big-endian too. */
function auAsAiff(bytes: FileBytes): Sized {
  if (bytes.length < AU_HEAD_BYTES) throw new UnreadError('the AU file is cut short in its header');
  const view = viewOf(bytes, 0, AU_HEAD_BYTES);
  const field = (index: number): number => view.getUint32(4 * index);
  const [from, declared, encoding, rate] = [field(1), field(2), field(3), field(4)];
  const channels = checkedChannels('AU', field(5));
  const [type, bits] = AU_ENCODINGS[encoding] ?? [];
  if (type === undefined || bits === undefined) {
    throw new UnreadError(`the AU file has encoding ${encoding}, which is not read; PCM, float, A-law and mu-law are`);
  }
  const rest = Math.max(0, bytes.length - from);
  const frameBytes = (channels * bits) / 8;
  const frames = Math.floor((isPlaceholder(declared) ? rest : Math.min(declared, rest)) / frameBytes);
  const file = new Spliced(aiffHeader({ type, bits, rate, channels, frames }), bytes, from, frames * frameBytes);
  return { bytes: file, isCut: !isPlaceholder(declared) && declared > rest };
}
