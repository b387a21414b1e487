import { EngineError } from '../errors.ts';
import type { Device } from '../gpu/device.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { reduceFragment, reduceVariant } from './reduce.ts';

/** Rotary position settings as a checkpoint's config.json gives them. */
export interface RopeConfig {
  readonly theta: number;
  readonly headDim: number;
  readonly scaling: RopeScaling | undefined;
}

export type RopeScaling =
  | { readonly kind: 'linear'; readonly factor: number }
  | {
      /** Llama 3.1: long wavelengths are stretched, short ones kept, those between blended. */
      readonly kind: 'llama3';
      readonly factor: number;
      readonly lowFreqFactor: number;
      readonly highFreqFactor: number;
      readonly originalContext: number;
    }
  /** Every frequency by a number of its own, [D/2]. */
  | { readonly kind: 'factors'; readonly factors: readonly number[] }
  | {
      /** YaRN (https://arxiv.org/abs/2309.00071): frequencies that turn often in the original context are kept, slow ones stretched. */
      readonly kind: 'yarn';
      readonly factor: number;
      readonly originalContext: number;
      /** Turns in the original context from which on a frequency is kept, and up to which it is stretched whole. */
      readonly betaFast: number;
      readonly betaSlow: number;
      /** Whether the bounds of the ramp between the two are whole channels. */
      readonly truncate: boolean;
      /** Rotated queries and keys are multiplied with it. */
      readonly attentionFactor: number;
    }
  /** Nothing is rotated. */
  | { readonly kind: 'none' };

/** Inverse frequencies [D/2] after scaling, in f64. */
export function ropeFrequencies({ theta, headDim, scaling }: RopeConfig): Float64Array {
  const frequencies = Float64Array.from({ length: headDim / 2 }, (_, i) => theta ** (-2 * i / headDim)); // prettier-ignore
  if (!scaling) return frequencies;
  if (scaling.kind === 'linear') return frequencies.map((f) => f / scaling.factor);
  if (scaling.kind === 'none') return frequencies.fill(0);
  if (scaling.kind === 'yarn') return yarnFrequencies(frequencies, theta, headDim, scaling);
  if (scaling.kind === 'factors') return frequencies.map((f, i) => f / scaling.factors[i]!);
  const { factor, lowFreqFactor, highFreqFactor, originalContext } = scaling;
  return frequencies.map((f) => {
    const turns = (originalContext * f) / (2 * Math.PI);
    if (turns < lowFreqFactor) return f / factor;
    if (turns > highFreqFactor) return f;
    const smooth = (turns - lowFreqFactor) / (highFreqFactor - lowFreqFactor);
    return ((1 - smooth) * f) / factor + smooth * f;
  });
}

function yarnFrequencies(
  frequencies: Float64Array,
  theta: number,
  headDim: number,
  { factor, originalContext, betaFast, betaSlow, truncate }: Extract<RopeScaling, { kind: 'yarn' }>,
): Float64Array {
  // The channel whose frequency turns so many times in the original context.
  const channel = (turns: number): number => (headDim * Math.log(originalContext / (turns * 2 * Math.PI))) / (2 * Math.log(theta));
  const [from, to] = [channel(betaFast), channel(betaSlow)];
  const low = Math.max(truncate ? Math.floor(from) : from, 0);
  const high = Math.min(truncate ? Math.ceil(to) : to, headDim - 1);
  // transformers' own way not to divide by zero.
  const width = low === high ? 0.001 : high - low;
  return frequencies.map((f, i) => {
    const stretched = Math.min(1, Math.max(0, (i - low) / width));
    return (f / factor) * stretched + f * (1 - stretched);
  });
}

/** Cosines and sines of positions 0..positions-1: [S, D/8, 2, 4] with four cosines, then the four sines of the same channels. */
export function ropeTable(device: Device, config: RopeConfig, positions: number): Tensor {
  if (config.headDim % 8 !== 0) throw new EngineError('unsupported', `head dim ${config.headDim}, expected a multiple of 8`);
  // PyTorch rounds the frequencies to f32 before multiplying; at large positions that rounding is visible.
  const frequencies = Float32Array.from(ropeFrequencies(config));
  const half = frequencies.length;
  const { scaling } = config;
  const factor = scaling?.kind === 'yarn' ? scaling.attentionFactor : 1;
  const table = new Float32Array(positions * half * 2);
  for (let s = 0; s < positions; s++) {
    for (let d = 0; d < half; d++) {
      const angle = Math.fround(s * frequencies[d]!);
      const at = (s * half + (d & ~3)) * 2 + (d & 3);
      table[at] = Math.cos(angle) * factor;
      table[at + 4] = Math.sin(angle) * factor;
    }
  }
  return device.upload('rope cos sin', 'f32', [positions, half * 2], table);
}

export const QK_NORM = defineKernel({
  file: 'rope/qk_norm.wgsl',
  fragments: (v) => ['lib/grid.wgsl', reduceFragment(v)],
  bindings: { weight: 'read', qkv: 'update' },
  params: { rows: 'u32', heads: 'u32', kv_heads: 'u32', channels: 'u32', eps: 'f32' },
  overrides: { WG: 'u32' },
});

export interface QKNormArgs {
  /** [T, (H + 2 K) D], changed in place. */
  readonly qkv: Tensor;
  /** [2, D]: of queries, of keys. */
  readonly weight: Tensor;
  readonly heads: number;
  readonly kvHeads: number;
  readonly eps: number;
  readonly rows: number;
}

/** RMS norm of every query and key head before rotation (Qwen3). */
export function qkNorm(rec: Recorder, { qkv, weight, heads, kvHeads, eps, rows }: QKNormArgs): void {
  const channels = weight.size / 2;
  const { wg, variant } = reduceVariant(rec.caps, channels);
  const params = { rows, heads, kv_heads: kvHeads, channels, eps };
  rec.dispatch(QK_NORM, { ...variant, overrides: { WG: wg } }, { weight, qkv }, params, [rows * (heads + kvHeads)]);
}
