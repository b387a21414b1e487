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
}

/** Features [length / hop][columns], columns >= mels; zeros after the mels. */
export function logMel({ samples, length, fftSize, hop, mels, filters }: LogMelCase, columns: number): Float64Array {
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
  for (let t = 0; t < frames; t++) {
    for (let m = 0; m < mels; m++) out[t * columns + m] = (Math.max(out[t * columns + m]!, highest - 8) + 4) / 4;
  }
  return out;
}

/** |re + i im| of x [frames][2 bins], real parts first. */
export function magnitude(x: ArrayLike<number>, frames: number, bins: number): Float64Array {
  return Float64Array.from({ length: frames * bins }, (_, i) => {
    const at = Math.floor(i / bins) * 2 * bins + (i % bins);
    return Math.hypot(x[at]!, x[at + bins]!);
  });
}
