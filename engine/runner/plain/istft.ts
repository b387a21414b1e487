/** Short Fourier transforms by their sums, in f64: periodic Hann window, centred frames, mirrored ends. */
const hann = (nFft: number): Float64Array => Float64Array.from({ length: nFft }, (_, n) => 0.5 - 0.5 * Math.cos((2 * Math.PI * n) / nFft));

/** Complex spectrum of a signal: [frames, 2 bins], real parts then imaginary parts. */
export function stft(signal: ArrayLike<number>, nFft: number, hop: number): Float64Array {
  const bins = nFft / 2 + 1;
  const frames = Math.floor(signal.length / hop) + 1;
  const window = hann(nFft);
  const out = new Float64Array(frames * 2 * bins);
  for (let f = 0; f < frames; f++) {
    for (let k = 0; k < bins; k++) {
      let re = 0;
      let im = 0;
      for (let n = 0; n < nFft; n++) {
        let at = Math.abs(f * hop + n - nFft / 2);
        if (at >= signal.length) at = 2 * (signal.length - 1) - at;
        re += window[n]! * signal[at]! * Math.cos((2 * Math.PI * k * n) / nFft);
        im -= window[n]! * signal[at]! * Math.sin((2 * Math.PI * k * n) / nFft);
      }
      out[f * 2 * bins + k] = re;
      out[f * 2 * bins + bins + k] = im;
    }
  }
  return out;
}

/** iSTFTNet's end: x [frames, 2 bins] = log magnitude, then the argument of a sine that is the phase -> [(frames - 1) hop] samples. */
export function istftHead(x: ArrayLike<number>, frames: number, nFft: number, hop: number): Float64Array {
  const bins = nFft / 2 + 1;
  const window = hann(nFft);
  const length = (frames - 1) * hop;
  const sum = new Float64Array(length);
  const envelope = new Float64Array(length);
  for (let f = 0; f < frames; f++) {
    for (let n = 0; n < nFft; n++) {
      const at = f * hop + n - nFft / 2;
      if (at < 0 || at >= length) continue;
      let value = 0;
      for (let k = 0; k < bins; k++) {
        const phase = Math.sin(x[f * 2 * bins + bins + k]!);
        const turn = (2 * Math.PI * k * n) / nFft;
        const edge = k === 0 || k === nFft / 2;
        const real = Math.cos(phase) * Math.cos(turn) - (edge ? 0 : Math.sin(phase) * Math.sin(turn));
        value += ((edge ? 1 : 2) * Math.exp(x[f * 2 * bins + k]!) * real) / nFft;
      }
      sum[at]! += value * window[n]!;
      envelope[at]! += window[n]! ** 2;
    }
  }
  return sum.map((value, i) => value / envelope[i]!);
}
