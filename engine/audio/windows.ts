/** Cutting long audio into windows an encoder takes, at pauses, and telling silence from sound. No model. */
import type { SampleSource } from './sample-source.ts';

export interface AudioWindow {
  /** First sample. */
  readonly start: number;
  readonly samples: Float32Array;
  /** Nothing in it is loud enough to be speech. */
  readonly silent: boolean;
}

/** Loudness is measured in frames of this length; a cut lies in the middle of the quietest stretch of PAUSE_FRAMES of them. */
const FRAME_SECONDS = 0.02;
const PAUSE_FRAMES = 11;
/** A window that does not hold the rest is cut in its last seconds, but not in its first third. */
const SEARCH_SECONDS = 10;
const LEAST_SHARE = 1 / 3;
/** Root mean square of the loudest frame, of full scale 1 (-60 dB). */
const SILENCE_RMS = 1e-3;

/** Consecutive windows of at most `maxSeconds` that together are all of `samples`. */
export function splitAtPauses(samples: Float32Array, sampleRate: number, maxSeconds: number): AudioWindow[] {
  const most = Math.floor(maxSeconds * sampleRate);
  const windows: AudioWindow[] = [];
  for (let start = 0; start < samples.length;) {
    const window = firstWindow(samples.subarray(start, start + most + 1), sampleRate, maxSeconds);
    windows.push({ ...window, start });
    start += window.samples.length;
  }
  return windows;
}

/** The same windows of audio that is read as it is cut; no more than one of them is held. */
export async function* cutAtPauses(source: SampleSource, sampleRate: number, maxSeconds: number): AsyncGenerator<AudioWindow> {
  const most = Math.floor(maxSeconds * sampleRate);
  for (let start = 0; start < source.length;) {
    const ahead = await source.read(start, Math.min(start + most + 1, source.length));
    const window = firstWindow(ahead, sampleRate, maxSeconds);
    yield { ...window, start };
    start += window.samples.length;
  }
}

/** The first window of `samples`, which hold at least one sample more than a window unless they end the audio. */
function firstWindow(samples: Float32Array, sampleRate: number, maxSeconds: number): AudioWindow {
  const most = Math.floor(maxSeconds * sampleRate);
  const least = Math.floor(Math.max(most - SEARCH_SECONDS * sampleRate, most * LEAST_SHARE));
  const frame = Math.round(FRAME_SECONDS * sampleRate);
  const length = samples.length <= most ? samples.length : quietest(samples.subarray(0, most), frame, least);
  const part = samples.subarray(0, length);
  return { start: 0, samples: part, silent: isSilent(part, sampleRate) };
}

/** Whether nothing in the samples is loud enough to be speech. */
export function isSilent(samples: Float32Array, sampleRate: number): boolean {
  return energies(samples, Math.round(FRAME_SECONDS * sampleRate)).every((energy) => energy < SILENCE_RMS ** 2);
}

/** Sample in the middle of the quietest stretch after `from`; of equally quiet ones the last. */
function quietest(samples: Float32Array, frame: number, from: number): number {
  const energy = energies(samples, frame);
  const half = (PAUSE_FRAMES - 1) / 2;
  let best = Infinity;
  let at = samples.length;
  for (let middle = Math.ceil(from / frame) + half; middle + half < energy.length; middle++) {
    let sum = 0;
    for (let i = middle - half; i <= middle + half; i++) sum += energy[i]!;
    if (sum <= best) {
      best = sum;
      at = Math.floor((middle + 0.5) * frame);
    }
  }
  return at;
}

/** Mean square of each frame; the last may be shorter. */
function energies(samples: Float32Array, frame: number): Float64Array {
  const out = new Float64Array(Math.ceil(samples.length / frame));
  for (let i = 0; i < out.length; i++) {
    const part = samples.subarray(i * frame, (i + 1) * frame);
    let sum = 0;
    for (const value of part) sum += value * value;
    out[i] = sum / part.length;
  }
  return out;
}
