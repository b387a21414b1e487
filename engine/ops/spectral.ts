import { assert } from '../errors.ts';
import type { Device } from '../gpu/device.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { alignUp, ceilDiv } from '../util/math.ts';
import { conv1d, packConv1d } from './conv.ts';
import type { ConvWeight } from './conv.ts';

/** Settings of a mel spectrogram, from a checkpoint's preprocessor_config.json. */
export interface MelSettings {
  /** Sample rate, in Hz. */
  readonly sampleRate: number;
  /** Samples per frame. */
  readonly fftSize: number;
  /** Samples between the starts of frames; a multiple of 4. */
  readonly hop: number;
  readonly mels: number;
}

/** Constant tensors of logMel, made once by createLogMel. */
export interface LogMel {
  readonly settings: MelSettings;
  /** The windowed DFT as a convolution over rows of `hop` samples: [2 bins] outputs, ceil(fftSize / hop) taps. */
  readonly dft: ConvWeight;
  /** [mels, bins] f32. */
  readonly filters: Tensor;
  /** [mels, 2] u32: first bin and number of bins of each filter. */
  readonly spans: Tensor;
}

const binsOf = ({ fftSize }: MelSettings): number => Math.floor(fftSize / 2) + 1;

/** Number of rows of `hop` samples that `frames` frames read. */
export function melRows({ fftSize, hop }: MelSettings, frames: number): number {
  return frames + ceilDiv(fftSize, hop) - 1;
}

/**
 * Triangular filters [mels][bins] over 0..sampleRate / 2 on Slaney's mel scale (linear below 1 kHz, logarithmic above), each of unit area:
 * norm='slaney', mel_scale='slaney' in librosa and transformers.
 */
export function melFilters(settings: MelSettings): Float64Array {
  const { sampleRate, mels } = settings;
  const bins = binsOf(settings);
  const logStep = Math.log(6.4) / 27;
  const toMel = (hz: number): number => (hz < 1000 ? (3 * hz) / 200 : 15 + Math.log(hz / 1000) / logStep);
  const toHz = (mel: number): number => (mel < 15 ? (200 * mel) / 3 : 1000 * Math.exp((mel - 15) * logStep));
  const edges = Array.from({ length: mels + 2 }, (_, i) => toHz((i * toMel(sampleRate / 2)) / (mels + 1)));
  const filters = new Float64Array(mels * bins);
  for (let m = 0; m < mels; m++) {
    const [low, middle, high] = [edges[m]!, edges[m + 1]!, edges[m + 2]!];
    for (let k = 0; k < bins; k++) {
      const hz = (k * sampleRate) / 2 / (bins - 1);
      const height = Math.min((hz - low) / (middle - low), (high - hz) / (high - middle));
      filters[m * bins + k] = (Math.max(0, height) * 2) / (high - low);
    }
  }
  return filters;
}

/** Uploads DFT and filters. The periodic Hann window is part of the DFT's weights, which stay f32: spectra span eight decades. */
export function createLogMel(device: Device, settings: MelSettings): LogMel {
  const { fftSize, hop, mels } = settings;
  assert(hop % 4 === 0 && fftSize % 2 === 0, `log-mel: hop ${hop} and frames of ${fftSize} samples, expected multiples of 4 and 2`);
  const bins = binsOf(settings);
  const kernel = ceilDiv(fftSize, hop);
  const weights = new Float32Array(2 * bins * hop * kernel);
  for (let n = 0; n < fftSize; n++) {
    const window = 0.5 - 0.5 * Math.cos((2 * Math.PI * n) / fftSize);
    for (let k = 0; k < bins; k++) {
      const angle = (2 * Math.PI * ((k * n) % fftSize)) / fftSize;
      const at = (n % hop) * kernel + Math.floor(n / hop);
      weights[k * hop * kernel + at] = window * Math.cos(angle);
      weights[(bins + k) * hop * kernel + at] = -window * Math.sin(angle);
    }
  }
  const dft = packConv1d(device, 'windowed dft', weights, { outChannels: 2 * bins, inChannels: hop, kernel });
  const filters = melFilters(settings);
  const spans = Uint32Array.from({ length: 2 * mels }, (_, i) => {
    const row = filters.subarray((i >> 1) * bins, ((i >> 1) + 1) * bins);
    const first = Math.max(
      0,
      row.findIndex((weight) => weight > 0),
    );
    return i % 2 === 0 ? first : row.findLastIndex((weight) => weight > 0) + 1 - first;
  });
  return {
    settings,
    dft,
    filters: device.upload('mel filters', 'f32', [mels, bins], Float32Array.from(filters)),
    spans: device.upload('mel spans', 'u32', [mels, 2], spans),
  };
}

