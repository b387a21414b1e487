/** config.json of Phi: spellings of LongRoPE and what follows from it. The numbers are compared in families.test.ts. */
import { describe, expect, test } from 'vitest';
import { PHI3, parsePhi3Config } from '../../engine/models/phi3/phi3.ts';
import { ropeAt, ropeFrequencies } from '../../engine/ops/rope.ts';

const base = {
  model_type: 'phi3',
  hidden_size: 64,
  num_attention_heads: 4,
  intermediate_size: 128,
  num_hidden_layers: 2,
  vocab_size: 10,
};
const factors = { short_factor: [1, 1, 1, 1, 1, 1.5], long_factor: [1, 2, 3, 4, 5, 6] };
const long = { ...base, max_position_embeddings: 131072, original_max_position_embeddings: 4096, partial_rotary_factor: 0.75 };

test('a file of the first days: no scaling, a window in every layer', () => {
  const config = parsePhi3Config({ ...base, attention_bias: false, sliding_window: 2047, rope_scaling: null });
  expect(config).toMatchObject({ maxPositions: 4096, eps: 1e-5, qkvFused: true, qkvBias: false, rope: { theta: 10000, headDim: 16 } });
  expect(config.kinds).toEqual([{ rope: config.rope, window: 2047 }, { rope: config.rope, window: 2047 }]); // prettier-ignore
});

test.each(['longrope', 'su', 'yarn'])('LongRoPE under the name %s', (type) => {
  const attentionFactor = Math.sqrt(1 + Math.log(32) / Math.log(4096));
  const scaling = { kind: 'longrope', short: factors.short_factor, long: factors.long_factor, originalContext: 4096, attentionFactor };
  expect(parsePhi3Config({ ...long, rope_scaling: { type, ...factors } }).rope).toEqual({ theta: 10000, headDim: 16, rotary: 12, scaling });
});

test('its factors are those of the context, and 0 where nothing is rotated', () => {
  const { rope } = parsePhi3Config({ ...long, rope_scaling: { type: 'longrope', ...factors } });
  const usual = Array.from({ length: 6 }, (_, i) => 10000 ** (-2 * i / 12)); // prettier-ignore
  const divided = (by: readonly number[]): number[] => [...usual.map((frequency, i) => frequency / by[i]!), 0, 0];
  expect([...ropeFrequencies(ropeAt(rope, 4096))]).toEqual(divided(factors.short_factor));
  expect([...ropeFrequencies(ropeAt(rope, 4097))]).toEqual(divided(factors.long_factor));
});

describe('what is refused, by name', () => {
  test.each([
    [{ attention_bias: true }, /attention_bias is true, expected false/],
    [{ partial_rotary_factor: 0.7 }, /partial_rotary_factor is 0.7, expected an even number of the 16 channels of a head/],
    [
      { rope_scaling: { type: 'longrope', ...factors } },
      /short_factor of the rotary embedding is a list of 6, expected 8 positive numbers/,
    ],
    [{ hidden_act: 'gelu' }, /hidden_act is "gelu", expected "silu"/],
  ])('%o', (change, message) => {
    expect(() => PHI3.parseConfig({ ...base, ...change })).toThrow(message);
  });
});
