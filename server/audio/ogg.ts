/** Writes the packets of one stream as Ogg pages. Sources: RFC 3533 for pages, RFC 7845 for Opus in them. */
import { assert } from '../../engine/errors.ts';
import { joinBytes } from './join-bytes.ts';

const HEADER_BYTES = 27;
/** Most segments of a page; a segment has at most 255 bytes. */
const MAX_SEGMENTS = 255;
const FIRST = 2;
const LAST = 4;
/** Serial number of the stream. Any one will do in a file with a single stream; a fixed one makes the same sound give the same bytes. */
const SERIAL = 0x70_61_72_6c;

/** A packet, and the stream's position after it on the codec's clock. */
export interface OggPacket {
  readonly bytes: Uint8Array;
  readonly position: number;
}

/** Writes the pages of one file, in order. */
export class OggWriter {
  #sequence = 0;

  /** Returns a page with these packets, which must have fewer than 255 * 255 bytes in total; `isLast` marks the file's last page. */
  page(packets: readonly OggPacket[], isLast = false): Uint8Array {
    const table = packets.flatMap(({ bytes }) => [...Array<number>(Math.floor(bytes.length / 255)).fill(255), bytes.length % 255]);
    assert(table.length <= MAX_SEGMENTS, `a page has at most ${MAX_SEGMENTS} segments, got ${table.length}`);
    const header = new Uint8Array(HEADER_BYTES + table.length);
    const view = new DataView(header.buffer);
    header.set(new TextEncoder().encode('OggS'));
    header[5] = (this.#sequence === 0 ? FIRST : 0) | (isLast ? LAST : 0);
    view.setBigUint64(6, BigInt(packets.at(-1)!.position), true);
    view.setUint32(14, SERIAL, true);
    view.setUint32(18, this.#sequence++, true);
    header[26] = table.length;
    header.set(table, HEADER_BYTES);
    const page = joinBytes([header, ...packets.map(({ bytes }) => bytes)]);
    new DataView(page.buffer).setUint32(22, oggChecksum(page), true);
    return page;
  }
}

/** CRC table of the polynomial 0x04c11db7, most significant bit first. */
const CRC = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte << 24;
  for (let bit = 0; bit < 8; bit++) value = (value << 1) ^ (value < 0 ? 0x04c1_1db7 : 0);
  return value >>> 0;
});

/** Checksum of a page whose field for it is 0. */
export function oggChecksum(bytes: Uint8Array): number {
  let value = 0;
  for (const byte of bytes) value = ((value << 8) ^ CRC[(value >>> 24) ^ byte]!) >>> 0;
  return value;
}
