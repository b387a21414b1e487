/** config.json of Apertus: what files of transformers 4 say, and the numbers of xIELU that are settings. The numbers are compared in families.test.ts. */
import { describe, expect, test } from 'vitest';
import { parseApertusConfig } from '../../engine/models/apertus/apertus.ts';

const base = {
  model_type: 'apertus',
  hidden_size: 64,
  num_attention_heads: 4,
  intermediate_size: 128,
  num_hidden_layers: 2,
  vocab_size: 10,
};
const scaled = { kind: 'llama3', factor: 8, lowFreqFactor: 1, highFreqFactor: 4, originalContext: 8192 };

test('a published file, with what transformers does not read', () => {
  const scaling = {
    factor: 8,
    high_freq_factor: 4,
    low_freq_factor: 1,
    original_max_position_embeddings: 8192,
    rope_type: 'llama3',
    type: 'llama3',
  };
  const published = {
    rope_scaling: scaling,
    rope_theta: 12_000_000,
    qk_norm: true,
    post_norm: false,
    mlp_bias: false,
    hidden_act: 'xielu',
  };
  expect(parseApertusConfig({ ...base, ...published })).toEqual(parseApertusConfig(base));
  expect(parseApertusConfig(base)).toMatchObject({ qkNorm: true, maxPositions: 65_536, eps: 1e-5, rope: { theta: 12e6, scaling: scaled } });
});

test('a file that scales nothing says so, and a base of its own counts', () => {
  expect(parseApertusConfig({ ...base, rope_scaling: null, rope_theta: 500_000 }).rope).toMatchObject({
    theta: 500_000,
    scaling: undefined,
  });
  expect(parseApertusConfig({ ...base, rope_theta: 7000 }).rope).toMatchObject({ theta: 7000, scaling: scaled });
});

test('numbers of the activation that are settings go to their layers', () => {
  const xielu = { alpha_p: [1, 2], alpha_n: [3, 4], beta: [0.5, 0.25], eps: [-1e-6, -0.5] };
  expect(parseApertusConfig({ ...base, xielu }).curves).toEqual([
    { alpha_p: 1, alpha_n: 3, beta: 0.5, eps: -1e-6 },
    { alpha_p: 2, alpha_n: 4, beta: 0.25, eps: -0.5 },
  ]);
});

describe('what is refused, by name', () => {
  test.each([
    [{ qk_norm: false }, /qk_norm is false, expected true/],
    [{ post_norm: true }, /post_norm is true, expected false/],
    [{ xielu: { alpha_p: [1, 2] } }, /xielu.alpha_n is undefined, expected 2 numbers/],
    [{ xielu: { alpha_p: [1] } }, /xielu.alpha_p is .*, expected 2 numbers/],
  ])('%o', (more, message) => {
    expect(() => parseApertusConfig({ ...base, ...more })).toThrow(message);
  });
});
