/**
 * The info frame at the beginning of LAME's MP3 files: the number of frames, and the silence that the encoder put before and after the sound. Without it players
 * guess the length. Source of the layout: "MP3 Info Tag", revision 1, of the LAME project.
 */

/** Samples of silence that LAME puts before the sound. */
const DELAY = 576;
/** Flags: the numbers of frames and of bytes are present. */
const FRAMES_AND_BYTES = 3;

/** Format of a mono file with a constant bit rate. */
export interface Mp3Stream {
  /** First four bytes of a frame. */
  readonly header: Uint8Array;
  readonly sampleRate: number;
  /** kbit/s. */
  readonly bitrate: number;
}

/** Length of a file, known only at its end. */
export interface Mp3Length {
  /** Number of encoded samples, and of bytes of their frames. */
  readonly samples: number;
  readonly bytes: number;
}

/** Makes the info frame of a file. Without `length`, for a file still being encoded, it has the same size. */
export function mp3Info({ header, sampleRate, bitrate }: Mp3Stream, length?: Mp3Length): Uint8Array {
  // The lowest version bit: MPEG 1, whose frames are twice as long as those of MPEG 2 and 2.5.
  const isMpeg1 = (header[1]! & 0x08) !== 0;
  const samplesPerFrame = isMpeg1 ? 1152 : 576;
  const bytesPerFrame = ((samplesPerFrame / 8) * bitrate * 1000) / sampleRate;
  const frame = new Uint8Array(Math.floor(bytesPerFrame));
  const view = new DataView(frame.buffer);
  frame.set(header);
  // No checksum, and no padding byte.
  frame[1]! |= 1;
  frame[2]! &= ~2;
  // After the side information of one channel.
  const at = isMpeg1 ? 21 : 13;
  frame.set(ascii('Info'), at);
  let extension = at + 8;
  if (length) {
    view.setUint32(at + 4, FRAMES_AND_BYTES);
    // At a constant bit rate frames differ by a byte at most, and together from the exact rate by no more than one, so the quotient can be rounded.
    const frames = Math.round(length.bytes / bytesPerFrame);
    view.setUint32(at + 8, frames);
    view.setUint32(at + 12, frame.length + length.bytes);
    extension = at + 16;
    view.setUint32(extension + 20, paddings(DELAY, frames * samplesPerFrame - DELAY - length.samples));
  } else view.setUint32(extension + 20, paddings(DELAY, 0));
  frame.set(ascii('LAME3.100'), extension);
  return frame;
}

/** Packs two numbers of 12 bits into the last three bytes of a word. The first byte would be an average bit rate; 0 = none. */
const paddings = (before: number, after: number): number => (before << 12) | Math.min(0xfff, Math.max(0, after));

const ascii = (text: string): Uint8Array => new TextEncoder().encode(text);
