/** Decodes the sound of container files: Symphonia in WebAssembly demultiplexes and decodes, and libopus decodes Opus. Runs in the codec worker. */
import type { FileBytes } from '../../../engine/audio/wav.ts';
import { instantiateCodecs } from '../codecs-module.ts';
import { Downmix } from '../../../engine/audio/downmix.ts';
import { lacksPages, missedEnd, placeOfSound } from './cut-short.ts';
import { cafFormat } from './headers.ts';
import { mp4Codec, presentationOf } from './mp4-boxes.ts';
import { OpusStream, plainOpusHead } from './opus-stream.ts';
import { declaredSamples } from './repair/declared.ts';
import { webmCodec } from './repair/ebml.ts';
import type { FileFormat } from './sniff.ts';

/** Mono samples of a part of a file; the next part may have another rate. */
export interface Piece {
  readonly samples: Float32Array;
  /** Hz. */
  readonly rate: number;
}

/** Why a file cannot be decoded, or not any further. */
export type Problem = 'no-format' | 'no-track' | 'no-codec' | 'broken' | 'cut';

/** Thrown when a file cannot be decoded. */
export class ContainerError extends Error {
  readonly problem: Problem;
  /** What the container calls the codec of its sound, if that is why it is not decoded. */
  readonly codec: string | undefined;

  constructor(problem: Problem, { cause, codec }: { readonly cause?: unknown; readonly codec?: string | undefined } = {}) {
    super(`the container cannot be read: ${problem}`, { cause });
    this.problem = problem;
    this.codec = codec;
  }
}

/** Exports of codecs/decode.rs; the constants below name the status codes that it returns. */
interface Exports {
  readonly memory: WebAssembly.Memory;
  open(length: number, isStream: number): number;
  next(): number;
  rate(): number;
  samples(): number;
  sample_count(): number;
  channels(): number;
  packet(): number;
  packet_length(): number;
  trim_end(): number;
  head(): number;
  head_length(): number;
}

/** Largest length that the module takes: an unsigned 32-bit number. */
const MAX_LENGTH = 0xffff_ffff;
const CUT = -5;
const BROKEN = -4;
const END = 0;
const SAMPLES = 1;
const OPUS_PACKET = 2;
const DAMAGED = 3;
const NEW_STREAM = 4;
const PROBLEMS: Readonly<Record<number, Problem>> = { [-1]: 'no-format', [-2]: 'no-track', [-3]: 'no-codec', [-4]: 'broken', [-5]: 'cut' };

function instantiate(bytes: FileBytes): Exports {
  const wasm = instantiateCodecs<Exports>((at, to, length) => {
    // WebAssembly's i32 arrive signed.
    const part = bytes.subarray(at >>> 0, (at >>> 0) + (length >>> 0));
    new Uint8Array(wasm.memory.buffer, to >>> 0, part.length).set(part);
    return part.length;
  });
  return wasm;
}

/** A file to decode, and its format. */
export interface Container {
  readonly bytes: FileBytes;
  readonly format: FileFormat;
  /** Called at every step; may throw to end the decoding. */
  readonly tick: () => void;
}

/** Damage in a file that could be decoded nevertheless. */
export interface Damage {
  /** Number of packets that could not be decoded and were left out. */
  packets: number;
  /** Whether the file ends or breaks in the middle. */
  isCut: boolean;
}

/** Yields the sound of a file's first track, without what an edit list hides. Throws ContainerError before the first piece; later problems are noted in `damage`. */
export function* decodeContainer(container: Container, damage: Damage): Generator<Piece> {
  const all = decodeTrack(container, damage);
  if (container.format !== 'MP4') return yield* all;
  const { skip, length = Infinity } = presentationOf(container.bytes);
  let at = 0;
  for (const { samples, rate } of all) {
    const from = Math.round(Math.max(0, skip - at) * rate);
    const to = Math.round(Math.max(0, skip + length - at) * rate);
    at += samples.length / rate;
    const heard = samples.subarray(from, to);
    if (heard.length > 0) yield { samples: heard, rate };
  }
}