/**
 * Lays a window of `length` samples (zeros after the end of `samples`) out as the rows logMel reads: half a frame of reflection, the
 * window, half a frame of reflection, zeros to the end of the last row.
 */
export function melInput(settings: MelSettings, samples: Float32Array, length: number): Float32Array {
  const { fftSize, hop } = settings;
  assert(length % hop === 0 && length > fftSize / 2 && samples.length <= length, `log-mel: ${samples.length} samples for ${length}`);
  const half = fftSize / 2;
  const rows = new Float32Array(melRows(settings, length / hop) * hop);
  rows.set(samples, half);
  for (let i = 1; i <= half; i++) {
    rows[half - i] = rows[half + i]!;
    if (half + length - 1 + i < rows.length) rows[half + length - 1 + i] = rows[half + length - 1 - i]!;
  }
  return rows;
}

export const MEL_LOG = defineKernel({
  file: 'spectral/mel_log.wgsl',
  bindings: { spectrum: 'read', filters: 'read', spans: 'read', log_mel: 'write', maxima: 'write' },
  params: { frames: 'u32', bins: 'u32', mels: 'u32', stride: 'u32' },
  overrides: { WG: 'u32' },
});

export const MEL_DENOISE = defineKernel({
  file: 'spectral/mel_denoise.wgsl',
  bindings: { log_mel: 'update' },
  params: { heard: 'u32', stride: 'u32', quiet: 'u32', least: 'u32', over: 'f32', spread: 'f32', keep: 'f32' },
  overrides: { WG: 'u32', FRAMES: 'u32' },
});

/**
 * The noise power of a band is QUIET.times the power that QUIET.share of a window's frames stay below, at most LEAST.times the one that
 * LEAST.share of them do. On forty sentences of three synthetic voices in noise at 20, 10 and 5 dB, with up to 9 dB removed: 9.7, 23.8 and
 * 47.4 % of words wrong without; 8.4, 20.8 and 38.7 % with these. Without the bound by LEAST, quiet speech of clean recordings is removed
 * too (awb 6.7 to 7.7 %; with it 6.5 %); with six times it: 7.8, 21.1, 39.4 and 6.8 %.
 */
const QUIET = { share: 0.3, times: 1.5 } as const;
const LEAST = { share: 0.05, times: 4 } as const;

export const MEL_SCALE = defineKernel({
  file: 'spectral/mel_scale.wgsl',
  bindings: { log_mel: 'read', maxima: 'read', out: 'write' },
  params: { frames: 'u32', mels: 'u32', stride: 'u32' },
  overrides: { WG: 'u32', FRAMES: 'u32' },
});

export const MAGNITUDE = defineKernel({
  file: 'spectral/magnitude.wgsl',
  fragments: () => ['lib/grid.wgsl'],
  bindings: { x: 'read', out: 'write' },
  params: { frames: 'u32', bins: 'u32' },
  overrides: { WG: 'u32' },
});

const MAGNITUDE_WG = 64;

