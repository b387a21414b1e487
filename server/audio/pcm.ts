/** Samples at the rate that a file is to have, and 16-bit samples, the bytes that a WAV file's header stands before. */
import { Resampler } from '../../engine/audio/resample.ts';
import { floatToPcm16 } from '../../engine/audio/wav.ts';
import { joinBytes } from './join-bytes.ts';

export interface SampleEncoder {
  encode(samples: Float32Array): Uint8Array;
  finish(): Uint8Array;
  /** After finish(): what the file would have begun with, had its length been known; as many bytes as it did begin with. */
  head?(): Uint8Array;
  /** Frees what a collector does not see; harmless after finish(). */
  close?(): void;
}

/** Hz of the samples that come, and of the file. */
export interface Rates {
  readonly from: number;
  readonly to: number;
}

/** An encoder fed with samples of another rate than its own. */
export function resampling(encoder: SampleEncoder, { from, to }: Rates): SampleEncoder {
  if (from === to) return encoder;
  const resampler = new Resampler(from, to);
  return {
    ...encoder,
    encode: (samples) => encoder.encode(resampler.push(samples)),
    finish: () => joinBytes([encoder.encode(resampler.flush()), encoder.finish()]),
  };
}

/** 16-bit samples. */
export const PCM: SampleEncoder = { encode: floatToPcm16, finish: () => new Uint8Array() };

/** 16-bit samples at the rate `to`. */
export const createPcmEncoder = (rates: Rates): SampleEncoder => resampling(PCM, rates);
