/** Makes headers for samples that are elsewhere, and views parts of a file. */
import type { FileBytes } from '../../../engine/audio/wav.ts';

/** Makes a WAV file's header with this fmt chunk, up to the samples. */
export function wavHeader(format: DataView, dataBytes: number): Uint8Array {
  const size = format.byteLength + (format.byteLength & 1);
  const head = new Uint8Array(28 + size);
  const view = new DataView(head.buffer);
  put(head, 0, 'RIFF');
  view.setUint32(4, Math.min(20 + size + dataBytes, 0xffff_ffff), true);
  put(head, 8, 'WAVEfmt ');
  view.setUint32(16, format.byteLength, true);
  head.set(new Uint8Array(format.buffer, format.byteOffset, format.byteLength), 20);
  put(head, 20 + size, 'data');
  view.setUint32(24 + size, Math.min(dataBytes, 0xffff_ffff), true);
  return head;
}

/** Format of an AIFF-C file's samples. */
export interface AiffShape {
  /** Compression type: `NONE` for PCM. */
  readonly type: string;
  readonly bits: number;
  /** Hz. */
  readonly rate: number;
  readonly channels: number;
  readonly frames: number;
}

/** Makes an AIFF-C file's header, up to the samples. */
export function aiffHeader({ type, bits, rate, channels, frames }: AiffShape): Uint8Array {
  const dataBytes = (frames * channels * bits) / 8;
  const head = new Uint8Array(72);
  const view = new DataView(head.buffer);
  put(head, 0, 'FORM');
  view.setUint32(4, 64 + dataBytes);
  put(head, 8, 'AIFCFVER');
  view.setUint32(16, 4);
  view.setUint32(20, 0xa280_5140);
  put(head, 24, 'COMM');
  view.setUint32(28, 24);
  view.setUint16(32, channels);
  view.setUint32(34, frames);
  view.setUint16(38, bits);
  // The rate as an 80-bit float: an exponent, and a mantissa that begins with its first 1.
  const exponent = 31 - Math.clz32(rate);
  view.setUint16(40, 16383 + exponent);
  view.setUint32(42, rate << (31 - exponent));
  put(head, 50, type);
  put(head, 56, 'SSND');
  view.setUint32(60, 8 + dataBytes);
  return head;
}

/** Bytes of the descriptions of sound in CAF and AIFF. AIFF-C's compression type follows that of AIFF. */
export const CAF_DESCRIPTION_BYTES = 32;
export const AIFF_DESCRIPTION_BYTES = 18;

/** Format of a CAF file's packets, all of which have the same size. */
export interface CafShape {
  readonly type: string;
  /** Hz. */
  readonly rate: number;
  readonly channels: number;
  /** Bytes and frames of a packet. */
  readonly packetBytes: number;
  readonly packetFrames: number;
}

/** Makes a CAF file's header, up to the packets. */
export function cafHeader({ type, rate, channels, packetBytes, packetFrames }: CafShape, dataBytes: number): Uint8Array {
  const head = new Uint8Array(68);
  const view = new DataView(head.buffer);
  put(head, 0, 'caff');
  view.setUint16(4, 1);
  put(head, 8, 'desc');
  view.setBigInt64(12, BigInt(CAF_DESCRIPTION_BYTES));
  view.setFloat64(20, rate);
  put(head, 28, type);
  view.setUint32(36, packetBytes);
  view.setUint32(40, packetFrames);
  view.setUint32(44, channels);
  put(head, 52, 'data');
  view.setBigInt64(56, BigInt(4 + dataBytes));
  return head;
}

/** What a CAF file says of its sound in the description that begins at `from`. */
export function cafFormat(
  bytes: FileBytes,
  from: number,
): { type: string; rate: number; isFloat: boolean; channels: number; bits: number } {
  const view = viewOf(bytes, from, from + CAF_DESCRIPTION_BYTES);
  const type = String.fromCharCode(...bytes.subarray(from + 8, from + 12));
  const [flags, channels, bits] = [view.getUint32(12), view.getUint32(24), view.getUint32(28)];
  return { type, rate: view.getFloat64(0), isFloat: (flags & 1) !== 0, channels, bits };
}

/** A view of the bytes [from, to), for reading numbers. */
export function viewOf(bytes: FileBytes, from: number, to: number): DataView {
  const { buffer, byteOffset, byteLength } = bytes.subarray(from, to);
  return new DataView(buffer, byteOffset, byteLength);
}

/** A name of a file's own, in quotes, for a message. */
export const printable = (name: string): string => `'${name.replaceAll(/[^\x20-\x7e]/g, '?')}'`;

function put(bytes: Uint8Array, at: number, text: string): void {
  bytes.set(new TextEncoder().encode(text), at);
}

/** A file that consists of a header and a part of another file, without a copy of it. */
export class Spliced implements FileBytes {
  readonly length: number;
  readonly #head: Uint8Array;
  readonly #bytes: FileBytes;
  readonly #from: number;

  constructor(head: Uint8Array, bytes: FileBytes, from = 0, count = bytes.length - from) {
    this.#head = head;
    this.#bytes = bytes;
    this.#from = from;
    this.length = head.length + count;
  }

  subarray(from: number, to = this.length): Uint8Array {
    const [first, end] = [Math.max(0, from), Math.min(to, this.length)];
    if (first >= end) return new Uint8Array();
    const before = this.#head.length;
    const rest = this.#bytes.subarray(this.#from + Math.max(0, first - before), this.#from + Math.max(0, end - before));
    if (first >= before) return rest;
    const head = this.#head.subarray(first, end);
    if (end <= before) return head;
    const joined = new Uint8Array(end - first);
    joined.set(head);
    joined.set(rest, head.length);
    return joined;
  }
}
