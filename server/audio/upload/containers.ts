/** Sound out of containers: Symphonia in WebAssembly finds and decodes it, and libopus decodes what is Opus. Runs in the codec worker. */
import type { FileBytes } from '../../../engine/audio/wav.ts';
import { instantiateCodecs } from '../codecs-module.ts';
import { missedEnd } from './cut-short.ts';
import { presentationOf } from './mp4-boxes.ts';
import { OpusStream } from './opus-stream.ts';
import type { FileFormat } from './sniff.ts';

/** Mono samples of one piece of a file; the next may have another rate. */
export interface Piece {
  readonly samples: Float32Array;
  /** Hz. */
  readonly rate: number;
}

/** Why a file gives no sound, or no more. */
export type Problem = 'no-format' | 'no-track' | 'no-codec' | 'broken' | 'cut';

export class ContainerError extends Error {
  readonly problem: Problem;

  constructor(problem: Problem, cause?: unknown) {
    super(`the container cannot be read: ${problem}`, { cause });
    this.problem = problem;
  }
}

/** What codecs/decode.rs exports; the constants here have the meanings of its numbers. */
interface Exports {
  readonly memory: WebAssembly.Memory;
  open(length: number, isStream: number): number;
  next(): number;
  rate(): number;
  samples(): number;
  sample_count(): number;
  packet(): number;
  packet_length(): number;
  trim_end(): number;
  head(): number;
  head_length(): number;
}

/** What a length has room in. */
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
    // Numbers of WebAssembly are signed.
    const part = bytes.subarray(at >>> 0, (at >>> 0) + (length >>> 0));
    new Uint8Array(wasm.memory.buffer, to >>> 0, part.length).set(part);
    return part.length;
  });
  return wasm;
}

/** A file and what is known of it. */
export interface Container {
  readonly bytes: FileBytes;
  readonly format: FileFormat;
  /** Called at every step; ends the decoding by throwing. */
  readonly tick: () => void;
}

/** What went wrong in a file that was read all the same. */
export interface Damage {
  /** Packets that could not be decoded, and were left out. */
  packets: number;
  /** Whether the file ends or breaks in the middle. */
  isCut: boolean;
}

/** Everything of a file that is to be heard, of its first track; throws ContainerError before the first piece, and notes in `damage` what comes later. */
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

function* decodeTrack({ bytes, format, tick }: Container, damage: Damage): Generator<Piece> {
  const wasm = guarded(() => instantiate(bytes));
  const end = missedEnd(format, bytes);
  // Nothing is looked for behind the place of a stream, which is good for what is not there. Without a length of its own it would end at once.
  const isStream = format === 'MP3' || end !== undefined;
  check(guarded(() => wasm.open(Math.min(end ?? bytes.length, MAX_LENGTH), isStream ? 1 : 0)));
  let opus: OpusStream | undefined;
  let heard = false;
  try {
    for (let status = step(wasm, heard); status !== END; status = step(wasm, heard)) {
      tick();
      let piece: Piece | undefined;
      if (status === NEW_STREAM) {
        opus?.close();
        opus = undefined;
      } else if (status === SAMPLES) piece = samplesOf(wasm);
      else if (status === OPUS_PACKET) {
        opus ??= OpusStream.open(copy(wasm, wasm.head(), wasm.head_length()), format === 'MP4');
        if (!opus) throw new ContainerError('no-codec');
        const samples = opus.decode(copy(wasm, wasm.packet(), wasm.packet_length()), wasm.trim_end());
        if (samples) piece = { samples, rate: opus.rate };
        else damage.packets++;
      } else if (status === DAMAGED) damage.packets++;
      else if (heard) {
        // A recorder that cannot go back leaves the sizes of WebM open, so that any end of it is a good one.
        damage.isCut = status !== CUT || format !== 'WebM' || end !== undefined;
        return;
      } else check(status);
      if (!piece || piece.samples.length === 0) continue;
      heard = true;
      yield piece;
    }
  } finally {
    opus?.close();
  }
}

/** A copy: the next step writes there again. */
function samplesOf(wasm: Exports): Piece {
  return { samples: new Float32Array(wasm.memory.buffer, wasm.samples() >>> 0, wasm.sample_count()).slice(), rate: wasm.rate() };
}

/** A decoder that gives up in the middle ends the sound there; what it said before is as good as in a file that is cut. */
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

/** A trap is the file's fault, anything else is ours. */
const broken = (error: unknown): unknown => (error instanceof WebAssembly.RuntimeError ? new ContainerError('broken', error) : error);

function check(status: number): void {
  const problem = PROBLEMS[status];
  if (problem) throw new ContainerError(problem);
}

const copy = (wasm: Exports, at: number, length: number): Uint8Array => new Uint8Array(wasm.memory.buffer, at >>> 0, length).slice();
