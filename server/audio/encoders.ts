/** Encodes samples of speech as a file, piece by piece. Runs in the codec worker. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Encoder } from '@evan/opus/wasm/index.mjs';
import { createEncoder } from 'wasm-media-encoders';
import { concatenated } from '../../engine/util/math.ts';
import { floatToPcm16 } from '../../engine/audio/wav.ts';
import { instantiateCodecs } from './codecs-module.ts';
import { joinBytes } from './join-bytes.ts';
import { mp3Info } from './mp3-info.ts';
import type { Mp3Stream } from './mp3-info.ts';
import { OggWriter } from './ogg.ts';
import type { OggPacket } from './ogg.ts';
import { PCM, resampling } from './pcm.ts';
import type { Rates, SampleEncoder } from './pcm.ts';

/** Encodings of samples; a WAV file is a header and `pcm`. */
export type SampleEncoding = 'pcm' | 'mp3' | 'opus' | 'aac' | 'flac';

/** Opens the encoder of one file, which takes samples at the rate `from`. The file has the rate `to`, or 48 kHz if Opus does not have that. */
export async function createSampleEncoder(encoding: SampleEncoding, { from, to }: Rates): Promise<SampleEncoder> {
  // Opus has only five rates, and is played at 48 kHz whichever was encoded.
  const rate = encoding === 'opus' && !OPUS_RATES.includes(to) ? OPUS_CLOCK : to;
  const encoder = await create(encoding, rate);
  return resampling(encoder, { from, to: rate });
}

async function create(encoding: SampleEncoding, rate: number): Promise<SampleEncoder> {
  if (encoding === 'mp3') return await createMp3(rate);
  if (encoding === 'opus') return createOpus(rate);
  if (encoding === 'pcm') return PCM;
  return createInWasm(encoding, rate);
}

/** Bit rates in kbit/s, up to 12 kHz and above. MPEG-2 layer III at 24 kHz mono is transparent for speech well below the latter. */
const MP3_BITRATES = [48, 96] as const;

let lame: WebAssembly.Module | undefined;

async function createMp3(sampleRate: number): Promise<SampleEncoder> {
  // Compiled once per worker: compilation, with the optimisation in the background, takes longer than encoding two seconds of speech.
  lame ??= new WebAssembly.Module(readFileSync(createRequire(import.meta.url).resolve('wasm-media-encoders/wasm/mp3')));
  const mp3 = await createEncoder('audio/mpeg', lame);
  const bitrate = MP3_BITRATES[sampleRate > 12_000 ? 1 : 0];
  mp3.configure({ sampleRate, channels: 1, bitrate });
  let stream: Mp3Stream | undefined;
  let samples = 0;
  let bytes = 0;
  const out = (frames: Uint8Array): Uint8Array => {
    bytes += frames.length;
    if (stream || frames.length === 0) return frames.slice();
    stream = { header: frames.slice(0, 4), sampleRate, bitrate };
    return joinBytes([mp3Info(stream), frames]);
  };
  return {
    encode: (sound) => {
      samples += sound.length;
      // The result is a view of the encoder's memory.
      return out(mp3.encode([sound]));
    },
    finish: () => out(mp3.finalize()),
    head: () => (stream ? mp3Info(stream, { samples, bytes }) : new Uint8Array()),
  };
}

const OPUS_RATES: readonly number[] = [8000, 12_000, 16_000, 24_000, 48_000];
/** Rate at which positions in Opus files are counted, in Hz. */
const OPUS_CLOCK = 48_000;
/** Bit rate for fullband speech, in bit/s. */
const OPUS_BITRATE = 32_000;
const OPUS_SET_BITRATE = 4002;
const OPUS_GET_LOOKAHEAD = 4027;
/** Opus frames per second and per page, so that the pages do not depend on how the sound was divided into pieces. */
const OPUS_FRAMES = 50;
const PAGE_FRAMES = 10;

