/** Whisper's log-mel features in f64, straight from the definitions: reflect, window, DFT, filters given by the caller. */
export interface LogMelCase {
  readonly samples: ArrayLike<number>;
  /** Samples of the window; zeros follow `samples`. */
  readonly length: number;
  readonly fftSize: number;
  readonly hop: number;
  readonly mels: number;
  /** [mels][fftSize / 2 + 1]. */
  readonly filters: ArrayLike<number>;
  /** Attenuates steady noise in the first `heard` frames. */
  readonly denoise?: Denoise;
}

export interface Denoise {
  readonly heard: number;
  /** Noise is `over` times the power that `quiet` of these frames stay below, at most `spread` times the one that `least` do. */
  readonly quiet: number;
  readonly least: number;
  readonly over: number;
  readonly spread: number;
  /** Least share of a power that is kept. */
  readonly keep: number;
}

/** Features [length / hop][columns], columns >= mels; zeros after the mels. */
export function logMel({ samples, length, fftSize, hop, mels, filters, denoise }: LogMelCase, columns: number): Float64Array {
  const bins = fftSize / 2 + 1;
  const frames = length / hop;
  const at = (i: number): number => {
    const inside = i < 0 ? -i : i >= length ? 2 * (length - 1) - i : i;
    return inside < samples.length ? samples[inside]! : 0;
  };
  const cosines = Float64Array.from({ length: fftSize }, (_, i) => Math.cos((2 * Math.PI * i) / fftSize));
  const sines = Float64Array.from({ length: fftSize }, (_, i) => Math.sin((2 * Math.PI * i) / fftSize));
  const out = new Float64Array(frames * columns);
  let highest = -Infinity;
  for (let t = 0; t < frames; t++) {
    const powers = new Float64Array(bins);
    for (let k = 0; k < bins; k++) {
      let re = 0;
      let im = 0;
      for (let n = 0; n < fftSize; n++) {
        const value = at(t * hop + n - fftSize / 2) * (0.5 - 0.5 * cosines[n]!);
        re += value * cosines[(k * n) % fftSize]!;
        im -= value * sines[(k * n) % fftSize]!;
      }
      powers[k] = re * re + im * im;
    }
    for (let m = 0; m < mels; m++) {
      let sum = 0;
      for (let k = 0; k < bins; k++) sum += filters[m * bins + k]! * powers[k]!;
      out[t * columns + m] = Math.log10(Math.max(sum, 1e-10));
      highest = Math.max(highest, out[t * columns + m]!);
    }
  }
  for (let m = 0; denoise && m < mels; m++) denoiseBand(out, m, columns, denoise);
  for (let t = 0; t < frames; t++) {
    for (let m = 0; m < mels; m++) out[t * columns + m] = (Math.max(out[t * columns + m]!, highest - 8) + 4) / 4;
  }
  return out;
}

/** Spectral subtraction in band m of log [frames][columns], from the mean powers of five frames. */
function denoiseBand(log: Float64Array, m: number, columns: number, { heard, quiet, least, over, spread, keep }: Denoise): void {
  const power = Array.from({ length: heard }, (_, t) => {
    const near = [t - 2, t - 1, t, t + 1, t + 2].filter((i) => i >= 0 && i < heard);
    return near.reduce((sum, i) => sum + 10 ** log[i * columns + m]!, 0) / near.length;
  });
  const noise = Math.min(over * powerAbove(power, quiet), spread * powerAbove(power, least));
  for (let t = 0; t < heard; t++) log[t * columns + m]! += Math.log10(Math.max(1 - noise / power[t]!, keep));
}

/** The largest step of a fine scale that no more than `count` of the powers stay below. */
function powerAbove(power: readonly number[], count: number): number {
  let [low, high] = [-34, 20];
  for (let i = 0; i < 14; i++) {
    const middle = (low + high) / 2;
    if (power.filter((value) => value < 2 ** middle).length > count) high = middle;
    else low = middle;
  }
  return 2 ** low;
}

/** |re + i im| of x [frames][2 bins], real parts first. */
export function magnitude(x: ArrayLike<number>, frames: number, bins: number): Float64Array {
  return Float64Array.from({ length: frames * bins }, (_, i) => {
    const at = Math.floor(i / bins) * 2 * bins + (i % bins);
    return Math.hypot(x[at]!, x[at + bins]!);
  });
}
