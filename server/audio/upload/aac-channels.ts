/**
 * Renumbers the channel configuration of 7.1 AAC in MP4 files from 12, as newer encoders write it, to 7, because the decoder does not know 12. Both have the same
 * order of channels, and differ in where the loudspeakers stand, which does not matter to the mean of all channels. Source: ISO/IEC 14496-3, table 1.19; 14496-1,
 * descriptors.
 */
import type { FileBytes } from '../../../engine/audio/wav.ts';
import { find, soundTrack } from './mp4-boxes.ts';

const LOW_COMPLEXITY = 2;
const [NEW_7_1, OLD_7_1] = [12, 7];
/** Bytes before the boxes of the first sample description: the list's fields, and the description's. */
const HEAD_BYTES = 8 + 36;
const [STREAM, DECODER, CONFIG] = [3, 4, 5];

/** Returns the file with the old number, or unchanged if it has no such track. */
export function withKnownChannels(bytes: FileBytes): FileBytes {
  const track = soundTrack(bytes);
  const list = track && find(bytes, track, 'mdia', 'minf', 'stbl', 'stsd');
  const esds = list && find(bytes, { ...list, from: list.from + HEAD_BYTES }, 'esds');
  const at = esds && configAt(bytes.subarray(esds.from, Math.min(esds.to, esds.from + 200)));
  if (!at) return bytes;
  const place = esds.from + at;
  const [first = 0, second = 0] = bytes.subarray(place, place + 2);
  if (first >> 3 !== LOW_COMPLEXITY || ((second >> 3) & 15) !== NEW_7_1) return bytes;
  return new Changed(bytes, place + 1, (second & ~(15 << 3)) | (OLD_7_1 << 3));
}

/** Offset of the decoder's configuration in an esds box; undefined if there is none. */
function configAt(box: Uint8Array): number | undefined {
  let at = 4;
  for (const wanted of [STREAM, DECODER, CONFIG]) {
    if (box[at] !== wanted) return undefined;
    // A descriptor's length ends with the first byte that is below 128.
    do at++;
    while (box[at]! & 0x80);
    at++;
    if (wanted === STREAM) {
      const flags = box[at + 2] ?? 0;
      at += 3 + (flags & 0x80 ? 2 : 0) + (flags & 0x40 ? 1 + (box[at + 3] ?? 0) : 0) + (flags & 0x20 ? 2 : 0);
    } else if (wanted === DECODER) at += 13;
  }
  return at + 2 <= box.length ? at : undefined;
}

/** A file with one byte replaced, without a copy of the others. */
class Changed implements FileBytes {
  readonly length: number;
  readonly #bytes: FileBytes;
  readonly #at: number;
  readonly #value: number;

  constructor(bytes: FileBytes, at: number, value: number) {
    this.length = bytes.length;
    this.#bytes = bytes;
    this.#at = at;
    this.#value = value;
  }

  subarray(from: number, to = this.length): Uint8Array {
    const part = this.#bytes.subarray(from, to);
    const inside = this.#at - from;
    if (inside < 0 || inside >= part.length) return part;
    const copy = Uint8Array.from(part);
    copy[inside] = this.#value;
    return copy;
  }
}
