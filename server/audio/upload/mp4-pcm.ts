/**
 * Presents uncompressed sound in MP4 and QuickTime files (PCM, floats, A-law, mu-law) as a WAV file. Symphonia reads it one sample at a time, takes every sample
 * for little-endian, and knows neither MP4's names for it nor A-law and mu-law. Sources: Apple's "QuickTime File Format", sound sample descriptions; ISO/IEC
 * 14496-12; ISO/IEC 23003-5 (`ipcm`, `fpcm`).
 */
import type { FileBytes } from '../../../engine/audio/wav.ts';
import { viewOf, wavHeader } from './headers.ts';
import { find, presentationOf, soundTrack, timescaleOf } from './mp4-boxes.ts';
import type { Box } from './mp4-boxes.ts';
import { chunksOf } from './mp4-chunks.ts';
import type { Chunk } from './mp4-chunks.ts';

/** WAV format tags. */
const [PCM, FLOAT, A_LAW, MU_LAW] = [1, 3, 6, 7];
/** Bytes of the list of descriptions before the first one. */
const LIST_BYTES = 8;
/** Bytes of descriptions of version 0, 1 and 2 before their boxes. */
const HEAD_BYTES = [36, 52, 72] as const;
/** Flags of `lpcm`. */
const [IS_FLOAT, IS_HIGH_FIRST, IS_SIGNED] = [1, 2, 4];
const MAX_CHANNELS = 32;

/** How samples are stored in the file. */
interface Layout {
  readonly tag: number;
  readonly bits: number;
  readonly isHighFirst?: boolean;
  /** Whether 8-bit samples are signed, which WAV's are not. */
  readonly isSigned8?: boolean;
}

/**
 * Returns the samples that are played as a WAV file, without copying them; undefined if the sound is compressed. With `isRough` there may be more samples than in
 * the file.
 */
export function mp4Samples(bytes: FileBytes, isRough: boolean): FileBytes | undefined {
  const track = soundTrack(bytes);
  const list = track && find(bytes, track, 'mdia', 'minf', 'stbl', 'stsd');
  const mdhd = track && find(bytes, track, 'mdia', 'mdhd');
  if (!list || !mdhd) return undefined;
  const at = list.from + LIST_BYTES;
  const head = viewOf(bytes, at, Math.min(list.to, at + HEAD_BYTES[2]));
  if (head.byteLength < HEAD_BYTES[0]) return undefined;
  // MP4's version 1 has no additional fields; it is told by the list's version, which is 1 too.
  const headBytes = HEAD_BYTES[bytes.subarray(list.from, at)[0] === 1 ? 0 : head.getUint16(16)];
  if (headBytes === undefined || head.byteLength < headBytes) return undefined;
  const isNew = headBytes === HEAD_BYTES[2];
  const inner: Box = { type: '', from: at + headBytes, to: Math.min(list.to, at + head.getUint32(0)) };
  const layout = layoutOf(bytes, head, inner);
  if (!layout) return undefined;
  const channels = isNew ? head.getUint32(48) : head.getUint16(24);
  const rate = isNew ? head.getFloat64(40) : rateOf(bytes, inner) || head.getUint16(32) || timescaleOf(bytes, mdhd);
  if (channels < 1 || channels > MAX_CHANNELS || !(rate > 0)) return undefined;
  const frameBytes = (channels * layout.bits) / 8;
  const all = chunksOf(bytes, track, frameBytes, isRough);
  const { skip, length = Infinity } = presentationOf(bytes);
  const total = all.reduce((sum, chunk) => sum + chunk.length, 0);
  const from = Math.min(total, Math.round(skip * rate) * frameBytes);
  const to = Math.min(total, from + Math.round(length * rate) * frameBytes);
  return new WavView(bytes, { chunks: all, from, to, layout, head: wavHeader(formatOf(layout, rate, channels), to - from) });
}

/** Rate in Hz that does not fit into 16 bits; 0 if there is no box with one. */
function rateOf(bytes: FileBytes, inner: Box): number {
  const srat = find(bytes, inner, 'srat');
  return srat && srat.to - srat.from >= 8 ? viewOf(bytes, srat.from, srat.to).getUint32(4) : 0;
}

/** How the samples of a description are stored; undefined if they are compressed. `inner` = the part of the description after its fields. */
function layoutOf(bytes: FileBytes, head: DataView, inner: Box): Layout | undefined {
  const isHighFirst = !isLowFirst(bytes, inner);
  const bits = head.getUint16(26);
  switch (String.fromCharCode(head.getUint8(4), head.getUint8(5), head.getUint8(6), head.getUint8(7))) {
    case 'raw ':
      return bits === 16 ? samples(16, true) : samples(8, false, false);
    case 'twos':
      return samples(bits, true);
    case 'sowt':
      return samples(bits, false);
    case 'in24':
      return samples(24, isHighFirst);
    case 'in32':
      return samples(32, isHighFirst);
    case 'fl32':
      return { tag: FLOAT, bits: 32, isHighFirst };
    case 'fl64':
      return { tag: FLOAT, bits: 64, isHighFirst };
    case 'alaw':
      return { tag: A_LAW, bits: 8 };
    case 'ulaw':
      return { tag: MU_LAW, bits: 8 };
    case 'ipcm':
    case 'fpcm':
      return mp4Layout(bytes, find(bytes, inner, 'pcmC'), head.getUint8(4) === 0x66);
    case 'lpcm':
      return head.byteLength < HEAD_BYTES[2] ? undefined : newLayout(head.getUint32(56), head.getUint32(60));
    default:
      return undefined;
  }
}

