/** Derives config.json's rotary embedding from a GGUF file. */
import type { Json } from '../../util/json.ts';
import type { Metadata } from './metadata.ts';
import { SETTING_KEYS } from './setting-keys.ts';

/** Names of the tensors of rotary factors, which belong to the configuration: Llama 3's (for sequences of any length), and LongRoPE's. */
export const ROPE_FACTORS = { all: 'rope_freqs.weight', short: 'rope_factors_short.weight', long: 'rope_factors_long.weight' } as const;

/** Divisors of the rotary frequencies: for sequences within the original context, and for longer ones. */
export interface RopeFactors {
  readonly short: Float32Array;
  readonly long: Float32Array;
}

/**
 * Base and scaling of the rotary embedding. Llama 3's scaling is stored as one factor per frequency, which is transformers' longrope;
 * LongRoPE is stored as two.
 */
export function ropeOf(metadata: Metadata, key: (rest: string) => string, factors: RopeFactors | undefined): Json {
  const rope_theta = metadata.number(key(SETTING_KEYS.rope_theta)) ?? 10000;
  const factor = metadata.number(key('rope.scaling.factor')) ?? metadata.number(key('rope.scale_linear')) ?? 1;
  const type = metadata.text(key('rope.scaling.type')) ?? (factor === 1 ? 'none' : 'linear');
  const scaled = type !== 'none' && !(type === 'linear' && factor === 1);
  if (scaled && factors) metadata.refuse(`it scales positions twice: by ${key('rope.scaling.type')} ${type} and by a tensor of factors`);
  const original = metadata.number(key('rope.scaling.original_context_length'));
  const ramp = {
    beta_fast: metadata.number(key('rope.scaling.yarn_beta_fast')),
    beta_slow: metadata.number(key('rope.scaling.yarn_beta_slow')),
  };
  const yarn = type === 'yarn' && { ...(original !== undefined && { original_max_position_embeddings: original }), ...ramp };
  if (scaled) return { rope_theta, rope_scaling: { rope_type: type, factor, ...yarn } };
  if (!factors) return { rope_theta };
  const longrope = {
    rope_type: 'longrope',
    short_factor: [...factors.short],
    long_factor: [...factors.long],
    attention_factor: metadata.number(key('rope.scaling.attn_factor')) ?? 1,
  };
  return { rope_theta, ...(original !== undefined && { original_max_position_embeddings: original }), rope_scaling: longrope };
}
