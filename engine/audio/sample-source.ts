/** Audio that is read as it is needed, so that what a transcription holds does not grow with its length. In a file: platform/sample-file.ts. */

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