function samples(bits: number, isHighFirst: boolean, isSigned = true): Layout | undefined {
  return [8, 16, 24, 32].includes(bits) ? { tag: PCM, bits, isHighFirst, isSigned8: isSigned && bits === 8 } : undefined;
}

const floats = (bits: number, isHighFirst: boolean): Layout | undefined =>
  bits === 32 || bits === 64 ? { tag: FLOAT, bits, isHighFirst } : undefined;

function newLayout(bits: number, flags: number): Layout | undefined {
  const isHighFirst = (flags & IS_HIGH_FIRST) !== 0;
  return flags & IS_FLOAT ? floats(bits, isHighFirst) : samples(bits, isHighFirst, (flags & IS_SIGNED) !== 0);
}

/** MP4 has byte order and bits in a box of their own. */
function mp4Layout(bytes: FileBytes, box: Box | undefined, isFloat: boolean): Layout | undefined {
  const fields = box && bytes.subarray(box.from + 4, box.to);
  if (!fields || fields.length < 2) return undefined;
  const [flags, bits] = [fields[0]!, fields[1]!];
  return isFloat ? floats(bits, (flags & 1) === 0) : samples(bits, (flags & 1) === 0);
}

/** Whether a description's boxes say that samples are little-endian. */
function isLowFirst(bytes: FileBytes, inner: Box): boolean {
  const enda = find(bytes, inner, 'wave', 'enda') ?? find(bytes, inner, 'enda');
  return enda !== undefined && bytes.subarray(enda.from, enda.to)[1] === 1;
}

function formatOf({ tag, bits }: Layout, rate: number, channels: number): DataView {
  const format = new DataView(new ArrayBuffer(16));
  const frameBytes = (channels * bits) / 8;
  for (const [at, value] of [[0, tag], [2, channels], [12, frameBytes], [14, bits]] as const) format.setUint16(at, value, true); // prettier-ignore
  format.setUint32(4, rate, true);
  format.setUint32(8, rate * frameBytes, true);
  return format;
}

interface Part {
  readonly chunks: readonly Chunk[];
  /** The part of the joined chunks that is played, as byte offsets [from, to). */
  readonly from: number;
  readonly to: number;
  readonly layout: Layout;
  /** Header before the samples. */
  readonly head: Uint8Array;
}

/** A view of chunks of another file as a WAV file. Its length counts only the bytes that are there, which may be fewer than its header declares. */
class WavView implements FileBytes {
  readonly length: number;
  readonly #bytes: FileBytes;
  readonly #part: Part;
  /** Offset of each chunk in the joined chunks. */
  readonly #starts: Float64Array;

  constructor(bytes: FileBytes, part: Part) {
    this.#bytes = bytes;
    this.#part = part;
    this.#starts = new Float64Array(part.chunks.length);
    let at = 0;
    let present = 0;
    for (const [i, { from, length }] of part.chunks.entries()) {
      this.#starts[i] = at;
      at += length;
      // If the file ends within a chunk, later chunks are not counted either.
      if (present === this.#starts[i]) present += Math.max(0, Math.min(length, bytes.length - from));
    }
    this.length = part.head.length + Math.max(0, Math.min(part.to, present) - part.from);
  }

  subarray(from: number, to = this.length): Uint8Array {
    const { head, layout } = this.#part;
    const [first, end] = [Math.max(0, from), Math.min(to, this.length)];
    if (end <= head.length) return head.subarray(first, end);
    // Bytes are swapped in whole samples.
    const step = layout.bits / 8;
    const [low, high] = [Math.max(0, first - head.length), end - head.length];
    const aligned = Math.floor(low / step) * step;
    const data = this.#read(aligned, Math.min(Math.ceil(high / step) * step, this.length - head.length));
    if (layout.isHighFirst) for (let at = 0; step > 1 && at + step <= data.length; at += step) data.subarray(at, at + step).reverse();
    if (layout.isSigned8) for (let at = 0; at < data.length; at++) data[at]! ^= 0x80;
    const part = data.subarray(low - aligned, high - aligned);
    if (first >= head.length) return part;
    const joined = new Uint8Array(end - first);
    joined.set(head.subarray(first));
    joined.set(part, head.length - first);
    return joined;
  }

  /** Copies bytes of the played part, in the file's byte order. */
  #read(from: number, to: number): Uint8Array {
    const out = new Uint8Array(to - from);
    const { chunks } = this.#part;
    const [first, end] = [from + this.#part.from, to + this.#part.from];
    for (let i = this.#chunkAt(first), at = first; at < end && i < chunks.length; i++) {
      const inside = at - this.#starts[i]!;
      const count = Math.min(chunks[i]!.length - inside, end - at);
      out.set(this.#bytes.subarray(chunks[i]!.from + inside, chunks[i]!.from + inside + count), at - first);
      at += count;
    }
    return out;
  }

  /** Index of the last chunk that begins at or before this byte. */
  #chunkAt(byte: number): number {
    let [low, high] = [0, this.#starts.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.#starts[middle]! <= byte) low = middle;
      else high = middle;
    }
    return low;
  }
}
