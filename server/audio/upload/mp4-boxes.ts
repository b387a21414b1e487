/** The boxes that MP4 and QuickTime files consist of, the one track that is read, and by its edit list the part of it that is played. Source: ISO/IEC 14496-12. */
import type { FileBytes } from '../../../engine/audio/wav.ts';
import { viewOf } from './headers.ts';

/** Boxes looked at in one box; real files have a few dozen. */
const MAX_BOXES = 1_000;
/** Tracks looked at: each may have so many boxes, and the thread that looks has others to serve. */
const MAX_TRACKS = 50;

export interface Box {
  readonly type: string;
  /** Its content. */
  readonly from: number;
  readonly to: number;
}

/** A file as a box, whose boxes are those of the top level. */
export const whole = (bytes: FileBytes): Box => ({ type: '', from: 0, to: bytes.length });

/** The first of the tracks with sound. */
export function soundTrack(bytes: FileBytes): Box | undefined {
  const moov = find(bytes, whole(bytes), 'moov');
  const tracks = moov ? boxes(bytes, moov).filter(({ type }) => type === 'trak') : [];
  return tracks.slice(0, MAX_TRACKS).find((track) => isSound(bytes, track));
}

function isSound(bytes: FileBytes, track: Box): boolean {
  const handler = find(bytes, track, 'mdia', 'hdlr');
  return handler !== undefined && text(bytes, handler.from + 8) === 'soun';
}

/** Ticks a second of an mvhd or mdhd box. */
export function timescaleOf(bytes: FileBytes, { from, to }: Box): number {
  const view = viewOf(bytes, from, Math.min(to, from + 24));
  if (view.byteLength < 24) return 0;
  return view.getUint32(view.getUint8(0) === 1 ? 20 : 12);
}

/** The first box of each type in turn, one inside the other. */
export function find(bytes: FileBytes, parent: Box, ...types: readonly string[]): Box | undefined {
  return types.reduce<Box | undefined>((box, type) => box && child(bytes, box, type), parent);
}

/** The first of a type, of the first boxes. */
function child(bytes: FileBytes, parent: Box, type: string): Box | undefined {
  let looked = 0;
  for (const box of eachBox(bytes, parent)) {
    if (box.type === type) return box;
    if (++looked >= MAX_BOXES) break;
  }
  return undefined;
}

/** The first boxes in one. */
export function boxes(bytes: FileBytes, box: Box, most = MAX_BOXES): Box[] {
  const all: Box[] = [];
  for (const one of eachBox(bytes, box)) if (all.push(one) >= most) break;
  return all;
}

/** All boxes in one, of which a file in fragments has tens of thousands. */
export function* eachBox(bytes: FileBytes, { from, to }: Box): Generator<Box> {
  for (let at = from; at + 8 <= to;) {
    const view = viewOf(bytes, at, Math.min(at + 16, to));
    const short = view.getUint32(0);
    const isLong = short === 1 && view.byteLength === 16;
    const size = short === 0 ? to - at : isLong ? Number(view.getBigUint64(8)) : short;
    const head = isLong ? 16 : 8;
    if (size < head || size > to - at) break;
    yield { type: text(bytes, at + 4), from: at + head, to: at + size };
    at += size;
  }
}

const text = (bytes: FileBytes, at: number): string => String.fromCharCode(...bytes.subarray(at, at + 4));

/** What is played of a sound, in seconds: encoders put silence before it and fill the last packet. */
export interface Presentation {
  /** Decoded before the first sample that is played. */
  readonly skip: number;
  /** Played after that; absent = all. */
  readonly length?: number;
}

const ALL: Presentation = { skip: 0 };

/** The presentation of the first sound track; everything where the file does not say, or not rightly. */
export function presentationOf(bytes: FileBytes): Presentation {
  const mvhd = find(bytes, whole(bytes), 'moov', 'mvhd');
  if (!mvhd) return ALL;
  const track = soundTrack(bytes);
  const mdhd = track && find(bytes, track, 'mdia', 'mdhd');
  const elst = track && find(bytes, track, 'edts', 'elst');
  if (!mdhd || !elst) return ALL;
  const edit = firstEdit(bytes, elst);
  const [movieScale, mediaScale] = [timescaleOf(bytes, mvhd), timescaleOf(bytes, mdhd)];
  if (!edit || !(movieScale > 0) || !(mediaScale > 0)) return ALL;
  const length = edit.duration / movieScale;
  return { skip: edit.mediaTime / mediaScale, ...(length > 0 && { length }) };
}

/** Where the sound begins in the media, if the list has that one edit: more of them are cuts, which are heard as they lie. */
function firstEdit(bytes: FileBytes, { from, to }: Box): { duration: number; mediaTime: number } | undefined {
  const view = viewOf(bytes, from, Math.min(to, from + 28));
  if (view.byteLength < 20 || view.getUint32(4) !== 1) return undefined;
  const isLong = view.getUint8(0) === 1;
  if (isLong && view.byteLength < 24) return undefined;
  const [duration, mediaTime] = isLong
    ? [Number(view.getBigUint64(8)), Number(view.getBigInt64(16))]
    : [view.getUint32(8), view.getInt32(12)];
  // A time of -1 is an empty edit: a pause before the track.
  return mediaTime < 0 ? undefined : { duration, mediaTime };
}
