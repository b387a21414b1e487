/** Resamples speech to the rate of the file, and encodes 16-bit PCM, the content of a WAV file after its header. */
import { Resampler } from '../../engine/audio/resample.ts';
import { floatToPcm16 } from '../../engine/audio/wav.ts';
import { joinBytes } from './join-bytes.ts';

/** Encodes the samples of one file, chunk by chunk. */
export interface SampleEncoder {
  encode(samples: Float32Array): Uint8Array;
  finish(): Uint8Array;
  /** After finish(): the bytes that the file would have begun with, had its length been known. They replace as many bytes at its beginning. */
  head?(): Uint8Array;
  /** Frees memory outside the garbage collector's reach; may also be called after finish(). */
  close?(): void;
}

/** Sample rates in Hz, of the samples that are encoded and of the file. */
export interface Rates {
  readonly from: number;
  readonly to: number;
}

/** Wraps an encoder whose rate is `to`, so that it takes samples at `from`. */
export function resampling(encoder: SampleEncoder, { from, to }: Rates): SampleEncoder {
  if (from === to) return encoder;
  const resampler = new Resampler(from, to);
  return {
    ...encoder,
    encode: (samples) => encoder.encode(resampler.push(samples)),
    finish: () => joinBytes([encoder.encode(resampler.flush()), encoder.finish()]),
  };
}

/** Encodes 16-bit PCM. */
export const PCM: SampleEncoder = { encode: floatToPcm16, finish: () => new Uint8Array() };

/** An encoder of 16-bit PCM at the rate `to`. */
export const createPcmEncoder = (rates: Rates): SampleEncoder => resampling(PCM, rates);
