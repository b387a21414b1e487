/** Reads the boxes of MP4 and QuickTime files, finds the one track that is read, and by its edit list the part of it that is played. Source: ISO/IEC 14496-12. */
import type { FileBytes } from '../../../engine/audio/wav.ts';
import { printable, viewOf } from './headers.ts';

/** Most boxes that are examined within a box; real files have a few dozen. */
const MAX_BOXES = 1_000;
/** Most tracks that are examined: each may have as many boxes, and this also runs on a thread that serves others. */
const MAX_TRACKS = 50;

/** A box of an MP4 file. */
export interface Box {
  readonly type: string;
  /** Content, as file offsets [from, to). */
  readonly from: number;
  readonly to: number;
}

/** A whole file as a box, which contains those of the top level. */
export const whole = (bytes: FileBytes): Box => ({ type: '', from: 0, to: bytes.length });

/** The first sound track. */
export function soundTrack(bytes: FileBytes): Box | undefined {
  const moov = find(bytes, whole(bytes), 'moov');
  const tracks = moov ? boxes(bytes, moov).filter(({ type }) => type === 'trak') : [];
  return tracks.slice(0, MAX_TRACKS).find((track) => isSound(bytes, track));
}

/** Names of codecs of telephones, films and QuickTime; others are called what the file calls them. */
const CODECS: Readonly<Record<string, string>> = {
  samr: 'AMR', sawb: 'AMR-WB', 'ac-3': 'AC-3', 'ec-3': 'E-AC-3', ima4: 'IMA ADPCM', QDM2: 'QDesign Music', Qclp: 'QCELP',
}; // prettier-ignore

/** Name of the first sound track's codec; undefined if there is no such track. */
export function mp4Codec(bytes: FileBytes): string | undefined {
  const track = soundTrack(bytes);
  const list = track && find(bytes, track, 'mdia', 'minf', 'stbl', 'stsd');
  // Its version and a count precede the first description.
  const type = list && list.to - list.from >= 16 ? text(bytes, list.from + 12) : undefined;
  return type && (CODECS[type] ?? printable(type));
}

function isSound(bytes: FileBytes, track: Box): boolean {
  const handler = find(bytes, track, 'mdia', 'hdlr');
  return handler !== undefined && text(bytes, handler.from + 8) === 'soun';
}

/** Ticks per second of an mvhd or mdhd box; 0 if it is too short. */
export function timescaleOf(bytes: FileBytes, { from, to }: Box): number {
  const view = viewOf(bytes, from, Math.min(to, from + 24));
  if (view.byteLength < 24) return 0;
  return view.getUint32(view.getUint8(0) === 1 ? 20 : 12);
}

/** Finds a box by its path: the first box of each type within the previous one. */
export function find(bytes: FileBytes, parent: Box, ...types: readonly string[]): Box | undefined {
  return types.reduce<Box | undefined>((box, type) => box && child(bytes, box, type), parent);
}

/** The first box of a type, among the first MAX_BOXES. */
function child(bytes: FileBytes, parent: Box, type: string): Box | undefined {
  let looked = 0;
  for (const box of eachBox(bytes, parent)) {
    if (box.type === type) return box;
    if (++looked >= MAX_BOXES) break;
  }
  return undefined;
}

/** At most `most` boxes within a box. */
export function boxes(bytes: FileBytes, box: Box, most = MAX_BOXES): Box[] {
  const all: Box[] = [];
  for (const one of eachBox(bytes, box)) if (all.push(one) >= most) break;
  return all;
}

/** Yields all boxes within a box; a fragmented file may have tens of thousands. */
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

/** The part of a sound that is played, in seconds: encoders put silence before it and fill up the last packet. */
export interface Presentation {
  /** Length that is decoded before the first sample that is played. */
  readonly skip: number;
  /** Length that is played after that; absent = all of it. */
  readonly length?: number;
}

const ALL: Presentation = { skip: 0 };

/** The presentation of the first sound track; all of it if the file has no valid edit list. */
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

/** The only edit of a list; undefined if there are several, which are cuts: their sound is played as it is stored. */
function firstEdit(bytes: FileBytes, { from, to }: Box): { duration: number; mediaTime: number } | undefined {
  const view = viewOf(bytes, from, Math.min(to, from + 28));
  if (view.byteLength < 20 || view.getUint32(4) !== 1) return undefined;
  const isLong = view.getUint8(0) === 1;
  if (isLong && view.byteLength < 24) return undefined;
  const [duration, mediaTime] = isLong
    ? [Number(view.getBigUint64(8)), Number(view.getBigInt64(16))]
    : [view.getUint32(8), view.getInt32(12)];
  // A time of -1 means an empty edit: a pause before the track.
  return mediaTime < 0 ? undefined : { duration, mediaTime };
}
