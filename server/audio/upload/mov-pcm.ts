/**
 * PCM of more than 16 bits, and of floats, in QuickTime films: its highest byte comes first unless an `enda` box says otherwise. Symphonia takes the lowest for the
 * first, and hears noise, so such sound is described to it in the newer way, which says the order itself. Source: Apple's "QuickTime File Format", sound sample
 * descriptions of version 1 and 2.
 */
import type { FileBytes } from '../../../engine/audio/wav.ts';
import { find, soundTrack } from './mp4-edits.ts';
import type { Box } from './mp4-edits.ts';

/** Bits, and flags of the newer description: 1 = floats, 2 = highest byte first, 4 = signed. */
const KINDS: Readonly<Record<string, readonly [number, number]>> = { in24: [24, 6], in32: [32, 6], fl32: [32, 3], fl64: [64, 3] };
/** Bytes of the descriptions without their boxes, by version. */
const HEAD_BYTES = [36, 52] as const;
const NEW_BYTES = 72;
const BOX_BYTES = 8;
/** Of the list of descriptions, before the first. */
const LIST_BYTES = 8;

/** The same film with a description that says the order of its bytes; undefined where that has no room. A film that needs none is itself. */
export function withByteOrder(bytes: FileBytes): FileBytes | undefined {
  const track = soundTrack(bytes);
  const list = track && find(bytes, track, 'mdia', 'minf', 'stbl', 'stsd');
  const at = list ? list.from + LIST_BYTES : bytes.length;
  const old = bytes.subarray(at, at + HEAD_BYTES[1]);
  const view = new DataView(old.buffer, old.byteOffset, old.byteLength);
  const [bits, flags] = KINDS[String.fromCharCode(...old.subarray(4, 8))] ?? [];
  if (!list || bits === undefined || flags === undefined || old.length < HEAD_BYTES[0]) return bytes;
  const [size, version] = [view.getUint32(0), view.getUint16(16)];
  const headBytes = HEAD_BYTES[version];
  if (headBytes === undefined || at + size > list.to) return bytes;
  if (isLowFirst(bytes, { type: '', from: at + headBytes, to: at + size })) return bytes;
  // What is left of the old boxes becomes an empty one.
  const left = size - NEW_BYTES;
  if (left < 0 || (left > 0 && left < BOX_BYTES)) return undefined;
  const patch = new Uint8Array(NEW_BYTES + left);
  patch.set(old.subarray(0, 16));
  patch.set(new TextEncoder().encode('lpcm'), 4);
  const out = new DataView(patch.buffer);
  const channels = view.getUint16(24);
  for (const [place, value] of [[16, 2], [24, 3], [26, 16], [28, 0xfffe]] as const) out.setUint16(place, value); // prettier-ignore
  for (const [place, value] of [[32, 0x1_0000], [36, NEW_BYTES], [48, channels], [52, 0x7f00_0000], [56, bits], [60, flags], [64, (channels * bits) / 8], [68, 1]] as const) out.setUint32(place, value); // prettier-ignore
  out.setFloat64(40, view.getUint32(32) / 0x1_0000);
  if (left > 0) {
    out.setUint32(NEW_BYTES, left);
    patch.set(new TextEncoder().encode('free'), NEW_BYTES + 4);
  }
  return new Patched(bytes, at, patch);
}

/** Whether the boxes of a description say that the lowest byte comes first. */
function isLowFirst(bytes: FileBytes, boxes: Box): boolean {
  const enda = find(bytes, boxes, 'wave', 'enda') ?? find(bytes, boxes, 'enda');
  return enda !== undefined && bytes.subarray(enda.from, enda.to)[1] === 1;
}

/** Bytes of which some are others, without a copy of the rest. */
class Patched implements FileBytes {
  readonly length: number;
  readonly #bytes: FileBytes;
  readonly #at: number;
  readonly #patch: Uint8Array;

  constructor(bytes: FileBytes, at: number, patch: Uint8Array) {
    this.length = bytes.length;
    this.#bytes = bytes;
    this.#at = at;
    this.#patch = patch;
  }

  subarray(from: number, to = this.length): Uint8Array {
    const part = this.#bytes.subarray(from, to);
    const [first, end] = [Math.max(from, this.#at), Math.min(from + part.length, this.#at + this.#patch.length)];
    if (first >= end) return part;
    const copy = new Uint8Array(part);
    copy.set(this.#patch.subarray(first - this.#at, end - this.#at), first - from);
    return copy;
  }
}
