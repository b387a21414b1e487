/** Extracts the sound of Flash videos, which meeting rooms and cameras record: without the tags, what remains is a file of MP3, AAC or samples. */
import type { FileBytes } from '../../../engine/audio/wav.ts';
import { viewOf, wavHeader } from './headers.ts';
import { isPadding, search, textAt } from './repair/part.ts';
import { withoutTrailingTags } from './repair/tags.ts';
import type { FileFormat } from './sniff.ts';

/** The sound as a file, or the name of its codec if that is not supported. `isCut` = the file ends within a tag, or has something else between two. */
export type FlvSound = { readonly format: FileFormat; readonly bytes: Uint8Array; readonly isCut: boolean } | { readonly codec: string };

const TAG_BYTES = 11;
const TRAILER_BYTES = 4;
const AUDIO = 8;
/** Types of tags: sound, pictures, and data. */
const TAG_TYPES = [AUDIO, 9, 18];
const ADTS_BYTES = 7;
const CODECS: Readonly<Record<number, string>> = {
  1: 'ADPCM',
  4: 'Nellymoser',
  5: 'Nellymoser',
  6: 'Nellymoser',
  9: 'an extension',
  11: 'Speex',
};
/** Sample rates in Hz, as the first byte of a tag numbers them. */
const RATES = [5512, 11025, 22050, 44100] as const;
const MP3 = [2, 14] as const;
const AAC = 10;
/** WAV format tags (PCM, A-law, mu-law) by FLV's codec number. */
const WAV_TAGS: Readonly<Record<number, number>> = { 0: 1, 3: 1, 7: 6, 8: 7 };

/** Returns the sound, copied; undefined if there is none. */
export function flvSound(bytes: FileBytes): FlvSound | undefined {
  let first: Uint8Array | undefined;
  let adts: Uint8Array | undefined;
  // The headers put before frames are no longer than those that the tags had, so all fits.
  const out = new Uint8Array(bytes.length);
  let length = 0;
  const put = (piece: Uint8Array): void => {
    out.set(piece, length);
    length += piece.length;
  };
  const damage = { isCut: false };
  for (const tag of soundTags(bytes, damage)) {
    first ??= tag;
    const codec = tag[0]! >> 4;
    if (codec !== first[0]! >> 4) continue;
    if (codec !== AAC) put(tag.subarray(1));
    else if (tag[1] === 0) adts = adtsHead(tag.subarray(2));
    else if (adts) {
      put(withLength(adts, tag.length - 2));
      put(tag.subarray(2));
    }
  }
  if (!first) return undefined;
  const codec = first[0]! >> 4;
  const sound = out.subarray(0, length);
  if (codec === AAC) return adts ? { format: 'AAC', bytes: sound, ...damage } : { codec: 'AAC of an unknown kind' };
  if (MP3.some((one) => one === codec)) return { format: 'MP3', bytes: sound, ...damage };
  const wavTag = WAV_TAGS[codec];
  if (wavTag === undefined) return { codec: CODECS[codec] ?? `number ${codec}` };
  return { format: 'WAV', bytes: wavFile(wavTag, first[0]!, sound), ...damage };
}

/** Yields the content of each audio tag, and notes in `damage` if the last one lacks its end, or if bytes between two tags are none. */
function* soundTags(bytes: FileBytes, damage: { isCut: boolean }): Generator<Uint8Array> {
  let at = firstTag(bytes, 0);
  const isWhole = isTag(bytes, at) ? isTag : hasRoom;
  while (at + TAG_BYTES < bytes.length) {
    if (isWhole(bytes, at)) {
      const end = at + TAG_BYTES + sizeOf(bytes, at);
      if (typeOf(bytes, at) === AUDIO && end > at + TAG_BYTES + 1) yield bytes.subarray(at + TAG_BYTES, end);
      at = end + TRAILER_BYTES;
    } else if (textAt(bytes, at, 4) === MAGIC) at = firstTag(bytes, at);
    else {
      const next = search(bytes, at + 1, TAG_TYPES, (place) => isTag(bytes, place));
      // Zeros or notes may fill up a file. A recorder that was switched off leaves an incomplete tag.
      damage.isCut ||= next !== undefined || !isPadding(withoutTrailingTags(bytes), at);
      if (next === undefined) return;
      at = next;
    }
  }
}

