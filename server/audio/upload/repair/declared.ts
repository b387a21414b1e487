/**
 * The lengths that FLAC and MP3 files declare: their frames follow one another wherever a file was cut, so nothing else tells that some are missing. Sources: RFC 9639,
 * section 8.2; "MP3 Info Tag", revision 1, of the LAME project; Fraunhofer's VBRI header.
 */
import type { FileBytes } from '../../../../engine/audio/wav.ts';
import { viewOf } from '../headers.ts';
import { FRAME_HEAD_BYTES, mpegFrame } from '../mpeg-start.ts';
import type { FileFormat } from '../sniff.ts';
import { textAt } from './part.ts';
import { tagEnd } from './tags.ts';

/** Frames that may be missing: some encoders count the one that has the header, and some decoders need one to begin with. */
const SPARE_FRAMES = 2;

/** Fewest samples, at the file's own rate, that a whole file has; undefined if it does not declare its length. */
export function declaredSamples(format: FileFormat, bytes: FileBytes): number | undefined {
  if (format === 'FLAC') return flacSamples(bytes);
  return format === 'MP3' ? mp3Samples(bytes) : undefined;
}

function flacSamples(bytes: FileBytes): number | undefined {
  if (bytes.length < 26) return undefined;
  const view = viewOf(bytes, 21, 26);
  // 36 bits, of which 0 is an unknown length.
  return (view.getUint8(0) & 15) * 2 ** 32 + view.getUint32(1) || undefined;
}

function mp3Samples(bytes: FileBytes): number | undefined {
  const at = tagEnd(bytes, 0);
  const head = bytes.subarray(at, at + FRAME_HEAD_BYTES);
  const frame = mpegFrame(head, 0);
  if (!frame || at + frame.length > bytes.length) return undefined;
  const fields = viewOf(bytes, at, at + frame.length);
  const isMpeg1 = (head[1]! & 0x08) !== 0;
  const isMono = head[3]! >> 6 === 3;
  const perFrame = isMpeg1 ? 1152 : 576;
  const beyond = (frames: number, silence = 0): number => Math.max(0, (frames - SPARE_FRAMES) * perFrame - silence);
  if (textAt(bytes, at + 36, 4) === 'VBRI' && frame.length >= 54) return beyond(fields.getUint32(50));
  // The header is behind the side information, where others have their sound.
  const tag = 4 + (isMpeg1 ? (isMono ? 17 : 32) : isMono ? 9 : 17);
  if (!/^(Xing|Info)$/.test(textAt(bytes, at + tag, 4)) || frame.length < tag + 12) return undefined;
  const flags = fields.getUint32(tag + 4);
  if ((flags & 1) === 0) return undefined;
  const extension = tag + 8 + (flags & 1 ? 4 : 0) + (flags & 2 ? 4 : 0) + (flags & 4 ? 100 : 0) + (flags & 8 ? 4 : 0);
  const silence = frame.length < extension + 24 ? 0 : fields.getUint32(extension + 20) & 0xff_ffff;
  return beyond(fields.getUint32(tag + 8), (silence >> 12) + (silence & 0xfff));
}
