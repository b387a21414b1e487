import { assert } from '../errors.ts';
import type { Device } from '../gpu/device.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { ceilDiv } from '../util/math.ts';
import { linear } from './linear.ts';
import { packLinear } from './pack-linear.ts';
import type { LinearWeight } from './weight.ts';

const WG = 64;

export const FRAME = defineKernel({
  file: 'spectral/frame.wgsl',
  fragments: () => ['lib/grid.wgsl'],
  bindings: { signal: 'read', out: 'write' },
  params: { samples: 'u32', frames: 'u32', n_fft: 'u32', hop: 'u32' },
  overrides: { WG: 'u32' },
});

const SPECTRUM_SPEC = {
  bindings: { x: 'read', out: 'write' },
  params: { frames: 'u32', bins: 'u32', stride: 'u32' },
  overrides: { WG: 'u32' },
} as const;

export const POLAR = defineKernel({ ...SPECTRUM_SPEC, file: 'spectral/polar.wgsl', fragments: () => ['lib/grid.wgsl'] });

export const SPECTRUM = defineKernel({
  ...SPECTRUM_SPEC,
  file: 'spectral/spectrum.wgsl',
  fragments: () => ['lib/grid.wgsl', 'lib/sine.wgsl'],
});

export const OVERLAP_ADD = defineKernel({
  file: 'spectral/overlap_add.wgsl',
  fragments: () => ['lib/grid.wgsl'],
  bindings: { frames: 'read', squared_window: 'read', out: 'write' },
  params: { samples: 'u32', count: 'u32', n_fft: 'u32', hop: 'u32' },
  overrides: { WG: 'u32' },
});

/** A short Fourier transform as two constant matrices with the periodic Hann window folded in; meant for n_fft of tens. */
export interface ShortFourier {
  readonly nFft: number;
  readonly hop: number;
  /** n_fft / 2 + 1. */
  readonly bins: number;
  /** [2 bins, n_fft]: real parts, then imaginary parts. */
  readonly forward: LinearWeight;
  /** [n_fft, 2 bins]. */
  readonly inverse: LinearWeight;
  /** [n_fft]. */
  readonly squaredWindow: Tensor;
}

/** Makes the matrices; n_fft a multiple of 4. */
export function createShortFourier(device: Device, nFft: number, hop: number): ShortFourier {
  assert(nFft % 4 === 0 && hop > 0 && hop <= nFft, `short Fourier transform: n_fft ${nFft} (a multiple of 4), hop ${hop}`);
  const bins = nFft / 2 + 1;
  const forward = new Float32Array(2 * bins * nFft);
  const inverse = new Float32Array(nFft * 2 * bins);
  const window = Float64Array.from({ length: nFft }, (_, n) => 0.5 - 0.5 * Math.cos((2 * Math.PI * n) / nFft));
  for (let k = 0; k < bins; k++) {
    const edge = k === 0 || k === nFft / 2;
    for (let n = 0; n < nFft; n++) {
      const angle = (2 * Math.PI * ((k * n) % nFft)) / nFft;
      // Exact zeros at the edges: a real signal has real DC and Nyquist bins, and the sign of a tiny imaginary part would flip their angle.
      const sine = edge ? 0 : Math.sin(angle);
      forward[k * nFft + n] = window[n]! * Math.cos(angle);
      forward[(bins + k) * nFft + n] = sine === 0 ? 0 : -window[n]! * sine;
      const weight = ((edge ? 1 : 2) * window[n]!) / nFft;
      inverse[n * 2 * bins + k] = weight * Math.cos(angle);
      inverse[n * 2 * bins + bins + k] = sine === 0 ? 0 : -weight * sine;
    }
  }
  return {
    nFft,
    hop,
    bins,
    forward: packLinear(device, 'dft', forward, 2 * bins, nFft),
    inverse: packLinear(device, 'inverse dft', inverse, nFft, 2 * bins),
    squaredWindow: device.upload(
      'squared window',
      'f32',
      [nFft],
      Float32Array.from(window, (w) => w * w),
    ),
  };
}

/** Intermediate results of both directions. */
export interface FourierScratch {
  /** [frames, nFft] f32. */
  readonly frames: Tensor;
  /** [frames, 2 bins padded to 4] f32, zero-filled. */
  readonly spectrum: Tensor;
}

/**
 * Magnitudes and angles of the centred, mirrored STFT of `signal` (torch.stft with center=True): out [frames, >= 2 bins], frames =
 * samples / hop + 1. Returns the number of frames.
 */
export function stftPolar(
  rec: Recorder,
  fourier: ShortFourier,
  {
    signal,
    samples,
    out,
    scratch,
  }: { readonly signal: Tensor; readonly samples: number; readonly out: Tensor; readonly scratch: FourierScratch },
): number {
  const { nFft, hop, bins } = fourier;
  const frames = Math.floor(samples / hop) + 1;
  const stride = out.shape.at(-1) ?? 0;
  assert(samples > nFft / 2, `stft: ${samples} samples cannot be mirrored over ${nFft / 2}`);
  assert(scratch.spectrum.shape.at(-1) === stride, `stft: ${out.label} and ${scratch.spectrum.label} differ in width`);
  rec.dispatch(FRAME, { overrides: { WG } }, { signal, out: scratch.frames }, { samples, frames, n_fft: nFft, hop }, [
    ceilDiv(frames * nFft, WG),
  ]);
  linear(rec, { x: scratch.frames, weight: fourier.forward, out: scratch.spectrum, rows: frames });
  polar(rec, { x: scratch.spectrum, out, frames, bins });
  return frames;
}

/** Magnitudes and angles in (-pi, pi] of complex numbers: x and out [frames, stride] with two halves of `bins` columns. */
export function polar(
  rec: Recorder,
  { x, out, frames, bins }: { readonly x: Tensor; readonly out: Tensor; readonly frames: number; readonly bins: number },
): void {
  const stride = x.shape.at(-1) ?? 0;
  rec.dispatch(POLAR, { overrides: { WG } }, { x, out }, { frames, bins, stride }, [ceilDiv(frames * bins, WG)]);
}

/**
 * Audio from iSTFTNet's last convolution x [frames, >= 2 bins] (log magnitudes, then what the sine of gives the phase): torch.istft with
 * center=True. out [(frames - 1) hop]; returns the number of samples.
 */
export function istftHead(
  rec: Recorder,
  fourier: ShortFourier,
  { x, frames, out, scratch }: { readonly x: Tensor; readonly frames: number; readonly out: Tensor; readonly scratch: FourierScratch },
): number {
  const { nFft, hop, bins } = fourier;
  const samples = (frames - 1) * hop;
  const stride = x.shape.at(-1) ?? 0;
  assert(scratch.spectrum.shape.at(-1) === stride, `istft: ${x.label} and ${scratch.spectrum.label} differ in width`);
  assert(out.size >= samples, `istft: ${samples} samples do not fit ${out.label}`);
  rec.dispatch(SPECTRUM, { overrides: { WG } }, { x, out: scratch.spectrum }, { frames, bins, stride }, [ceilDiv(frames * bins, WG)]);
  linear(rec, { x: scratch.spectrum, weight: fourier.inverse, out: scratch.frames, rows: frames });
  const bindings = { frames: scratch.frames, squared_window: fourier.squaredWindow, out };
  rec.dispatch(OVERLAP_ADD, { overrides: { WG } }, bindings, { samples, count: frames, n_fft: nFft, hop }, [ceilDiv(samples, WG)]);
  return samples;
}
