import { assert } from '../errors.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { ceilDiv } from '../util/math.ts';
import { rowShape } from './row-spans.ts';
import type { Rows } from './row-spans.ts';

const WG = 64;

export const SOURCE_PHASE = defineKernel({
  file: 'spectral/source_phase.wgsl',
  consts: ['HARMONICS'],
  fragments: () => ['lib/row_spans.wgsl'],
  bindings: { f0: 'read', spans: 'read', phase: 'write' },
  params: { frames_unit: 'u32', frames: 'u32', f0_stride: 'u32', samples_per_frame: 'f32', sample_rate: 'f32' },
  overrides: { SPANS: 'bool' },
});

export const SOURCE = defineKernel({
  file: 'spectral/source.wgsl',
  fragments: () => ['lib/grid.wgsl', 'lib/sine.wgsl', 'lib/random_bits.wgsl', 'lib/mulberry.wgsl', 'lib/activation.wgsl', 'lib/row_spans.wgsl'],
  consts: ['HARMONICS'],
  bindings: { f0: 'read', phase: 'read', merge: 'read', spans: 'read', out: 'write' },
  params: {
    frames_unit: 'u32', frames: 'u32', f0_stride: 'u32', samples_per_frame: 'u32', sample_rate: 'f32', seed: 'u32', first_sample: 'u32', noise_scale: 'f32',
  },
  overrides: { WG: 'u32', SPANS: 'bool' },
}); // prettier-ignore

export interface HarmonicSourceArgs {
  /** [frames, stride] f32, Hz in column 0; below 10 Hz is unvoiced. */
  readonly f0: Tensor;
  readonly frames: Rows;
  /** Scratch [frames, harmonics] f32. */
  readonly phase: Tensor;
  /** [harmonics + 1] f32: weights that merge the harmonics, then the bias. */
  readonly merge: Tensor;
  /** [frames * samplesPerFrame] f32. */
  readonly out: Tensor;
  readonly samplesPerFrame: number;
  /** Sample rate, in Hz. */
  readonly sampleRate: number;
  readonly noise: NoiseKey;
}

/**
 * Noise is a function of (seed, sample number, harmonic), so a sentence sounds the same whatever else is computed. With several sequences,
 * the last two numbers of a span are its seed and first sample number.
 */
export interface NoiseKey {
  /** u32 seed. */
  readonly seed: number;
  /** Number of the first sample within its utterance. */
  readonly firstSample: number;
  /** 0 = none, 1 = as trained. */
  readonly scale: number;
}

/** Excitation of a neural source-filter vocoder (SineGen and SourceModuleHnNSF of Kokoro) from an F0 curve. */
export function harmonicSource(rec: Recorder, args: HarmonicSourceArgs): void {
  const { f0, frames, phase, merge, out, samplesPerFrame, sampleRate, noise } = args;
  const harmonics = merge.size - 1;
  const f0Stride = f0.shape.at(-1) ?? 0;
  const { unit, rows, end, longest, count, table } = rowShape(frames);
  assert(
    phase.size >= end * harmonics && out.size >= end * samplesPerFrame,
    `source: ${out.label} or ${phase.label} is too small for ${end} frames`,
  );
  const consts = { HARMONICS: harmonics };
  const spans = table ?? f0;
  const SPANS = table ? 1 : 0;
  const common = { frames_unit: unit, frames: rows, f0_stride: f0Stride, sample_rate: sampleRate };
  const phased = { ...common, samples_per_frame: samplesPerFrame };
  rec.dispatch(SOURCE_PHASE, { consts, overrides: { SPANS } }, { f0, spans, phase }, phased, [1, 1, count]);
  const keyed = { seed: noise.seed, first_sample: noise.firstSample, noise_scale: noise.scale };
  const groups = [ceilDiv(longest * samplesPerFrame, WG), 1, count];
  rec.dispatch(SOURCE, { consts, overrides: { WG, SPANS } }, { f0, phase, merge, spans, out }, { ...phased, ...keyed }, groups);
}
