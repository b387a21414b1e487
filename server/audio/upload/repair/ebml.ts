/** Reads the elements of WebM and Matroska files. Source: RFC 8794 (EBML), RFC 9559 (Matroska). */
import type { FileBytes } from '../../../../engine/audio/wav.ts';
import { printable } from '../headers.ts';

/** The element at the beginning of a file. */
export const EBML = 0x1a45dfa3;
/** Elements that contain all others, and those of a part of the sound. A live recorder leaves the sizes of both open. */
export const [SEGMENT, CLUSTER] = [0x18538067, 0x1f43b675];
/** Tables of places in the file. */
export const [SEEK_HEAD, CUES] = [0x114d9b74, 0x1c53bb6b];
/** Packets of sound, within a cluster, and the time of a cluster. */
export const [SIMPLE_BLOCK, BLOCK_GROUP, TIMESTAMP] = [0xa3, 0xa0, 0xe7];

/** Head of an element: `from` is where its content begins, and an open `size` is absent. */
export interface Element {
  readonly id: number;
  readonly from: number;
  readonly size?: number;
}

/** Reads the head of an element. Undefined where the file has no room for any head. */
export function element(bytes: FileBytes, at: number): Element | undefined {
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

/** Elements of the list of tracks: a track, its type, and what it calls its codec. */
const [TRACKS, TRACK, TRACK_TYPE, CODEC_ID] = [0x1654ae6b, 0xae, 0x83, 0x86];
const SOUND = 2;
/** Longest name of a codec that is shown. */
const MAX_NAME = 100;
/** Most elements that are examined within another; real files have a few dozen. */
const MAX_ELEMENTS = 1_000;

/** What the first sound track calls its codec; undefined if there is no such track. */
export function webmCodec(bytes: FileBytes): string | undefined {
  const segment = inside(bytes).find(({ id }) => id === SEGMENT);
  const tracks = segment && inside(bytes, segment).find(({ id }) => id === TRACKS);
  for (const track of tracks ? inside(bytes, tracks) : []) {
    if (track.id !== TRACK) continue;
    const fields = inside(bytes, track);
    const field = (wanted: number): Uint8Array => {
      const { from = 0, size = 0 } = fields.find(({ id }) => id === wanted) ?? {};
      return bytes.subarray(from, from + Math.min(size, MAX_NAME));
    };
    if (field(TRACK_TYPE).at(-1) === SOUND) return printable(String.fromCharCode(...field(CODEC_ID)));
  }
  return undefined;
}

/** The elements within another, or at the top level, up to the first one whose size is open. */
function inside(bytes: FileBytes, parent?: Element): Element[] {
  const end = parent?.size === undefined ? bytes.length : Math.min(bytes.length, parent.from + parent.size);
  const all: Element[] = [];
  for (let at = parent?.from ?? 0; at < end && all.length < MAX_ELEMENTS;) {
    const one = element(bytes, at);
    if (!one) break;
    all.push(one);
    if (one.size === undefined) break;
    at = one.from + one.size;
  }
  return all;
}

/** End of the element that contains all sound; undefined if its size is open. */
export function segmentEnd(bytes: FileBytes): number | undefined {
  const head = element(bytes, 0);
  const segment = head?.id === EBML && head.size !== undefined ? element(bytes, head.from + head.size) : undefined;
  return segment?.id === SEGMENT && segment.size !== undefined ? segment.from + segment.size : undefined;
}
