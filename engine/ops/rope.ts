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
  | { readonly kind: 'factors'; readonly factors: readonly number[] };

/** Inverse frequencies [D/2] after scaling, in f64. */
export function ropeFrequencies({ theta, headDim, scaling }: RopeConfig): Float64Array {
  const frequencies = Float64Array.from({ length: headDim / 2 }, (_, i) => theta ** (-2 * i / headDim)); // prettier-ignore
  if (!scaling) return frequencies;
  if (scaling.kind === 'linear') return frequencies.map((f) => f / scaling.factor);
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

/** Cosines and sines of positions 0..positions-1: [S, D/8, 2, 4] with four cosines, then the four sines of the same channels. */
export function ropeTable(device: Device, config: RopeConfig, positions: number): Tensor {
  if (config.headDim % 8 !== 0) throw new EngineError('unsupported', `head dim ${config.headDim}, expected a multiple of 8`);
  // PyTorch rounds the frequencies to f32 before multiplying; at large positions that rounding is visible.
  const frequencies = Float32Array.from(ropeFrequencies(config));
  const half = frequencies.length;
  const table = new Float32Array(positions * half * 2);
  for (let s = 0; s < positions; s++) {
    for (let d = 0; d < half; d++) {
      const angle = Math.fround(s * frequencies[d]!);
      const at = (s * half + (d & ~3)) * 2 + (d & 3);
      table[at] = Math.cos(angle);
      table[at + 4] = Math.sin(angle);
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