function createOpus(rate: number): SampleEncoder {
  const opus = new Encoder({ channels: 1, sample_rate: rate, application: 'audio' });
  opus.ctl(OPUS_SET_BITRATE, OPUS_BITRATE);
  const toClock = OPUS_CLOCK / rate;
  const frame = rate / OPUS_FRAMES;
  const skipped = opus.ctl(OPUS_GET_LOOKAHEAD) * toClock;
  const ogg = new OggWriter();
  let begin: Uint8Array = joinBytes([ogg.page([opusHead(rate, skipped)]), ogg.page([opusTags()])]);
  let rest = new Float32Array(0);
  let samples = 0;
  let position = 0;
  /** Packets that wait for their page. At least one is held, because only the end tells whether it is the file's last. */
  const held: OggPacket[] = [];
  const packets = (sound: Float32Array): OggPacket[] =>
    Array.from({ length: Math.floor(sound.length / frame) }, (_, i) => {
      const bytes = opus.encode(floatToPcm16(sound.subarray(i * frame, (i + 1) * frame)));
      return { bytes, position: (position += frame * toClock) };
    });
  const push = (sound: Float32Array): OggPacket[] => {
    const joined = concatenated([rest, sound]);
    rest = joined.slice(joined.length - (joined.length % frame));
    return packets(joined);
  };
  const out = (pages: Uint8Array): Uint8Array => {
    const bytes = joinBytes([begin, pages]);
    begin = new Uint8Array();
    return bytes;
  };
  return {
    encode: (sound) => {
      samples += sound.length;
      held.push(...push(sound));
      const pages: Uint8Array[] = [];
      while (held.length > PAGE_FRAMES) pages.push(ogg.page(held.splice(0, PAGE_FRAMES)));
      return out(joinBytes(pages));
    },
    finish: () => {
      // The decoder lags behind by the samples that it skips, so silence is added until all samples have come out.
      const end = samples * toClock + skipped;
      const missing = Math.ceil((end - position) / toClock) - rest.length;
      const silence = Math.ceil((rest.length + Math.max(0, missing)) / frame) * frame - rest.length;
      held.push(...push(new Float32Array(silence)));
      const pages: Uint8Array[] = [];
      while (held.length > PAGE_FRAMES) pages.push(ogg.page(held.splice(0, PAGE_FRAMES)));
      const last = held.pop();
      if (last) pages.push(ogg.page([...held, { bytes: last.bytes, position: end }], true));
      return out(joinBytes(pages));
    },
    close: () => opus.drop(),
  };
}

/** Identification header (RFC 7845, section 5.1). */
function opusHead(rate: number, skipped: number): OggPacket {
  const bytes = Buffer.alloc(19);
  bytes.write('OpusHead', 'latin1');
  // Version 1, one channel.
  bytes.writeUInt16BE(0x0101, 8);
  bytes.writeUInt16LE(skipped, 10);
  bytes.writeUInt32LE(rate, 12);
  return { bytes, position: 0 };
}

/** Comment header (RFC 7845, section 5.2): the vendor, and no comments. */
function opusTags(): OggPacket {
  const vendor = Buffer.from('Parley');
  const bytes = Buffer.alloc(8 + 4 + vendor.length + 4);
  bytes.write('OpusTags', 'latin1');
  bytes.writeUInt32LE(vendor.length, 8);
  vendor.copy(bytes, 12);
  return { bytes, position: 0 };
}

/** Exports of codecs/encode.rs. */
interface Exports {
  readonly memory: WebAssembly.Memory;
  encoder_open(format: number, rate: number, bits: number): number;
  encoder_input(samples: number): number;
  encoder_push(): number;
  encoder_finish(): number;
  encoder_head(): number;
  encoder_output(): number;
  encoder_output_length(): number;
}

const WASM_FORMATS = { flac: 0, aac: 1 } as const;
/** AAC's bit/s per Hz of the sample rate, within the limits of a mono stream. */
const AAC_BITS_PER_HERTZ = 2.5;

function createInWasm(encoding: keyof typeof WASM_FORMATS, rate: number): SampleEncoder {
  const wasm = instantiateCodecs<Exports>(() => 0);
  const output = (status: number): Uint8Array => {
    if (status !== 0) throw new Error(`the ${encoding} encoder failed at ${rate} Hz`);
    return new Uint8Array(wasm.memory.buffer, wasm.encoder_output() >>> 0, wasm.encoder_output_length()).slice();
  };
  output(wasm.encoder_open(WASM_FORMATS[encoding], rate, rate * AAC_BITS_PER_HERTZ));
  let begin: Uint8Array = output(wasm.encoder_head());
  const out = (bytes: Uint8Array): Uint8Array => {
    const all = joinBytes([begin, bytes]);
    begin = new Uint8Array();
    return all;
  };
  return {
    encode: (samples) => {
      const pcm = floatToPcm16(samples);
      const at = wasm.encoder_input(samples.length) >>> 0;
      new Uint8Array(wasm.memory.buffer, at, pcm.length).set(pcm);
      return out(output(wasm.encoder_push()));
    },
    finish: () => out(output(wasm.encoder_finish())),
    head: () => output(wasm.encoder_head()),
  };
}
