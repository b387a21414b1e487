/**
 * Takes files apart that were put one behind the other, as `cat` and a page's Blob of several recordings do: readers stop at the end of the first one, or go on with its
 * parameters. Sources: RFC 9639 (FLAC), Microsoft's "Multimedia Programming Interface and Data Specifications 1.0" (RIFF), Apple's "Audio Interchange File Format"
 * and "Core Audio Format", Sony's "Wave 64", Sun's <audio/au.h>.
 */
import { findWavData, isPlaceholder, isWav } from '../../../../engine/audio/wav.ts';
import type { FileBytes } from '../../../../engine/audio/wav.ts';
import { EngineError } from '../../../../engine/errors.ts';
import { viewOf } from '../headers.ts';
import { FRAME_HEAD_BYTES, frameReader, mpegStart } from '../mpeg-start.ts';
import { W64_MAGIC } from '../sniff.ts';
import type { FileFormat } from '../sniff.ts';
import { mp4Parts } from './mp4.ts';
import { MAX_PARTS, cutOut, isPadding, search, textAt } from './part.ts';
import type { Part } from './part.ts';
import { tagEnd, withoutTrailingTags } from './tags.ts';
import { webmParts } from './webm.ts';

/** Finds the parts of a file: the files that were joined, each without what is damaged in its middle. A whole file is one part. */
export function partsOf(format: FileFormat, bytes: FileBytes): Part[] {
  if (format === 'WebM') return webmParts(bytes);
  if (format === 'MP4') return mp4Parts(bytes);
  const parts: Part[] = [];
  for (let at = 0; at < bytes.length;) {
    const rest = at === 0 ? bytes : cutOut(bytes, at, bytes.length);
    const next = rest.length < HEAD_BYTES ? undefined : NEXT[format]?.(rest);
    const isTooMuch = next !== undefined && parts.length >= MAX_PARTS;
    const part = next === undefined ? rest : cutOut(bytes, at, at + next);
    parts.push({ bytes: format === 'FLAC' ? withoutTrailingTags(part) : part, isDamaged: isTooMuch });
    if (isTooMuch) break;
    at += part.length;
  }
  return parts;
}

/** Bytes that every file has more of. */
const HEAD_BYTES = 32;

/** Functions that return the offset at which the second of joined files begins; undefined for a single file. */
const NEXT: Partial<Readonly<Record<FileFormat, (bytes: FileBytes) => number | undefined>>> = {
  WAV: nextWav,
  W64: (bytes) => ifLike(bytes, Math.ceil(Number(viewOf(bytes, 0, 24).getBigUint64(16, true)) / 8) * 8, W64_MAGIC),
  AIFF: (bytes) => ifLike(bytes, 8 + viewOf(bytes, 0, 8).getUint32(4), /^FORM[\s\S]{4}AIF[FC]/),
  AU: (bytes) => ifLike(bytes, viewOf(bytes, 4, 8).getUint32(0) + viewOf(bytes, 8, 12).getUint32(0), /^\.snd/),
  CAF: nextCaf,
  FLAC: nextFlac,
  MP3: nextMpeg,
  AAC: nextMpeg,
};

const MAGIC_BYTES = 16;

/** The offset, if it is not the file's own beginning and the bytes there are like these. */
const ifLike = (bytes: FileBytes, at: number, magic: RegExp): number | undefined =>
  at > 0 && magic.test(textAt(bytes, at, MAGIC_BYTES)) ? at : undefined;

/** Most chunks behind the samples that are examined. */
const MAX_CHUNKS = 1_000;

/** What follows the samples of a WAV file and its other chunks: the offset of another file, and the number of bytes that are nothing known. */
export function behindSamples(bytes: FileBytes): { readonly next?: number; readonly unread: number } {
  const { from, declared } = findWavData(bytes);
  if (isPlaceholder(declared)) return { unread: 0 };
  const end = from + declared;
  // Some writers forget the byte that pads an odd size.
  let at = end % 2 === 1 && isChunk(bytes, end + 1) ? end + 1 : end;
  for (let chunks = 0; chunks < MAX_CHUNKS && at + 8 <= bytes.length; chunks++) {
    if (isWav(bytes.subarray(at, at + 12))) return { next: at, unread: 0 };
    if (!isChunk(bytes, at)) return { unread: isPadding(bytes, at) ? 0 : bytes.length - at };
    const size = viewOf(bytes, at + 4, at + 8).getUint32(0, true);
    at += 8 + size + (size & 1);
  }
  return { unread: 0 };
}

/** Whether a chunk with a name of printable characters begins here, and ends within the file. */
const isChunk = (bytes: FileBytes, at: number): boolean =>
  at + 8 <= bytes.length &&
  /^[\x20-\x7e]{4}$/.test(textAt(bytes, at, 4)) &&
  (isWav(bytes.subarray(at, at + 12)) || at + 8 + viewOf(bytes, at + 4, at + 8).getUint32(0, true) <= bytes.length);

function nextWav(bytes: FileBytes): number | undefined {
  try {
    return behindSamples(bytes).next;
  } catch (error) {
    // Its reader reports broken headers.
    if (error instanceof EngineError) return undefined;
    throw error;
  }
}

const CAF_HEAD = 8;
const CAF_MAGIC = 'caff\0\x01';

function nextCaf(bytes: FileBytes): number | undefined {
  let at = CAF_HEAD;
  for (let chunks = 0; chunks < MAX_CHUNKS && at + 12 <= bytes.length; chunks++) {
    if (textAt(bytes, at, 6) === CAF_MAGIC) return at;
    const size = Number(viewOf(bytes, at + 4, at + 12).getBigInt64(0));
    if (size < 0) return undefined;
    at += 12 + size;
  }
  return undefined;
}

/** FLAC has no end: the next file begins with its name and a description of its stream, which has one size. */
function nextFlac(bytes: FileBytes): number | undefined {
  return search(bytes, 1, [0x66], (at) => /^fLaC[\0\x80]\0\0\x22/.test(textAt(bytes, at, 8)));
}

/** Finds where frames of MPEG sound go on with another sample rate, or in stereo instead of mono, which the decoder does not follow. */
function nextMpeg(bytes: FileBytes): number | undefined {
  let kind: number | undefined;
  let read: ReturnType<typeof frameReader> | undefined;
  for (let at = 0; at < bytes.length;) {
    const frame = read?.(bytes.subarray(at, at + FRAME_HEAD_BYTES), 0);
    if (frame && frame.kind === kind) {
      at += frame.length;
      continue;
    }
    at = tagEnd(bytes, at);
    const start = mpegStart(cutOut(bytes, at, bytes.length));
    if (!start) return undefined;
    if (kind !== undefined && start.kind !== kind) return at + start.at;
    ({ kind } = start);
    read = frameReader(start.format);
    at += start.at;
  }
  return undefined;
}
