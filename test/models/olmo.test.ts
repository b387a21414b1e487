/** config.json of OLMo 2 and 3. The numbers are compared in families.test.ts. */
import { expect, test } from 'vitest';
import { OLMO, parseOlmoConfig } from '../../engine/models/olmo/olmo.ts';

const base = { hidden_size: 64, num_attention_heads: 4, intermediate_size: 128, num_hidden_layers: 5, vocab_size: 10 };
const olmo3 = { ...base, model_type: 'olmo3', max_position_embeddings: 65536 };
const yarn = { rope_type: 'yarn', factor: 8, original_max_position_embeddings: 8192 };

test('OLMo 2: every layer sees everything', () => {
  const config = parseOlmoConfig({ ...base, model_type: 'olmo2', rope_theta: 500000 });
  expect(config).toMatchObject({ eps: 1e-5, qkNorm: 'full', rope: { theta: 500000 }, kinds: undefined });
});

test.each([
  ['as transformers 4 wrote it', { rope_theta: 500000, rope_scaling: yarn }],
  [
    'as transformers 5 writes it',
    {
      rope_parameters: { full_attention: { ...yarn, rope_theta: 500000 }, sliding_attention: { rope_type: 'default', rope_theta: 500000 } },
    },
  ],
])('OLMo 3 %s: YaRN is of the layers that see everything', (_, rope) => {
  const { kinds } = parseOlmoConfig({ ...olmo3, ...rope });
  const sliding = { window: 4096, rope: { theta: 500000, scaling: undefined } };
  const full = { rope: { theta: 500000, scaling: { kind: 'yarn', factor: 8, originalContext: 8192 } } };
  expect(kinds).toMatchObject([sliding, sliding, sliding, full, sliding]);
  expect(kinds![3]!.window).toBeUndefined();
});

test.each([
  [{ layer_types: ['linear_attention', ...new Array<string>(4).fill('full_attention')] }, /layer_types has "linear_attention"/],
  [{ hidden_act: 'gelu' }, /hidden_act is "gelu", expected "silu"/],
  [{ rope_scaling: { rope_type: 'wide' } }, /rope type "wide"; known are/],
  [{ sliding_window: 1.5 }, /sliding_window is 1.5, expected a positive integer/],
])('%o is refused with the field in the message', (change, message) => {
  expect(() => OLMO.parseConfig({ ...olmo3, ...change })).toThrow(message);
});
