/** config.json of Phi-3.5-MoE: LongRoPE's factor, and what is refused by name. The numbers are compared in families.test.ts. */
import { describe, expect, test } from 'vitest';
import { parsePhimoeConfig } from '../../engine/models/phimoe/phimoe.ts';

const base = { model_type: 'phimoe', hidden_size: 64, num_attention_heads: 4, num_key_value_heads: 2, intermediate_size: 128, num_hidden_layers: 2, vocab_size: 10 }; // prettier-ignore
const long = { short_factor: [1, 1, 1, 1, 1, 1, 1, 1.5], long_factor: [1, 2, 3, 4, 5, 6, 7, 8], original_max_position_embeddings: 4096 };
const mscales = { short_mscale: 1.243163121016122, long_mscale: 1.243163121016122 };

test('a published file: queries and keys are multiplied by its number, not by what Phi-3 infers', () => {
  const published = {
    attention_bias: true,
    lm_head_bias: true,
    input_jitter_noise: 0.01,
    router_jitter_noise: 0.01,
    rope_theta: 10_000,
    hidden_act: 'silu',
  };
  const config = parsePhimoeConfig({ ...base, ...published, rope_scaling: { type: 'longrope', ...long, ...mscales } });
  expect(config).toMatchObject({
    qkvBias: true,
    outputBias: true,
    headBias: true,
    layerNorm: { hasBias: true },
    eps: 1e-5,
    kinds: undefined,
  });
  expect(config.experts).toMatchObject({
    count: 16,
    perRow: 2,
    intermediate: 128,
    routing: { cutoff: 0.02 },
    shares: { normalised: false },
  });
  const { short_factor: short, long_factor } = long;
  expect(config.rope.scaling).toEqual({
    kind: 'longrope',
    short,
    long: long_factor,
    originalContext: 4096,
    attentionFactor: 1.243163121016122,
  });
});

test('a file without scaling has none', () => {
  expect(parsePhimoeConfig({ ...base, rope_scaling: null, rope_theta: 10_000 }).rope).toMatchObject({ theta: 10_000, scaling: undefined });
  expect(parsePhimoeConfig(base).rope).toMatchObject({ theta: 1e6 });
});

describe('what is refused, by name', () => {
  test.each([
    [{ num_experts_per_tok: 3 }, /num_experts_per_tok is 3, expected 2/],
    [{ rope_scaling: { type: 'longrope', ...long, ...mscales, long_mscale: 1.3 } }, /short_mscale 1.243\d* and long_mscale 1.3, expected/],
    [{ rope_scaling: { type: 'longrope', ...long } }, /short_mscale undefined and long_mscale undefined, expected/],
    [{ rope_scaling: { type: 'linear', factor: 2, ...mscales } }, /rope type "linear" with .*, expected "longrope"/],
  ])('%o', (more, message) => {
    expect(() => parsePhimoeConfig({ ...base, ...more })).toThrow(message);
  });
});