/** The beginning of a file, which may have been joined to another. */
const MAGIC = 'FLV\x01';
const HEAD_BYTES = 9;

const firstTag = (bytes: FileBytes, at: number): number =>
  at + HEAD_BYTES > bytes.length ? bytes.length : at + viewOf(bytes, at, at + HEAD_BYTES).getUint32(5) + TRAILER_BYTES;

/** Whether a tag begins here: one of a known type and stream 0, and its size is behind it once more, as players that go backwards need it. */
function isTag(bytes: FileBytes, at: number): boolean {
  const head = bytes.subarray(at, at + TAG_BYTES);
  if (head.length < TAG_BYTES || !TAG_TYPES.includes(head[0]! & 0x1f) || (head[8]! | head[9]! | head[10]!) !== 0) return false;
  const end = at + TAG_BYTES + sizeOf(bytes, at);
  // The last one may lack it.
  return end + TRAILER_BYTES > bytes.length ? end <= bytes.length : viewOf(bytes, end, end + TRAILER_BYTES).getUint32(0) === end - at;
}

/** Whether a tag ends within the file: the sizes behind those of some writers are wrong, so no more is known of them. */
const hasRoom = (bytes: FileBytes, at: number): boolean =>
  at + TAG_BYTES <= bytes.length && at + TAG_BYTES + sizeOf(bytes, at) <= bytes.length;

const typeOf = (bytes: FileBytes, at: number): number => bytes.subarray(at, at + 1)[0]! & 0x1f;
const sizeOf = (bytes: FileBytes, at: number): number => viewOf(bytes, at, at + 4).getUint32(0) & 0xff_ffff;

/** Returns the ADTS header, without a length, for frames with this AudioSpecificConfig; undefined if ADTS cannot express it. */
function adtsHead(config: Uint8Array): Uint8Array | undefined {
  if (config.length < 2) return undefined;
  const type = config[0]! >> 3;
  const rate = ((config[0]! & 7) << 1) | (config[1]! >> 7);
  const channels = (config[1]! >> 3) & 15;
  // HE-AAC's core is of the low-complexity profile (2), and is what is decoded.
  const profile = (type === 5 || type === 29 ? 2 : type) - 1;
  if (profile < 0 || profile > 3 || rate > 12 || channels < 1 || channels > 7) return undefined;
  return Uint8Array.of(0xff, 0xf1, (profile << 6) | (rate << 2) | (channels >> 2), (channels & 3) << 6, 0, 0x1f, 0xfc);
}

function withLength(head: Uint8Array, frameBytes: number): Uint8Array {
  const size = frameBytes + ADTS_BYTES;
  const [third, fifth] = [head[3]! | ((size >> 11) & 3), ((size & 7) << 5) | head[5]!];
  return Uint8Array.of(head[0]!, head[1]!, head[2]!, third, (size >> 3) & 0xff, fifth, head[6]!);
}

/** Makes a WAV file; `kind` = the first byte of an FLV tag. */
function wavFile(tag: number, kind: number, data: Uint8Array): Uint8Array {
  const bits = tag === 1 && kind & 2 ? 16 : 8;
  const channels = 1 + (kind & 1);
  // Telephone codecs have one rate, whatever the tags say.
  const rate = tag === 1 ? RATES[(kind >> 2) & 3]! : 8000;
  const format = new DataView(new ArrayBuffer(16));
  for (const [at, value] of [[0, tag], [2, channels], [12, (channels * bits) / 8], [14, bits]] as const) format.setUint16(at, value, true); // prettier-ignore
  format.setUint32(4, rate, true);
  const head = wavHeader(format, data.length);
  const file = new Uint8Array(head.length + data.length);
  file.set(head);
  file.set(data, head.length);
  return file;
}
