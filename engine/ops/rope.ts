import { EngineError, assert } from '../errors.ts';
import type { Device } from '../gpu/device.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { reduceFragment, reduceVariant } from './reduce.ts';

/** Settings of a rotary embedding, from a checkpoint's config.json. */
export interface RopeConfig {
  readonly theta: number;
  readonly headDim: number;
  /**
   * Channels of a head that are rotated; absent = all. A pair is still d and d + D/2: loading puts the rows of queries and keys in that
   * order.
   */
  readonly rotary?: number | undefined;
  readonly scaling: RopeScaling | undefined;
}

export type RopeScaling =
  | { readonly kind: 'linear'; readonly factor: number }
  | {
      /** Llama 3.1: long wavelengths are stretched, short ones are kept, and those between are blended. */
      readonly kind: 'llama3';
      readonly factor: number;
      readonly lowFreqFactor: number;
      readonly highFreqFactor: number;
      readonly originalContext: number;
    }
  | {
      /** Each rotated pair's frequency is divided by a factor of its own. */
      readonly kind: 'factors';
      readonly factors: readonly number[];
      /** Factor of rotated queries and keys; absent = 1. */
      readonly attentionFactor?: number;
    }
  | {
      /**
       * LongRoPE (https://arxiv.org/abs/2402.13753): other factors where sequences may be longer than the original context. ropeAt chooses.
       */
      readonly kind: 'longrope';
      readonly short: readonly number[];
      readonly long: readonly number[];
      readonly originalContext: number;
      readonly attentionFactor: number;
    }
  | {
      /**
       * YaRN (https://arxiv.org/abs/2309.00071): frequencies that turn often within the original context are kept, slow ones are stretched.
       */
      readonly kind: 'yarn';
      readonly factor: number;
      readonly originalContext: number;
      /** Turns within the original context: with at least betaFast a frequency is kept, with at most betaSlow it is stretched in full. */
      readonly betaFast: number;
      readonly betaSlow: number;
      /** Whether the ramp between the two begins and ends at whole channels. */
      readonly truncate: boolean;
      /** Factor of rotated queries and keys. */
      readonly attentionFactor: number;
    }
  | {
      /** Gemma 4: only the first pairs are rotated, with the frequencies that they have in the whole head. */
      readonly kind: 'proportional';
      readonly pairs: number;
      readonly factor: number;
    }
  | {
      /** NTK-aware scaling by a fixed alpha: the base times alpha ** (D / (D - 2)), for texts of any length. */
      readonly kind: 'alpha';
      readonly alpha: number;
    }
  /** No channel is rotated. */
  | { readonly kind: 'none' };

/**
 * Resolves a rotary embedding for sequences of at most `context` positions. LongRoPE's factors are chosen here, once for all sequences, as
 * in vLLM and llama.cpp: keys in pages are already rotated, and one prefix may belong to a short sequence and to a long one.
 */
export function ropeAt(config: RopeConfig, context: number): RopeConfig {
  const { scaling } = config;
  if (scaling?.kind !== 'longrope') return config;
  const { short, long, originalContext, attentionFactor } = scaling;
  return { ...config, scaling: { kind: 'factors', factors: context > originalContext ? long : short, attentionFactor } };
}

/** Inverse frequencies [D/2] after scaling, in f64; 0 for pairs that are not rotated. */
export function ropeFrequencies(config: RopeConfig): Float64Array {
  const { headDim, rotary = headDim } = config;
  const frequencies = new Float64Array(headDim / 2);
  frequencies.set(rotatedFrequencies(config, rotary));
  return frequencies;
}

/** Frequencies of the pairs of the first `rotary` channels, scaled as the config says: [rotary/2]. */
function rotatedFrequencies({ theta, scaling }: RopeConfig, rotary: number): Float64Array {
  const base = scaling?.kind === 'alpha' ? theta * scaling.alpha ** (rotary / (rotary - 2)) : theta;
  const frequencies = Float64Array.from({ length: rotary / 2 }, (_, i) => base ** (-2 * i / rotary)); // prettier-ignore
  if (!scaling || scaling.kind === 'alpha') return frequencies;
  if (scaling.kind === 'linear') return frequencies.map((f) => f / scaling.factor);
  if (scaling.kind === 'proportional') return frequencies.map((f, i) => (i < scaling.pairs ? f / scaling.factor : 0));
  if (scaling.kind === 'none') return frequencies.fill(0);
  if (scaling.kind === 'yarn') return yarnFrequencies(frequencies, theta, rotary, scaling);
  if (scaling.kind === 'factors') return frequencies.map((f, i) => f / scaling.factors[i]!);
  assert(scaling.kind !== 'longrope', 'the factors of longrope are not chosen yet');
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
  rotary: number,
  { factor, originalContext, betaFast, betaSlow, truncate }: Extract<RopeScaling, { kind: 'yarn' }>,
): Float64Array {
  // The channel whose frequency makes this many turns in the original context.
  const channel = (turns: number): number => (rotary * Math.log(originalContext / (turns * 2 * Math.PI))) / (2 * Math.log(theta));
  const [from, to] = [channel(betaFast), channel(betaSlow)];
  const low = Math.max(truncate ? Math.floor(from) : from, 0);
  const high = Math.min(truncate ? Math.ceil(to) : to, rotary - 1);
  // As transformers avoids dividing by zero.
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
  const { scaling, rotary = config.headDim } = config;
  const attention = (scaling?.kind === 'yarn' || scaling?.kind === 'factors' ? scaling.attentionFactor : undefined) ?? 1;
  const table = new Float32Array(positions * half * 2);
  for (let s = 0; s < positions; s++) {
    for (let d = 0; d < half; d++) {
      const angle = Math.fround(s * frequencies[d]!);
      const factor = d < rotary / 2 ? attention : 1;
      const at = (s * half + (d & ~3)) * 2 + (d & 3);
      table[at] = Math.cos(angle) * factor;
      table[at + 4] = Math.sin(angle) * factor;
    }
  }
  return device.upload('rope cos sin', 'f32', [positions, half * 2], table);
}

