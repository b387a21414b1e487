/**
 * The frame that MP3 files of LAME begin with: how many frames follow, and how much silence the encoder put before and after the sound. Without it
 * players guess the length. Source of the layout: "MP3 Info Tag", revision 1, of the LAME project.
 */

/** Samples that LAME puts before the sound. */
const DELAY = 576;
/** Flags of the fields: frames and bytes are told. */
const FRAMES_AND_BYTES = 3;

/** What a file with one bit rate and one channel is made of. */
export interface Mp3Stream {
  /** The four bytes that a frame begins with. */
  readonly header: Uint8Array;
  readonly sampleRate: number;
  /** kbit/s. */
  readonly bitrate: number;
}

/** What only the end of a file tells. */
export interface Mp3Length {
  /** Samples that were encoded, and bytes of the frames made of them. */
  readonly samples: number;
  readonly bytes: number;
}

/** The frame of a file whose end is known, or of one that is still being made; both have as many bytes. */
export function mp3Info({ header, sampleRate, bitrate }: Mp3Stream, length?: Mp3Length): Uint8Array {
  // The lowest version bit: MPEG 1, whose frames are twice as long as those of MPEG 2 and 2.5.
  const isMpeg1 = (header[1]! & 0x08) !== 0;
  const samplesPerFrame = isMpeg1 ? 1152 : 576;
  const bytesPerFrame = ((samplesPerFrame / 8) * bitrate * 1000) / sampleRate;
  const frame = new Uint8Array(Math.floor(bytesPerFrame));
  const view = new DataView(frame.buffer);
  frame.set(header);
  // No checksum, and no byte more than the rate asks for.
  frame[1]! |= 1;
  frame[2]! &= ~2;
  // After the side information of one channel.
  const at = isMpeg1 ? 21 : 13;
  frame.set(ascii('Info'), at);
  let extension = at + 8;
  if (length) {
    view.setUint32(at + 4, FRAMES_AND_BYTES);
    // Frames of a constant rate differ by a byte at most, and never add up to more than one.
    const frames = Math.round(length.bytes / bytesPerFrame);
    view.setUint32(at + 8, frames);
    view.setUint32(at + 12, frame.length + length.bytes);
    extension = at + 16;
    view.setUint32(extension + 20, paddings(DELAY, frames * samplesPerFrame - DELAY - length.samples));
  } else view.setUint32(extension + 20, paddings(DELAY, 0));
  frame.set(ascii('LAME3.100'), extension);
  return frame;
}

/** Two numbers of 12 bits in the three bytes after a first one, which tells no average bit rate. */
const paddings = (before: number, after: number): number => (before << 12) | Math.min(0xfff, Math.max(0, after));

const ascii = (text: string): Uint8Array => new TextEncoder().encode(text);