function* decodeTrack(container: Container, damage: Damage): Generator<Piece> {
  const { bytes, format, tick } = container;
  const wasm = guarded(() => instantiate(bytes));
  const end = missedEnd(format, bytes);
  // Symphonia does not seek in a stream, which is good for a file without its end. A stream without a length of its own would end at once.
  const isStream = format === 'MP3' || end !== undefined;
  check(
    guarded(() => wasm.open(Math.min(end ?? bytes.length, MAX_LENGTH), isStream ? 1 : 0)),
    container,
  );
  const mix = new Downmix();
  let opus: OpusStream | undefined;
  let heard = 0;
  try {
    for (let status = step(wasm, heard > 0); status !== END; status = step(wasm, heard > 0)) {
      tick();
      let piece: Piece | undefined;
      if (status === NEW_STREAM) {
        opus?.close();
        opus = undefined;
      } else if (status === SAMPLES) piece = samplesOf(wasm, mix);
      else if (status === OPUS_PACKET) {
        opus ??= OpusStream.open(opusHead(wasm, format, bytes), format === 'MP4');
        if (!opus) throw new ContainerError('no-codec');
        const samples = opus.decode(copy(wasm, wasm.packet(), wasm.packet_length()), wasm.trim_end());
        if (samples) piece = { samples, rate: opus.rate };
        else damage.packets++;
      } else if (status === DAMAGED) damage.packets++;
      else if (heard > 0) {
        // A recorder that cannot seek leaves the sizes in WebM open, so such a file may end anywhere.
        damage.isCut ||= status !== CUT || format !== 'WebM' || end !== undefined;
        break;
      } else check(status, container);
      if (!piece || piece.samples.length === 0) continue;
      heard += piece.samples.length;
      yield piece;
    }
    damage.isCut ||= heard < (declaredSamples(format, bytes) ?? 0) || (format === 'Ogg' && lacksPages(bytes));
  } finally {
    opus?.close();
  }
}

/** The head of an Opus stream. CAF has none, as Apple's Messages write it: its own description counts the channels. */
function opusHead(wasm: Exports, format: FileFormat, bytes: FileBytes): Uint8Array {
  const description = format === 'CAF' ? placeOfSound('CAF', bytes)?.description : undefined;
  if (description === undefined) return copy(wasm, wasm.head(), wasm.head_length());
  return plainOpusHead(cafFormat(bytes, description).channels);
}

/** Copies the samples, which the next step overwrites. */
function samplesOf(wasm: Exports, mix: Downmix): Piece {
  const samples = new Float32Array(wasm.memory.buffer, wasm.samples() >>> 0, wasm.sample_count()).slice();
  return { samples: mix.push(samples, wasm.channels()), rate: wasm.rate() };
}

/** Decodes the next packet. A trap of the decoder in the middle ends the sound there, like a file that was cut. */
function step(wasm: Exports, heard: boolean): number {
  try {
    return wasm.next();
  } catch (error) {
    if (!(error instanceof WebAssembly.RuntimeError) || !heard) throw broken(error);
    return BROKEN;
  }
}

function guarded<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw broken(error);
  }
}

/** A trap is caused by the file; any other error is a bug here. */
const broken = (error: unknown): unknown =>
  error instanceof WebAssembly.RuntimeError ? new ContainerError('broken', { cause: error }) : error;

function check(status: number, { format, bytes }: Container): void {
  const problem = PROBLEMS[status];
  if (!problem) return;
  const isOfCodec = problem === 'no-track' || problem === 'no-codec';
  const name = format === 'MP4' ? mp4Codec(bytes) : format === 'WebM' ? webmCodec(bytes) : undefined;
  throw new ContainerError(problem, { codec: isOfCodec ? name : undefined });
}

const copy = (wasm: Exports, at: number, length: number): Uint8Array => new Uint8Array(wasm.memory.buffer, at >>> 0, length).slice();