/** out [frames, bins] = magnitudes of complex numbers x [frames, 2 bins], real parts before imaginary ones. */
export function magnitude(rec: Recorder, { x, out, frames }: { readonly x: Tensor; readonly out: Tensor; readonly frames: number }): void {
  const bins = (x.shape.at(-1) ?? 0) / 2;
  assert(out.size >= frames * bins, `magnitude: ${frames} frames of ${bins} bins do not fit ${out.label}`);
  rec.dispatch(MAGNITUDE, { overrides: { WG: MAGNITUDE_WG } }, { x, out }, { frames, bins }, [ceilDiv(frames * bins, MAGNITUDE_WG)]);
}

/** Frames per workgroup of mel_scale. */
const SCALE_FRAMES = 64;

export interface LogMelWorkspace {
  /** [frames, 2 bins] f32. */
  readonly spectrum: Tensor;
  /** [frames] f32. */
  readonly maxima: Tensor;
  /** [frames, mels padded to 4] f32. */
  readonly logMel: Tensor;
}

/** Allocates the scratch tensors of logMel for up to `frames` frames. */
export function createLogMelWorkspace(device: Device, settings: MelSettings, frames: number): LogMelWorkspace {
  return {
    spectrum: device.tensor('mel spectrum', 'f32', [frames, 2 * binsOf(settings)]),
    maxima: device.tensor('mel maxima', 'f32', [frames]),
    logMel: device.tensor('log mel', 'f32', [frames, alignUp(settings.mels, 4)]),
  };
}

export interface LogMelArgs {
  readonly logMel: LogMel;
  readonly workspace: LogMelWorkspace;
  /** [melRows(frames), hop] f32 from melInput. */
  readonly samples: Tensor;
  /** [frames, mels padded to 4] f32. */
  readonly out: Tensor;
  readonly frames: number;
  /** Attenuates steady noise in the first `heard` frames, per band and by at most so many decibels. */
  readonly denoise?: { readonly heard: number; readonly decibels: number } | undefined;
}

/**
 * Whisper's input features: log10 of the mel powers, clamped eight decades below the window's maximum (before denoising), then (x + 4) / 4.
 */
export function logMel(rec: Recorder, { logMel: { settings, dft, filters, spans }, ...args }: LogMelArgs): void {
  const { workspace, samples, out, frames, denoise } = args;
  const { spectrum, maxima, logMel: log } = workspace;
  const { mels } = settings;
  const stride = alignUp(mels, 4);
  assert(
    out.shape.at(-1) === stride && log.shape.at(-1) === stride,
    `log-mel: ${out.label} has ${out.shape.at(-1)} columns, not ${stride}`,
  );
  conv1d(rec, { x: samples, weight: dft, out: spectrum, rows: melRows(settings, frames) });
  const WG = rec.caps.family === 'cpu' ? 8 : 64;
  const bindings = { spectrum, filters, spans, log_mel: log, maxima };
  rec.dispatch(MEL_LOG, { overrides: { WG } }, bindings, { frames, bins: binsOf(settings), mels, stride }, [frames]);
  if (denoise) {
    const { heard, decibels } = denoise;
    assert(heard <= frames && frames <= maxima.size, `log-mel: ${heard} of ${frames} frames in a workspace of ${maxima.size}`);
    const [quiet, least] = [QUIET, LEAST].map(({ share }) => Math.floor(share * heard)) as [number, number];
    const params = { heard, stride, quiet, least, over: QUIET.times, spread: LEAST.times, keep: 10 ** (-decibels / 10) };
    rec.dispatch(MEL_DENOISE, { overrides: { WG, FRAMES: maxima.size } }, { log_mel: log }, params, [mels]);
  }
  const variant = { overrides: { WG, FRAMES: SCALE_FRAMES } };
  rec.dispatch(MEL_SCALE, variant, { log_mel: log, maxima, out }, { frames, mels, stride }, [ceilDiv(frames, SCALE_FRAMES)]);
}
