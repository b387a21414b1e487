/**
 * Finds the first frame of MPEG audio in a file that was cut out of a longer one: it begins in the middle of a frame, which players skip. Sources: ISO/IEC 11172-3
 * and 13818-3, frame headers; ISO/IEC 13818-7, ADTS.
 */
import type { FileBytes } from '../../../engine/audio/wav.ts';

/** The first frame found, and its offset in the file. */
export interface MpegStart {
  readonly format: 'MP3' | 'AAC';
  readonly at: number;
  /** What its frames have in common: the layer, the sample rate, and whether they are mono. */
  readonly kind: number;
}

/** Bytes of a file that are searched. No frame is as long, but a tag or zeros may precede the first one. */
const SEARCHED_BYTES = 1 << 16;
/** Bytes of the longest frame, which is ADTS's; FRAMES of them must fit after the searched bytes. */
const FRAME_BYTES = 1 << 13;
/** Number of frames that must follow one another, since a single header is found in any noise. */
const FRAMES = 4;
/** Bit rates in kbit/s by their number in the header: MPEG 1 layer III, MPEG 1 layer II, and MPEG 2 and 2.5. */
const BIT_RATES = [
  [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
  [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
] as const;
const RATES = [44_100, 48_000, 32_000] as const;
const MPEG_1 = 3;
const LAYER_III = 1;
const LAYER_II = 2;

/** Finds the first of FRAMES consecutive frames; undefined if there are none. */
export function mpegStart(bytes: FileBytes): MpegStart | undefined {
  const part = bytes.subarray(0, Math.min(bytes.length, SEARCHED_BYTES + FRAMES * FRAME_BYTES));
  for (let at = 0; at < Math.min(part.length, SEARCHED_BYTES); at++) {
    if (part[at] !== 0xff) continue;
    for (const format of ['MP3', 'AAC'] as const) {
      const kind = follow(part, at, frameReader(format));
      if (kind !== undefined) return { format, at, kind };
    }
  }
  return undefined;
}

/** Bytes at the beginning of a frame that its reader needs. */
export const FRAME_HEAD_BYTES = 6;

/** Returns the function that reads the frames of a format. */
export const frameReader = (format: MpegStart['format']): ((part: Uint8Array, at: number) => Frame | undefined) =>
  format === 'MP3' ? mpegFrame : adtsFrame;

/** A frame: `kind`, which all frames of a stream have in common, and its length in bytes. */
export interface Frame {
  readonly kind: number;
  readonly length: number;
}

function follow(part: Uint8Array, from: number, read: (part: Uint8Array, at: number) => Frame | undefined): number | undefined {
  let kind: number | undefined;
  for (let frames = 0, at = from; frames < FRAMES; frames++) {
    const frame = read(part, at);
    if (!frame || (kind ?? frame.kind) !== frame.kind) return undefined;
    kind = frame.kind;
    at += frame.length;
  }
  return kind;
}

/** Reads a frame of layer II or III; undefined if there is none. */
export function mpegFrame(part: Uint8Array, at: number): Frame | undefined {
  const [first, second = 0, third = 0, fourth = 0] = part.subarray(at, at + 4);
  if (first !== 0xff || (second & 0xe0) !== 0xe0) return undefined;
  const [version, layer] = [(second >> 3) & 3, (second >> 1) & 3];
  if (version === 1 || (layer !== LAYER_III && layer !== LAYER_II)) return undefined;
  const bitRate = BIT_RATES[version === MPEG_1 ? layer - 1 : 2]?.[third >> 4];
  const rate = RATES[(third >> 2) & 3];
  if (!bitRate || !rate) return undefined;
  // Layer III of MPEG 2 and 2.5 has half the samples in a frame. MPEG 2 halves the rates, and 2.5 once more.
  const bytesOfSamples = version !== MPEG_1 && layer === LAYER_III ? 72 : 144;
  const length = Math.floor((bytesOfSamples * 1000 * bitRate) / (rate / (version === MPEG_1 ? 1 : version === 2 ? 2 : 4)));
  const isMono = fourth >> 6 === 3;
  return { kind: ((second & 0xfe) << 8) | (third & 0x0c) | (isMono ? 1 : 0), length: length + ((third >> 1) & 1) };
}

function adtsFrame(part: Uint8Array, at: number): Frame | undefined {
  const [first, second = 0, third = 0, fourth = 0, fifth = 0, sixth = 0] = part.subarray(at, at + 6);
  // A layer of 0 tells ADTS from MPEG audio's own frames; the last three numbers of rates are reserved.
  if (first !== 0xff || (second & 0xf6) !== 0xf0 || ((third >> 2) & 15) > 12) return undefined;
  const length = ((fourth & 3) << 11) | (fifth << 3) | (sixth >> 5);
  return length < 8 ? undefined : { kind: (second << 16) | ((third & 0xfd) << 8) | (fourth & 0xc0), length };
}
