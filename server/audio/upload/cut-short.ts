/**
 * Repairs files that end before their headers say, like half an upload, or whose headers do not say, like those of recorders that cannot seek. Symphonia looks for
 * what follows the sound first, and refuses both. Also finds Ogg files that lack pages. Sources: ISO/IEC 14496-12, RFC 9559 (Matroska), RFC 3533 (Ogg),
 * Apple's "Audio Interchange File Format" and "Core Audio Format".
 */
import type { FileBytes } from '../../../engine/audio/wav.ts';
import { oggChecksum } from '../ogg.ts';
import { AIFF_DESCRIPTION_BYTES, CAF_DESCRIPTION_BYTES, Spliced, viewOf } from './headers.ts';
import { eachBox, whole } from './mp4-boxes.ts';
import { segmentEnd } from './repair/ebml.ts';
import { cutOut, search, textAt } from './repair/part.ts';
import type { FileFormat } from './sniff.ts';

/** Most chunks before the samples, and most bytes of them, which are copied. */
const MAX_CHUNKS = 1_000;
const MAX_HEAD = 1 << 20;

/** Declared end of a file that was cut within its sound; undefined for a whole file, or one that cannot be read without its end. */
export function missedEnd(format: FileFormat, bytes: FileBytes): number | undefined {
  if (format === 'MP4') return mp4End(bytes);
  if (format !== 'WebM') return undefined;
  const end = segmentEnd(bytes);
  return end !== undefined && end > bytes.length ? end : undefined;
}

/** Declared end of an MP4 file that was cut; undefined unless its `moov` is before its sound, so that it can be read as far as it goes. */
function mp4End(bytes: FileBytes): number | undefined {
  let hasMoov = false;
  let at = 0;
  for (const { type, to } of eachBox(bytes, whole(bytes))) {
    hasMoov ||= type === 'moov';
    if (type === 'mdat' && !hasMoov) return undefined;
    at = to;
  }
  if (!hasMoov || at + 8 > bytes.length) return undefined;
  const head = viewOf(bytes, at, at + 8);
  const isSound = ['mdat', 'moof'].includes(String.fromCharCode(...bytes.subarray(at + 4, at + 8)));
  return isSound ? Math.max(bytes.length + 1, at + head.getUint32(0)) : undefined;
}

/** A file with its real sizes, and whether it declared more. */
export interface Sized {
  readonly bytes: FileBytes;
  readonly isCut: boolean;
}

/** Where an AIFF or CAF file has its sound, as offsets. */
export interface SoundPlace {
  /** Where the content of the chunk that describes the sound begins; undefined if no whole one precedes the sound. */
  readonly description: number | undefined;
  /** Where the chunk with the sound begins, and its declared size, which may be a placeholder or exceed the file. */
  readonly at: number;
  readonly size: number;
}

/** Bytes of the name and the size of a chunk. */
const chunkHead = (format: 'AIFF' | 'CAF'): number => (format === 'CAF' ? 12 : 8);

/** Walks the chunks of an AIFF or CAF file to its sound; undefined if there is none. */
export function placeOfSound(format: 'AIFF' | 'CAF', bytes: FileBytes): SoundPlace | undefined {
  const isCaf = format === 'CAF';
  const headBytes = chunkHead(format);
  let description: number | undefined;
  let at = isCaf ? 8 : 12;
  for (let chunks = 0; at + headBytes <= bytes.length && at < MAX_HEAD && chunks < MAX_CHUNKS; chunks++) {
    const head = viewOf(bytes, at, at + headBytes);
    const name = textAt(bytes, at, 4);
    const size = isCaf ? Number(head.getBigInt64(4)) : head.getUint32(4);
    if (name === (isCaf ? 'data' : 'SSND')) return { description, at, size };
    if (name === (isCaf ? 'desc' : 'COMM') && size >= (isCaf ? CAF_DESCRIPTION_BYTES : AIFF_DESCRIPTION_BYTES))
      description = at + headBytes;
    at += headBytes + (isCaf ? size : size + (size & 1));
    if (size < 0) break;
  }
  return undefined;
}

/** Returns an AIFF or CAF file in which the declared size of the samples is the real one. */
export function withRealSize(format: 'AIFF' | 'CAF', bytes: FileBytes, place: SoundPlace | undefined): Sized {
  if (!place) return { bytes, isCut: false };
  const { description, at, size } = place;
  const isCaf = format === 'CAF';
  const rest = bytes.length - at - chunkHead(format);
  const isOpen = isOpenSize(format, size);
  if (size <= rest && !isOpen) return { bytes: isCaf ? withoutTail(bytes, at) : bytes, isCut: false };
  return { bytes: isCaf ? cafOf(bytes, at, rest) : aiffOf(bytes, description, at, rest), isCut: !isOpen };
}

