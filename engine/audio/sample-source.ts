/** Audio that is read as it is needed, so that what a transcription holds does not grow with its length. In a file: platform/sample-file.ts. */
import { indexBeyond } from '../util/math.ts';

/** Hz of the samples that a transcription takes, whatever its model. */
export const TRANSCRIPTION_RATE = 16_000;

/** Mono samples at one rate, -1..1. */
export interface SampleSource {
  /** Samples. */
  readonly length: number;
  /** The samples from `from` to before `to`, both within the length; rejects with EngineError('internal'). */
  read(from: number, to: number): Promise<Float32Array>;
  /** Nothing is read any more. */
  close(): Promise<void>;
}

/** Samples in memory; what is read are views of them. */
export function arraySource(samples: Float32Array): SampleSource {
  return { length: samples.length, read: async (from, to) => samples.subarray(from, to), close: async () => {} };
}

/** Files of floats may be louder than full scale, and some hold integers of 32 bits as they are. The power of far louder ones is beyond f32. */
const LOUDEST = 2 ** 32;

/** The samples, with silence in place of those that are damaged: not finite, or louder than any sound. One of them would leave nothing of its window. */
export function withoutDamage(samples: Float32Array): Float32Array {
  return indexBeyond(samples, LOUDEST) < 0 ? samples : samples.map((sample) => (Math.abs(sample) <= LOUDEST ? sample : 0));
}

/** A source whose damaged samples are read as silence. */
export function soundSource(source: SampleSource): SampleSource {
  return { ...source, read: async (from, to) => withoutDamage(await source.read(from, to)) };
}
