/** Audio that is read as it is needed, so that what a transcription holds does not grow with its length. */
import type { SampleFile } from '../api.ts';
import { EngineError } from '../errors.ts';

/** Mono samples at one rate, -1..1. */
export interface SampleSource {
  /** Samples. */
  readonly length: number;
  /** The samples from `from` to before `to`, both within the length; rejects with EngineError('internal'). */
  read(from: number, to: number): Promise<Float32Array>;
  /** Nothing is read any more. */
  close(): Promise<void>;
}

/** What is needed of an open file. */
export interface ByteRanges {
  /** Exactly `length` bytes at `offset`; throws when the file is shorter. */
  read(offset: number, length: number): Promise<Uint8Array>;
  close(): Promise<void>;
}

/** Samples in memory; what is read are views of them. */
export function arraySource(samples: Float32Array): SampleSource {
  return { length: samples.length, read: async (from, to) => samples.subarray(from, to), close: async () => {} };
}

/** Samples in a file, which `open` opens at the first reading. */
export function fileSource({ encoding, length }: SampleFile, open: () => Promise<ByteRanges>): SampleSource {
  let opened: Promise<ByteRanges> | undefined;
  return {
    length,
    read: async (from, to) => {
      const [size, decode] = encoding === 's16' ? ([2, fromPcm16] as const) : ([4, fromFloat32] as const);
      try {
        const bytes = await (opened ??= open());
        return decode(await bytes.read(from * size, (to - from) * size));
      } catch (cause) {
        throw new EngineError('internal', `the samples of the audio cannot be read: ${String(cause)}`, { cause });
      }
    },
    // One that could not be opened needs no closing.
    close: async () => (await opened?.catch(() => undefined))?.close(),
  };
}

/** 16-bit samples are divided by a power of two, so f32 holds them exactly. */
function fromPcm16(bytes: Uint8Array): Float32Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const samples = new Float32Array(bytes.length >> 1);
  for (let i = 0; i < samples.length; i++) samples[i] = view.getInt16(2 * i, true) / 0x8000;
  return samples;
}

function fromFloat32(bytes: Uint8Array): Float32Array {
  const whole = bytes.byteOffset % 4 === 0 ? bytes : bytes.slice();
  return new Float32Array(whole.buffer, whole.byteOffset, whole.length / 4);
}