/** Whether the size of the sound is what a recorder that cannot seek leaves. */
const isOpenSize = (format: 'AIFF' | 'CAF', size: number): boolean => (format === 'CAF' ? size === -1 : size === 0);

/** The samples of an AIFF or CAF file, as offset and number of bytes, and whether the file declared more. */
export function samplesIn(
  format: 'AIFF' | 'CAF',
  bytes: FileBytes,
  { at, size }: SoundPlace,
): { from: number; count: number; isCut: boolean } {
  // AIFF's chunk begins with an offset and a block size, CAF's with a number of edits.
  const fields = format === 'CAF' ? 4 : 8;
  const from = at + chunkHead(format) + fields;
  const rest = Math.max(0, bytes.length - from);
  const declared = isOpenSize(format, size) ? rest : Math.max(0, size - fields);
  return { from, count: Math.min(declared, rest), isCut: declared > rest };
}

/** Returns a CAF file without what follows its last chunk: its reader takes that for a chunk, and refuses the file. `at` is a chunk's offset. */
function withoutTail(bytes: FileBytes, at: number): FileBytes {
  let to = at;
  for (let chunks = 0; to + 12 <= bytes.length && chunks < MAX_CHUNKS; chunks++) {
    const size = Number(viewOf(bytes, to + 4, to + 12).getBigInt64(0));
    if (!/^[\x20-\x7e]{4}$/.test(textAt(bytes, to, 4)) || size < 0 || size > bytes.length - to - 12) break;
    to += 12 + size;
  }
  return to === bytes.length ? bytes : cutOut(bytes, 0, to);
}

function cafOf(bytes: FileBytes, at: number, rest: number): FileBytes {
  const head = Uint8Array.from(bytes.subarray(0, at + 12));
  new DataView(head.buffer).setBigInt64(at + 4, BigInt(rest));
  return new Spliced(head, bytes, head.length);
}

function aiffOf(bytes: FileBytes, common: number | undefined, at: number, rest: number): FileBytes {
  const head = Uint8Array.from(bytes.subarray(0, at + 8));
  const view = new DataView(head.buffer);
  view.setUint32(4, bytes.length - 8);
  view.setUint32(at + 4, rest);
  // Two more numbers follow the size of the samples.
  const frameBytes = common === undefined ? 0 : (view.getUint16(common) * view.getUint16(common + 6)) / 8;
  if (common !== undefined && frameBytes > 0) view.setUint32(common + 2, Math.max(0, Math.floor((rest - 8) / frameBytes)));
  return new Spliced(head, bytes, head.length);
}

/** Most pages of a file that are examined. Two hours of sound have half as many; this bounds the work for a file of nothing but headers. */
const MAX_PAGES = 1 << 20;
/** Bytes of a page's header, whose last one counts the bytes behind it; those are the sizes of what follows. */
const PAGE_HEAD = 27;

/**
 * Whether an Ogg file has a page that its reader passes over, because bytes of it were changed or something else is in its place. What is behind the last page does
 * not count: it is padding, or the beginning of a page that was cut off.
 */
export function lacksPages(bytes: FileBytes): boolean {
  let at = 0;
  for (let pages = 0; pages < MAX_PAGES && at + PAGE_HEAD <= bytes.length; pages++) {
    const head = bytes.subarray(at, at + PAGE_HEAD);
    if (textAt(head, 0, 4) !== 'OggS') return search(bytes, at, [0x4f], (place) => textAt(bytes, place, 4) === 'OggS') !== undefined;
    const sizes = bytes.subarray(at + PAGE_HEAD, at + PAGE_HEAD + head[PAGE_HEAD - 1]!);
    const to = at + PAGE_HEAD + sizes.length + sizes.reduce((sum, size) => sum + size, 0);
    if (to <= bytes.length && !isIntact(bytes.subarray(at, to))) return true;
    at = to;
  }
  return false;
}

/** Whether a page has the checksum that it declares. */
function isIntact(page: Uint8Array): boolean {
  const copy = Uint8Array.from(page);
  copy.fill(0, 22, 26);
  return oggChecksum(copy) === viewOf(page, 22, 26).getUint32(0, true);
}
