/** Splits long audio at pauses into windows that an encoder takes, and tells silence from sound. No model. */
import type { SampleSource } from './sample-source.ts';

/** A part of the audio for one run of the encoder. */
export interface AudioWindow {
  /** Index of its first sample in the audio. */
  readonly start: number;
  readonly samples: Float32Array;
  /** Whether nothing in it is loud enough to be speech. */
  readonly silent: boolean;
}

/** Loudness is measured in frames of this length; a cut lies in the middle of the quietest stretch of PAUSE_FRAMES of them. */
const FRAME_SECONDS = 0.02;
const PAUSE_FRAMES = 11;
/** A window that does not hold the rest of the audio ends within its last SEARCH_SECONDS, but not in its first third. */
const SEARCH_SECONDS = 10;
const LEAST_SHARE = 1 / 3;
/** Root mean square below which a frame is silence, at full scale 1 (-60 dB). */
const SILENCE_RMS = 1e-3;

/** Splits samples into consecutive windows of at most `maxSeconds`. */
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

/** Yields the windows of `splitAtPauses` from a source that is read as it is cut; no more than one of them is in memory. */
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
  const frame = Math.round(FRAME_SECONDS * sampleRate);
  for (let at = 0; at < samples.length; at += frame) if (!(energy(samples, at, at + frame) < SILENCE_RMS ** 2)) return false;
  return true;
}

/** Index of the middle of the quietest stretch after `from`; of equally quiet ones the last. */
function quietest(samples: Float32Array, frame: number, from: number): number {
  const half = (PAUSE_FRAMES - 1) / 2;
  const first = Math.ceil(from / frame);
  const energies = Float64Array.from({ length: Math.ceil(samples.length / frame) - first }, (_, i) =>
    energy(samples, (first + i) * frame, (first + i + 1) * frame),
  );
  let best = Infinity;
  let at = samples.length;
  for (let middle = half; middle + half < energies.length; middle++) {
    let sum = 0;
    for (let i = middle - half; i <= middle + half; i++) sum += energies[i]!;
    if (sum <= best) {
      best = sum;
      at = Math.floor((first + middle + 0.5) * frame);
    }
  }
  return at;
}

/** Mean square of a frame; the last one may be shorter. An indexed loop, since an iterator is so slow that it blocks a page that cuts a recording. */
function energy(samples: Float32Array, start: number, end: number): number {
  const last = Math.min(end, samples.length);
  let sum = 0;
  for (let i = start; i < last; i++) sum += samples[i]! * samples[i]!;
  return sum / (last - start);
}
