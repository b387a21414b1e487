/**
 * Repairs files that end before their headers say, like half an upload, or whose headers do not say, like those of recorders that cannot seek. Symphonia looks for
 * what follows the sound first, and refuses both. Also finds files that lack a piece of their middle. Sources: ISO/IEC 14496-12, RFC 9559 (Matroska), RFC 3533 (Ogg),
 * Apple's "Audio Interchange File Format" and "Core Audio Format".
 */
import type { FileBytes } from '../../../engine/audio/wav.ts';
import { Spliced, viewOf } from './headers.ts';
import { eachBox, whole } from './mp4-boxes.ts';
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

const EBML = 0x1a45dfa3;
/** Elements that contain all others, and those of a part of the sound. A live recorder leaves the sizes of both open. */
const [SEGMENT, CLUSTER] = [0x18538067, 0x1f43b675];

/** End of the element that contains all sound; undefined if its size is open. */
function segmentEnd(bytes: FileBytes): number | undefined {
  const head = element(bytes, 0);
  const segment = head?.id === EBML && head.size !== undefined ? element(bytes, head.from + head.size) : undefined;
  return segment?.id === SEGMENT && segment.size !== undefined ? segment.from + segment.size : undefined;
}

/** Reads the head of an EBML element: `from` is where its content begins, and an open `size` is absent. Undefined where the file has no room for any head. */
function element(bytes: FileBytes, at: number): { readonly id: number; readonly from: number; readonly size?: number } | undefined {
  const head = bytes.subarray(at, at + 12);
  if (head.length < 12) return undefined;
  const idBytes = Math.min(4, Math.clz32(head[0]!) - 23);
  const id = head.subarray(0, idBytes).reduce((value, byte) => value * 256 + byte, 0);
  const width = Math.clz32(head[idBytes]!) - 23;
  if (width > 8) return { id, from: at + idBytes };
  let size = head[idBytes]! & (0xff >> width);
  for (let i = 1; i < width; i++) size = size * 256 + head[idBytes + i]!;
  const isOpen = size === 2 ** (7 * width) - 1 || size > Number.MAX_SAFE_INTEGER;
  return { id, from: at + idBytes + width, ...(!isOpen && { size }) };
}

/** A file with its real sizes, and whether it declared more. */
export interface Sized {
  readonly bytes: FileBytes;
  readonly isCut: boolean;
}

/** Returns an AIFF or CAF file in which the declared size of the samples is the real one. */
export function withRealSize(format: 'AIFF' | 'CAF', bytes: FileBytes): Sized {
  const isCaf = format === 'CAF';
  const headBytes = isCaf ? 12 : 8;
  let common: number | undefined;
  let at = isCaf ? 8 : 12;
  for (let chunks = 0; at + headBytes <= bytes.length && at < MAX_HEAD && chunks < MAX_CHUNKS; chunks++) {
    const head = viewOf(bytes, at, at + headBytes);
    const name = String.fromCharCode(...bytes.subarray(at, at + 4));
    const size = isCaf ? Number(head.getBigInt64(4)) : head.getUint32(4);
    const rest = bytes.length - at - headBytes;
    if (name === (isCaf ? 'data' : 'SSND')) {
      const isOpen = isCaf ? size === -1 : size === 0;
      if (size <= rest && !isOpen) break;
      return { bytes: isCaf ? cafOf(bytes, at, rest) : aiffOf(bytes, common, at, rest), isCut: !isOpen };
    }
    if (name === 'COMM') common = at + headBytes;
    at += headBytes + (isCaf ? size : size + (size & 1));
    if (size < 0) break;
  }
  return { bytes, isCut: false };
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

/** Most parts of a file that are examined. Two hours of sound have half as many; this bounds the work for a file of nothing but headers. */
const MAX_PARTS = 1 << 20;
/** Bytes that are searched at a time. */
const SEARCHED_BYTES = 1 << 20;

/** Begins a part with sound: a cluster, a fragment, a page. */
const MARKS: Partial<Readonly<Record<FileFormat, string>>> = { WebM: '\x1f\x43\xb6\x75', MP4: 'moof', Ogg: 'OggS' };

/**
 * Whether the structure of a file breaks in its middle, where a piece of an upload is missing or a disk was bad, and there is sound behind the break. The reader takes
 * what is there for a header, and skips to the end of the file or to the next sound without an error.
 */
export function hasDamagedMiddle(format: FileFormat, bytes: FileBytes): boolean {
  const mark = MARKS[format];
  if (mark === undefined) return false;
  const at = format === 'WebM' ? webmBreak(bytes) : format === 'MP4' ? mp4Break(bytes) : oggBreak(bytes);
  return at !== undefined && contains(bytes, mark, at);
}

/** What a segment and a cluster contain. */
const ELEMENTS: ReadonlySet<number> = new Set([
  SEGMENT, 0x114d9b74, 0x1549a966, 0x1654ae6b, 0x1c53bb6b, 0x1941a469, 0x1043a770, 0x1254c367, CLUSTER, 0xe7, 0xa3, 0xa0, 0xa7, 0xab, 0xaf, 0x5854, 0xec, 0xbf,
]); // prettier-ignore

function webmBreak(bytes: FileBytes): number | undefined {
  const ebml = element(bytes, 0);
  if (ebml?.size === undefined) return undefined;
  let at = ebml.from + ebml.size;
  for (let parts = 0; parts < MAX_PARTS; parts++) {
    const head = element(bytes, at);
    // The rest is too short for a header, or was cut off.
    if (!head) return undefined;
    const isParent = head.id === SEGMENT || head.id === CLUSTER;
    if (!ELEMENTS.has(head.id) || (head.size === undefined && !isParent)) return at;
    at = head.from + (isParent ? 0 : head.size!);
  }
  return undefined;
}

function mp4Break(bytes: FileBytes): number | undefined {
  let at = 0;
  let parts = 0;
  for (const { type, to } of eachBox(bytes, whole(bytes))) {
    if (!/^[\x20-\x7e]{4}$/.test(type)) return at;
    if (++parts >= MAX_PARTS) return undefined;
    at = to;
  }
  return at;
}

/** Bytes of a page's header, whose last one counts the bytes behind it; those are the sizes of what follows. */
const PAGE_HEAD = 27;

function oggBreak(bytes: FileBytes): number | undefined {
  let at = 0;
  for (let parts = 0; parts < MAX_PARTS && at + PAGE_HEAD <= bytes.length; parts++) {
    const head = bytes.subarray(at, at + PAGE_HEAD);
    if (viewOf(head, 0, 4).getUint32(0) !== 0x4f676753) return at;
    const sizes = bytes.subarray(at + PAGE_HEAD, at + PAGE_HEAD + head[PAGE_HEAD - 1]!);
    at += PAGE_HEAD + sizes.length + sizes.reduce((sum, size) => sum + size, 0);
  }
  return undefined;
}

function contains(bytes: FileBytes, mark: string, from: number): boolean {
  for (let at = from; at < bytes.length; at += SEARCHED_BYTES) {
    const { buffer, byteOffset, byteLength } = bytes.subarray(at, at + SEARCHED_BYTES + mark.length - 1);
    if (Buffer.from(buffer, byteOffset, byteLength).includes(mark, 0, 'latin1')) return true;
  }
  return false;
}
