/**
 * Repairs files that end before their headers say, like half an upload, or whose headers do not say, like those of recorders that cannot seek. Symphonia looks for
 * what follows the sound first, and refuses both. Sources: ISO/IEC 14496-12, RFC 9559 (Matroska), Apple's "Audio Interchange File Format" and "Core Audio Format".
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
const SEGMENT = 0x18538067;

/** End of the element that contains all sound; undefined if its size is open. */
function segmentEnd(bytes: FileBytes): number | undefined {
  const head = element(bytes, 0);
  const segment = head?.id === EBML && head.size !== undefined ? element(bytes, head.from + head.size) : undefined;
  return segment?.id === SEGMENT && segment.size !== undefined ? segment.from + segment.size : undefined;
}

/** Reads the head of an EBML element whose id has four bytes. */
function element(bytes: FileBytes, at: number): { readonly id: number; readonly from: number; readonly size?: number } | undefined {
  const head = bytes.subarray(at, at + 12);
  if (head.length < 12) return undefined;
  const view = viewOf(bytes, at, at + 12);
  const width = Math.clz32(head[4]!) - 23;
  if (width > 8) return undefined;
  let size = head[4]! & (0xff >> width);
  for (let i = 1; i < width; i++) size = size * 256 + head[4 + i]!;
  const isOpen = size === 2 ** (7 * width) - 1 || size > Number.MAX_SAFE_INTEGER;
  return { id: view.getUint32(0), from: at + 4 + width, ...(!isOpen && { size }) };
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
