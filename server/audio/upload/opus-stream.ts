/** Decodes packets of an Opus stream to mono samples, with libopus in WebAssembly. Source of the head's layout: RFC 7845, section 5.1. */
import { Decoder } from '@evan/opus/wasm/index.mjs';
import { TRANSCRIPTION_RATE } from '../../../engine/audio/sample-source.ts';
import { wavToMono } from '../../../engine/audio/wav.ts';
import { Downmix } from '../../../engine/audio/downmix.ts';
import { splitPacket } from './opus-packets.ts';

/** Rate at which times in Opus files are counted, whatever rate is decoded to. */
const CLOCK = 48_000;
/** OPUS_SET_GAIN, in 256ths of a decibel. */
const SET_GAIN = 4034;
const HEAD_BYTES = 19;
/** Most decoders for one file, each of which has its own memory. */
const MAX_STREAMS = 32;

/** What a stream's head declares. */
interface Head {
  /** Samples (at 48 kHz) to skip at the beginning. */
  readonly preSkip: number;
  readonly gain: number;
  /** Channels of each stream in a packet. */
  readonly streams: readonly (1 | 2)[];
}

/** Decodes one stream of packets, in order. */
export class OpusStream {
  /** Sample rate in Hz. libopus itself decodes to this rate, for a third of the work of 48 kHz. */
  readonly rate = TRANSCRIPTION_RATE;
  readonly #decoders: readonly Decoder[];
  readonly #streams: readonly (1 | 2)[];
  readonly #mix = new Downmix();
  #skipped: number;

  /** Opens a decoder for a stream with this head; undefined if the bytes are no valid head. */
  static open(bytes: Uint8Array, isMp4: boolean): OpusStream | undefined {
    const head = parseHead(bytes, isMp4);
    return head && new OpusStream(head);
  }

  private constructor({ preSkip, gain, streams }: Head) {
    this.#streams = streams;
    this.#decoders = streams.map((channels) => new Decoder({ channels, sample_rate: TRANSCRIPTION_RATE }));
    for (const decoder of this.#decoders) decoder.ctl(SET_GAIN, gain);
    this.#skipped = Math.round((preSkip * TRANSCRIPTION_RATE) / CLOCK);
  }

  /** Decodes a packet, without its last `trimmed` samples (at 48 kHz); undefined if it is damaged. */
  decode(packet: Uint8Array, trimmed: number): Float32Array | undefined {
    const samples = this.#decode(packet);
    if (!samples) return undefined;
    const end = Math.max(0, samples.length - Math.round((trimmed * TRANSCRIPTION_RATE) / CLOCK));
    const from = Math.min(this.#skipped, end);
    this.#skipped -= from;
    return samples.subarray(from, end);
  }

  /** Decodes a packet and mixes its channels. */
  #decode(packet: Uint8Array): Float32Array | undefined {
    const packets = splitPacket(packet, this.#streams.length);
    const parts = packets?.map((one, i) => decoded(this.#decoders[i]!, one));
    const first = parts?.[0];
    if (!first) return undefined;
    if (this.#streams.length === 1) return this.#mix.push(first, this.#streams[0]!);
    const frames = first.length / this.#streams[0]!;
    const channels = this.#streams.reduce<number>((all, count) => all + count, 0);
    const joined = new Float32Array(frames * channels);
    let before = 0;
    for (const [i, part] of parts.entries()) {
      const count = this.#streams[i]!;
      // All streams of a packet have the same length.
      if (part?.length !== frames * count) return undefined;
      for (let at = 0; at < part.length; at++) joined[Math.floor(at / count) * channels + before + (at % count)] = part[at]!;
      before += count;
    }
    return this.#mix.push(joined, channels);
  }

  close(): void {
    for (const decoder of this.#decoders) decoder.drop();
  }
}

/** Decodes a packet of one stream to interleaved samples; undefined if libopus refuses it, or it is longer than a packet can be. */
function decoded(decoder: Decoder, packet: Uint8Array): Float32Array | undefined {
  try {
    const data = decoder.decode(packet);
    return wavToMono({ encoding: 's16', channels: 1, frames: data.length / 2, data });
  } catch (error) {
    if (error instanceof WebAssembly.RuntimeError) throw error;
    return undefined;
  }
}

/** The head of a mono or stereo stream whose container has none. */
export function plainOpusHead(channels: number): Uint8Array {
  const head = new Uint8Array(HEAD_BYTES);
  head.set(new TextEncoder().encode('OpusHead'));
  head[8] = 1;
  head[9] = channels;
  return head;
}

/** Parses a head of Ogg or Matroska. MP4 has the same fields big-endian, and an edit list instead of the number of samples to skip. */
function parseHead(bytes: Uint8Array, isMp4: boolean): Head | undefined {
  if (bytes.length < HEAD_BYTES || String.fromCharCode(...bytes.subarray(0, 8)) !== 'OpusHead') return undefined;
  const streams = streamsOf(bytes);
  if (!streams) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return { preSkip: isMp4 ? 0 : view.getUint16(10, true), gain: view.getInt16(16, !isMp4), streams };
}

/** Channels of each stream. Stereo streams come first; which channel is which does not matter to the mean. */
function streamsOf(bytes: Uint8Array): (1 | 2)[] | undefined {
  const [channels = 0, family] = [bytes[9], bytes[18]];
  if (family === 0) return channels === 1 || channels === 2 ? [channels] : undefined;
  const [count = 0, coupled = 0] = [bytes[HEAD_BYTES], bytes[HEAD_BYTES + 1]];
  if (channels < 1 || count < 1 || count > MAX_STREAMS || coupled > count) return undefined;
  return Array.from({ length: count }, (_, i) => (i < coupled ? 2 : 1));
}
