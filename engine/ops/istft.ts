import { assert } from '../errors.ts';
import type { Device } from '../gpu/device.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { ceilDiv } from '../util/math.ts';
import { linear } from './linear.ts';
import { packLinear } from './pack-linear.ts';
import { rowShape } from './row-spans.ts';
import type { RowShape, Rows } from './row-spans.ts';
import type { LinearWeight } from './weight.ts';

const WG = 64;

export const FRAME = defineKernel({
  file: 'spectral/frame.wgsl',
  fragments: () => ['lib/row_spans.wgsl'],
  bindings: { signal: 'read', spans: 'read', out: 'write' },
  params: { frames_unit: 'u32', frames: 'u32', n_fft: 'u32', hop: 'u32' },
  overrides: { WG: 'u32', SPANS: 'bool' },
});

const SPECTRUM_SPEC = {
  bindings: { x: 'read', out: 'write' },
  params: { frames: 'u32', bins: 'u32', stride: 'u32' },
  overrides: { WG_ROWS: 'u32' },
} as const;

export const POLAR = defineKernel({ ...SPECTRUM_SPEC, file: 'spectral/polar.wgsl' });

export const SPECTRUM = defineKernel({
  ...SPECTRUM_SPEC,
  file: 'spectral/spectrum.wgsl',
  fragments: () => ['lib/sine.wgsl'],
});

export const OVERLAP_ADD = defineKernel({
  file: 'spectral/overlap_add.wgsl',
  fragments: () => ['lib/grid.wgsl', 'lib/row_spans.wgsl'],
  bindings: { frames: 'read', squared_window: 'read', spans: 'read', out: 'write' },
  params: { frames_unit: 'u32', frames: 'u32', n_fft: 'u32', hop: 'u32' },
  overrides: { WG: 'u32', SPANS: 'bool' },
});

/** A short Fourier transform as two constant matrices with the periodic Hann window folded in; meant for n_fft of some tens. */
export interface ShortFourier {
  readonly nFft: number;
  readonly hop: number;
  /** Number of frequency bins, n_fft / 2 + 1. */
  readonly bins: number;
  /** [2 bins, n_fft]: real parts, then imaginary parts. */
  readonly forward: LinearWeight;
  /** [n_fft, 2 bins]: the inverse transform. */
  readonly inverse: LinearWeight;
  /** [n_fft] f32: the squared window. */
  readonly squaredWindow: Tensor;
}

/** Computes and uploads the matrices; n_fft must be a multiple of 4. */
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

/** Scratch tensors of both directions. */
export interface FourierScratch {
  /** [frames, nFft] f32. */
  readonly frames: Tensor;
  /** [frames, 2 bins padded to 4] f32, zero-filled. */
  readonly spectrum: Tensor;
}

export interface StftArgs {
  /** f32 samples; with several sequences, each begins at sample `hop` times its first frame. */
  readonly signal: Tensor;
  /** Rows of frames: n frames cover (n - 1) * hop samples. */
  readonly frames: Rows;
  /** [frames, >= 2 bins] f32. */
  readonly out: Tensor;
  readonly scratch: FourierScratch;
}

/** Computes magnitudes and angles of the centred, mirrored STFT of `signal` (torch.stft with center=True). */
export function stftPolar(rec: Recorder, fourier: ShortFourier, { signal, frames, out, scratch }: StftArgs): void {
  const { nFft, hop, bins } = fourier;
  const stride = out.shape.at(-1) ?? 0;
  const shape = rowShape(frames);
  const samples = (shape.longest - 1) * hop;
  assert(samples > nFft / 2, `stft: ${samples} samples cannot be mirrored over ${nFft / 2}`);
  assert(scratch.spectrum.shape.at(-1) === stride, `stft: ${out.label} and ${scratch.spectrum.label} differ in width`);
  const bindings = { signal, spans: shape.table ?? signal, out: scratch.frames };
  const params = { frames_unit: shape.unit, frames: shape.rows, n_fft: nFft, hop };
  rec.dispatch(FRAME, spanVariant(shape), bindings, params, [nFft / 4, ceilDiv(shape.longest, WG), shape.count]);
  linear(rec, { x: scratch.frames, weight: fourier.forward, out: scratch.spectrum, rows: shape.end });
  polar(rec, { x: scratch.spectrum, out, frames: shape.end, bins });
}

function spanVariant({ table }: RowShape): { readonly overrides: { readonly WG: number; readonly SPANS: number } } {
  return { overrides: { WG, SPANS: table ? 1 : 0 } };
}

/** Computes magnitudes and angles in (-pi, pi] of complex numbers: x and out [frames, stride], each with two halves of `bins` columns. */
export function polar(
  rec: Recorder,
  { x, out, frames, bins }: { readonly x: Tensor; readonly out: Tensor; readonly frames: number; readonly bins: number },
): void {
  const stride = x.shape.at(-1) ?? 0;
  rec.dispatch(POLAR, ...binsOf({ x, out, frames, bins, stride }));
}

/** Grid with one invocation per bin, 8 adjacent bins per workgroup row: bins and frames are grid dimensions, so that no kernel divides. */
function binsOf({ x, out, frames, bins, stride }: { readonly x: Tensor; readonly out: Tensor; readonly frames: number; readonly bins: number; readonly stride: number }) {
  const WG_ROWS = WG / 8;
  return [{ overrides: { WG_ROWS } }, { x, out }, { frames, bins, stride }, [ceilDiv(bins, 8), ceilDiv(frames, WG_ROWS)]] as const;
} // prettier-ignore

export interface IstftArgs {
  /** [frames, >= 2 bins] f32: log magnitudes, then values whose sine is the phase. */
  readonly x: Tensor;
  readonly frames: Rows;
  /** [(frames - 1) hop] f32; with several sequences, each begins at sample `hop` times its first frame. */
  readonly out: Tensor;
  readonly scratch: FourierScratch;
}

/** Computes audio from iSTFTNet's last convolution: torch.istft with center=True. */
export function istftHead(rec: Recorder, fourier: ShortFourier, { x, frames, out, scratch }: IstftArgs): void {
  const { nFft, hop, bins } = fourier;
  const shape = rowShape(frames);
  const { end } = shape;
  const stride = x.shape.at(-1) ?? 0;
  assert(scratch.spectrum.shape.at(-1) === stride, `istft: ${x.label} and ${scratch.spectrum.label} differ in width`);
  assert(out.size >= (end - 1) * hop, `istft: ${(end - 1) * hop} samples do not fit ${out.label}`);
  rec.dispatch(SPECTRUM, ...binsOf({ x, out: scratch.spectrum, frames: end, bins, stride }));
  linear(rec, { x: scratch.spectrum, weight: fourier.inverse, out: scratch.frames, rows: end });
  const bindings = { frames: scratch.frames, squared_window: fourier.squaredWindow, spans: shape.table ?? x, out };
  const params = { frames_unit: shape.unit, frames: shape.rows, n_fft: nFft, hop };
  const groups = [ceilDiv((shape.longest - 1) * hop, WG), 1, shape.count];
  rec.dispatch(OVERLAP_ADD, spanVariant(shape), bindings, params, groups);
}
