/** Splits packets of several Opus streams, in which all but the last stream's are self-delimiting. Source: RFC 6716, section 3 and appendix B. */

/** Returns the packets of `count` streams in the form that decoders of one stream take; undefined if the lengths do not match. */
export function splitPacket(packet: Uint8Array, count: number): Uint8Array[] | undefined {
  const packets: Uint8Array[] = [];
  let rest = packet;
  while (packets.length < count - 1) {
    const one = takePacket(rest);
    if (!one) return undefined;
    packets.push(one.packet);
    rest = rest.subarray(one.taken);
  }
  return rest.length > 0 ? [...packets, rest] : undefined;
}

/** Takes the first packet, without the length that only self-delimiting packets have, and returns the bytes that it took. */
function takePacket(bytes: Uint8Array): { readonly packet: Uint8Array; readonly taken: number } | undefined {
  const reader = new Reader(bytes);
  const code = reader.byte() & 3;
  const header = code === 3 ? frameCount(reader) : { frames: code === 0 ? 1 : 2, isVariable: code === 2, padding: 0 };
  const before = header.isVariable ? Array.from({ length: header.frames - 1 }, () => reader.size()) : [];
  const headBytes = reader.at;
  const last = reader.size();
  const content = header.isVariable ? before.reduce((sum, size) => sum + size, last) : last * header.frames;
  const taken = reader.at + content + header.padding;
  if (!(taken <= bytes.length)) return undefined;
  const packet = new Uint8Array(headBytes + taken - reader.at);
  packet.set(bytes.subarray(0, headBytes));
  packet.set(bytes.subarray(reader.at, taken), headBytes);
  return { packet, taken };
}

/** Reads the number of frames of a packet with an arbitrary one, and the number of padding bytes at its end. */
function frameCount(reader: Reader): { readonly frames: number; readonly isVariable: boolean; readonly padding: number } {
  const kind = reader.byte();
  let padding = 0;
  for (let more = (kind & 0x40) !== 0; more;) {
    const size = reader.byte();
    more = size === 255;
    padding += more ? 254 : size;
  }
  return { frames: kind & 0x3f, isVariable: (kind & 0x80) !== 0, padding };
}

/** Reads bytes; beyond the end they are NaN, so that no length matches. */
class Reader {
  at = 0;
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  byte(): number {
    return this.#bytes[this.at++] ?? NaN;
  }

  size(): number {
    const first = this.byte();
    return first < 252 ? first : first + 4 * this.byte();
  }
}
