import { assert } from '../errors.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { ceilDiv } from '../util/math.ts';

const WG = 64;

export const SOURCE_PHASE = defineKernel({
  file: 'spectral/source_phase.wgsl',
  consts: ['HARMONICS'],
  bindings: { f0: 'read', phase: 'write' },
  params: { frames: 'u32', f0_stride: 'u32', samples_per_frame: 'f32', sample_rate: 'f32' },
});

export const SOURCE = defineKernel({
  file: 'spectral/source.wgsl',
  fragments: () => ['lib/grid.wgsl', 'lib/sine.wgsl', 'lib/mulberry.wgsl', 'lib/activation.wgsl'],
  consts: ['HARMONICS'],
  bindings: { f0: 'read', phase: 'read', merge: 'read', out: 'write' },
  params: {
    samples: 'u32', frames: 'u32', f0_stride: 'u32', samples_per_frame: 'u32', sample_rate: 'f32', seed: 'u32', first_sample: 'u32', noise_scale: 'f32',
  },
  overrides: { WG: 'u32' },
}); // prettier-ignore

export interface HarmonicSourceArgs {
  /** [frames, stride] f32, Hz in column 0; below 10 Hz is unvoiced. */
  readonly f0: Tensor;
  readonly frames: number;
  /** Scratch [frames, harmonics] f32. */
  readonly phase: Tensor;
  /** [harmonics + 1] f32: how the harmonics add up, then the bias. */
  readonly merge: Tensor;
  /** [frames * samplesPerFrame] f32. */
  readonly out: Tensor;
  readonly samplesPerFrame: number;
  /** Hz. */
  readonly sampleRate: number;
  readonly noise: NoiseKey;
}

/** Noise is a function of (seed, sample number, harmonic), so a sentence sounds the same whatever else is computed. */
export interface NoiseKey {
  /** u32. */
  readonly seed: number;
  /** Number of the first sample in the utterance. */
  readonly firstSample: number;
  /** 0 = none, 1 = as trained. */
  readonly scale: number;
}

/** Excitation of a neural source-filter vocoder (SineGen and SourceModuleHnNSF of Kokoro) from an F0 curve. */
export function harmonicSource(rec: Recorder, args: HarmonicSourceArgs): void {
  const { f0, frames, phase, merge, out, samplesPerFrame, sampleRate, noise } = args;
  const harmonics = merge.size - 1;
  const f0Stride = f0.shape.at(-1) ?? 0;
  const samples = frames * samplesPerFrame;
  assert(
    phase.size >= frames * harmonics && out.size >= samples,
    `source: ${out.label} or ${phase.label} is too small for ${frames} frames`,
  );
  const consts = { HARMONICS: harmonics };
  const common = { frames, f0_stride: f0Stride, sample_rate: sampleRate };
  rec.dispatch(SOURCE_PHASE, { consts }, { f0, phase }, { ...common, samples_per_frame: samplesPerFrame }, [1]);
  const keyed = { seed: noise.seed, first_sample: noise.firstSample, noise_scale: noise.scale };
  const params = { samples, samples_per_frame: samplesPerFrame, ...common, ...keyed };
  rec.dispatch(SOURCE, { consts, overrides: { WG } }, { f0, phase, merge, out }, params, [ceilDiv(samples, WG)]);
}
