/** Audio that is read on demand, so that the memory of a transcription does not grow with its length. For files: platform/sample-file.ts. */
import { indexBeyond } from '../util/math.ts';

/** Sample rate of transcription in Hz, whatever the model. */
export const TRANSCRIPTION_RATE = 16_000;

/** Mono samples at one rate, -1..1. */
export interface SampleSource {
  /** Number of samples. */
  readonly length: number;
  /** Reads the samples [from, to), both within the length; rejects with EngineError('internal'). */
  read(from: number, to: number): Promise<Float32Array>;
  /** Releases the source, which must not be read afterwards. */
  close(): Promise<void>;
}

/** A source of samples in memory; reads return views of them. */
export function arraySource(samples: Float32Array): SampleSource {
  return { length: samples.length, read: async (from, to) => samples.subarray(from, to), close: async () => {} };
}

/** Largest magnitude of an intact sample. Float files may exceed full scale, and some hold unscaled 32-bit integers. The power of far larger samples is beyond f32. */
const LOUDEST = 2 ** 32;

/** Replaces damaged samples by silence: those that are not finite, or louder than any sound. A single one would spoil its whole window. */
export function withoutDamage(samples: Float32Array): Float32Array {
  return indexBeyond(samples, LOUDEST) < 0 ? samples : samples.map((sample) => (Math.abs(sample) <= LOUDEST ? sample : 0));
}

/** A source whose damaged samples are read as silence. */
export function soundSource(source: SampleSource): SampleSource {
  return { ...source, read: async (from, to) => withoutDamage(await source.read(from, to)) };
}
