/** Packets of an Opus stream to mono samples: libopus in WebAssembly. Source of the head's layout: RFC 7845, section 5.1. */
import { Decoder } from '@evan/opus/wasm/index.mjs';
import { wavToMono } from '../../engine/audio/wav.ts';

/** libopus decodes to the rate that the transcriber hears by itself, for a third of the work of 48 kHz, and to mono. */
const RATE = 16_000;
/** Times in Opus files are counted at this rate, whatever is decoded to. */
const CLOCK = 48_000;
/** OPUS_SET_GAIN, in 256ths of a decibel. */
const SET_GAIN = 4034;
const HEAD_BYTES = 19;

/** What can be told of a stream before its first packet. */
interface Head {
  /** Samples (at 48 kHz) before the first to be heard. */
  readonly preSkip: number;
  readonly gain: number;
}

export class OpusStream {
  /** Hz. */
  readonly rate = RATE;
  readonly #decoder: Decoder;
  #skipped: number;

  /** Opens a decoder for a stream with this head; undefined for more than two channels, and what is no head. */
  static open(bytes: Uint8Array, isMp4: boolean): OpusStream | undefined {
    const head = parseHead(bytes, isMp4);
    return head && new OpusStream(head);
  }

  private constructor({ preSkip, gain }: Head) {
    this.#decoder = new Decoder({ channels: 1, sample_rate: RATE });
    this.#decoder.ctl(SET_GAIN, gain);
    this.#skipped = Math.round((preSkip * RATE) / CLOCK);
  }

  /** The packet's samples without the last `trimmed` (at 48 kHz); undefined where it is damaged. */
  decode(packet: Uint8Array, trimmed: number): Float32Array | undefined {
    let samples: Float32Array;
    try {
      const data = this.#decoder.decode(packet);
      samples = wavToMono({ encoding: 's16', channels: 1, frames: data.length / 2, data });
    } catch (error) {
      // libopus refuses it, or it is longer than packets are.
      if (error instanceof WebAssembly.RuntimeError) throw error;
      return undefined;
    }
    const end = Math.max(0, samples.length - Math.round((trimmed * RATE) / CLOCK));
    const from = Math.min(this.#skipped, end);
    this.#skipped -= from;
    return samples.subarray(from, end);
  }

  close(): void {
    this.#decoder.drop();
  }
}

/** The head as Ogg and Matroska have it; MP4 has the same fields with their bytes the other way round, and the edit list tells what to skip. */
function parseHead(bytes: Uint8Array, isMp4: boolean): Head | undefined {
  if (bytes.length < HEAD_BYTES || String.fromCharCode(...bytes.subarray(0, 8)) !== 'OpusHead') return undefined;
  const [channels = 0, family] = [bytes[9], bytes[18]];
  if (channels < 1 || channels > 2 || family !== 0) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return { preSkip: isMp4 ? 0 : view.getUint16(10, true), gain: view.getInt16(16, !isMp4) };
}
