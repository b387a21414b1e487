/** Ogg pages around packets of one stream. Sources: RFC 3533 for pages, RFC 7845 for Opus in them. */
import { assert } from '../../engine/errors.ts';
import { joinBytes } from './join-bytes.ts';

const HEADER_BYTES = 27;
/** Lengths of at most 255 bytes in a page's table. */
const MAX_SEGMENTS = 255;
const FIRST = 2;
const LAST = 4;
/** Any number does for a file with one stream; a fixed one, so that the same sound gives the same bytes. */
const SERIAL = 0x70_61_72_6c;

/** A packet, and the position of the stream after it; times are the codec's. */
export interface OggPacket {
  readonly bytes: Uint8Array;
  readonly position: number;
}

export class OggWriter {
  #sequence = 0;

  /** Packets as a page; `isLast` for that at the end of the file. Packets of a page have fewer than 255 times 255 bytes. */
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
    new DataView(page.buffer).setUint32(22, checksum(page), true);
    return page;
  }
}

/** Table of the CRC with the polynomial 0x04c11db7, highest bit first. */
const CRC = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte << 24;
  for (let bit = 0; bit < 8; bit++) value = (value << 1) ^ (value < 0 ? 0x04c1_1db7 : 0);
  return value >>> 0;
});

function checksum(bytes: Uint8Array): number {
  let value = 0;
  for (const byte of bytes) value = ((value << 8) ^ CRC[(value >>> 24) ^ byte]!) >>> 0;
  return value;
}