export const QK_NORM = defineKernel({
  file: 'rope/qk_norm.wgsl',
  fragments: (v) => ['lib/grid.wgsl', reduceFragment(v), 'lib/head_squares.wgsl'],
  bindings: { weight: 'read', qkv: 'update' },
  params: {
    rows: 'u32',
    heads: 'u32',
    kv_heads: 'u32',
    value_heads: 'u32',
    channels: 'u32',
    key_channels: 'u32',
    width: 'u32',
    eps: 'f32',
  },
  overrides: { WG: 'u32' },
});

export interface QKNormArgs {
  /** [T, (H + 2 K) D], changed in place. */
  readonly qkv: Tensor;
  /** Norm weights: [2, D] for queries and keys, [D] where K is 0; with `full` [(H + K) D]. */
  readonly weight: Tensor;
  /** Norms the heads of values too, without weights. */
  readonly values?: boolean | undefined;
  /** One norm over all query heads and one over all key heads, instead of one per head. */
  readonly full?: boolean;
  readonly heads: number;
  readonly kvHeads: number;
  readonly eps: number;
  readonly rows: number;
}

/** RMS norm of queries and keys before rotation: per head (Qwen3) or over all heads (OLMo 2); of values too (Gemma 4). */
export function qkNorm(rec: Recorder, { qkv, weight, full = false, values = false, heads, kvHeads, eps, rows }: QKNormArgs): void {
  const headDim = weight.size / (full ? heads + kvHeads : kvHeads === 0 ? 1 : 2);
  const width = (heads + 2 * kvHeads) * headDim;
  assert(headDim % 4 === 0, `qk_norm: head dim ${headDim}, expected a multiple of 4`);
  const sizes = full
    ? { heads: 1, kv_heads: 1, value_heads: 0, channels: heads * headDim, key_channels: kvHeads * headDim }
    : { heads, kv_heads: kvHeads, value_heads: values ? kvHeads : 0, channels: headDim, key_channels: headDim };
  const { wg, variant } = reduceVariant(rec.caps, sizes.channels);
  const workgroups = [rows * (sizes.heads + sizes.kv_heads + sizes.value_heads)];
  rec.dispatch(QK_NORM, { ...variant, overrides: { WG: wg } }, { weight, qkv }, { rows, ...sizes, width, eps }, workgroups);
}

export const ROPE_NORM = defineKernel({
  file: 'rope/rope_norm.wgsl',
  fragments: (v) => ['lib/grid.wgsl', reduceFragment(v), 'lib/turned.wgsl'],
  bindings: { weight: 'read', cos_sin: 'read', positions: 'read', qkv: 'update' },
  params: { rows: 'u32', heads: 'u32', kv_heads: 'u32', eps: 'f32' },
  overrides: { WG: 'u32', D8: 'u32' },
});

export interface RopeNormArgs extends Omit<QKNormArgs, 'full' | 'values'> {
  /** From ropeTable. */
  readonly cosSin: Tensor;
  /** [T] u32. */
  readonly positions: Tensor;
}

/** Rotates queries and keys, and then norms each head (Hunyuan). */
export function ropeNorm(rec: Recorder, { qkv, weight, cosSin, positions, heads, kvHeads, eps, rows }: RopeNormArgs): void {
  const headDim = weight.size / (kvHeads === 0 ? 1 : 2);
  assert(headDim % 8 === 0, `rope_norm: head dim ${headDim}, expected a multiple of 8`);
  const { wg, variant } = reduceVariant(rec.caps, headDim);
  const bindings = { weight, cos_sin: cosSin, positions, qkv };
  const params = { rows, heads, kv_heads: kvHeads, eps };
  rec.dispatch(ROPE_NORM, { ...variant, overrides: { WG: wg, D8: headDim / 8 } }, bindings, params, [rows * (heads + kvHeads)]);
}

/** The table of a rotation that leaves heads as they are, with position 0 alone. */
export function stillTable(device: Device, headDim: number): Tensor {
  return ropeTable(device, { theta: 1, headDim, scaling: { kind: 'none' } }, 1);
}
