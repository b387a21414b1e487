/** Tags with titles and pictures before and behind the sound. Sources: ID3v1, "ID3 tag version 2.4.0", "APE Tags Specification" 2.0. */
import type { FileBytes } from '../../../../engine/audio/wav.ts';
import { viewOf } from '../headers.ts';
import { cutOut, textAt } from './part.ts';

const ID3_HEAD = 10;
const ID3V1_BYTES = 128;
const APE_FOOTER = 32;

/** Offset behind an ID3v2 tag that begins here; `at` if none does. */
export function tagEnd(bytes: FileBytes, at: number): number {
  if (textAt(bytes, at, 3) !== 'ID3' || at + ID3_HEAD > bytes.length) return at;
  // A size in four times seven bits.
  return bytes.subarray(at + 6, at + ID3_HEAD).reduce((size, byte) => size * 128 + (byte & 0x7f), 0) + at + ID3_HEAD;
}

/** Returns a file without the ID3v1 and APE tags at its end, which belong to MP3 and which some programs write behind FLAC as well. */
export function withoutTrailingTags(bytes: FileBytes): FileBytes {
  let to = bytes.length;
  if (textAt(bytes, to - ID3V1_BYTES, 3) === 'TAG') to -= ID3V1_BYTES;
  const footer = to - APE_FOOTER;
  if (textAt(bytes, footer, 8) === 'APETAGEX') {
    const fields = viewOf(bytes, footer, to);
    // The size has the footer in it, and not the header, of which a flag says whether there is one.
    const size = fields.getUint32(12, true) + (fields.getUint8(23) & 0x80 ? APE_FOOTER : 0);
    to = Math.max(0, to - size);
  }
  return to === bytes.length ? bytes : cutOut(bytes, 0, to);
}
