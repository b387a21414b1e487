export interface SourceShape {
  readonly frames: number;
  readonly samplesPerFrame: number;
  readonly sampleRate: number;
  readonly harmonics: number;
}

/**
 * SineGen and SourceModuleHnNSF of Kokoro by their definition, in f64: phases are summed a frame at a time, stretched to samples by linear
 * interpolation between frame centres. `normals` gives draw t * harmonics + h; absent = no noise.
 */
export function harmonicSource(
  f0: ArrayLike<number>,
  weights: ArrayLike<number>,
  bias: number,
  { frames, samplesPerFrame, sampleRate, harmonics }: SourceShape,
  normals?: (index: number) => number,
): Float64Array {
  const samples = frames * samplesPerFrame;
  const sums = new Float64Array(samples).fill(bias);
  for (let h = 0; h < harmonics; h++) {
    const phase = new Float64Array(frames);
    let total = 0;
    for (let i = 0; i < frames; i++) {
      const cycles = (f0[i]! * (h + 1)) / sampleRate;
      total += cycles - Math.floor(cycles);
      phase[i] = total * samplesPerFrame;
    }
    for (let t = 0; t < samples; t++) {
      const position = Math.max((t + 0.5) / samplesPerFrame - 0.5, 0);
      const left = Math.floor(position);
      const right = Math.min(left + 1, frames - 1);
      const cycles = phase[left]! + (position - left) * (phase[right]! - phase[left]!);
      const voiced = f0[Math.floor(t / samplesPerFrame)]! > 10;
      const noise = normals ? (voiced ? 0.003 : 0.1 / 3) * normals(t * harmonics + h) : 0;
      sums[t]! += weights[h]! * ((voiced ? 0.1 * Math.sin(2 * Math.PI * cycles) : 0) + noise);
    }
  }
  return sums.map(Math.tanh);
}
