/** How config.json of Nemotron-H reads. The numbers are in families.test.ts. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { parseNemotronHConfig } from '../../engine/models/nemotron-h/config.ts';
import type { Json } from '../../engine/util/json.ts';

const fixture = (name: string): Json => JSON.parse(readFileSync(fileURLToPath(new URL(`../fixtures/llama-tiny-random/${name}/config.json`, import.meta.url)), 'utf8')) as Json; // prettier-ignore
const DENSE = fixture('nemotron_h');
const EXPERTS = fixture('nemotron_h-experts');
const parse = (fields: Json, config = DENSE) => parseNemotronHConfig({ ...config, ...fields });

/** The sizes of Nano 9B v2. */
const NANO_9B: Json = {
  model_type: 'nemotron_h', hidden_size: 4480, intermediate_size: 15_680, num_attention_heads: 40, num_key_value_heads: 8, head_dim: 128, vocab_size: 131_072,
  max_position_embeddings: 131_072, num_hidden_layers: 56, hybrid_override_pattern: 'M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-',
  mamba_num_heads: 128, mamba_head_dim: 80, ssm_state_size: 128, n_groups: 8, conv_kernel: 4, layer_norm_epsilon: 1e-5, mlp_hidden_act: 'relu2',
  time_step_limit: [0, { __float__: 'Infinity' }],
}; // prettier-ignore

test('a published model: one half a layer, sizes of its state, no rotation', () => {
  const config = parseNemotronHConfig(NANO_9B);
  expect(config).toMatchObject({ layers: 56, headDim: 128, intermediate: 15_680, eps: 1e-5, qkvBias: false });
  expect(config.recurrent).toMatchObject({ state: { tail: 3 * (10_240 + 2 * 8 * 128), matrix: 10_240 * 128 } });
  const kinds = config.kinds!;
  expect(kinds.filter(({ isRecurrent }) => isRecurrent).length).toBe(27);
  expect(kinds.flatMap(({ only, isRecurrent }, layer) => (only === 'attention' && !isRecurrent ? [layer] : []))).toEqual([14, 21, 30, 39]);
  expect(kinds.filter(({ only }) => only === 'mlp').length).toBe(25);
  expect(kinds.every(({ rope }) => rope.scaling?.kind === 'none')).toBe(true);
  expect(config.experts).toBeUndefined();
});

test('a published model with experts: columns of each, of the shared one, and how they are chosen', () => {
  const own = {
    hidden_size: 2688, intermediate_size: 1856, num_attention_heads: 32, num_key_value_heads: 2, mamba_num_heads: 64, mamba_head_dim: 64, num_hidden_layers: 8,
    hybrid_override_pattern: 'MEMEM*EM', n_routed_experts: 128, num_experts_per_tok: 6, moe_intermediate_size: 1856, moe_shared_expert_intermediate_size: 3712,
    routed_scaling_factor: 2.5, norm_topk_prob: true, n_group: 1, topk_group: 1, n_shared_experts: 1,
  }; // prettier-ignore
  const config = parseNemotronHConfig({ ...NANO_9B, ...own });
  expect(config).toMatchObject({
    intermediate: 3712,
    experts: { count: 128, perRow: 6, intermediate: 1856, isPlain: true, hasShared: 'ungated', shares: { normalised: true, scale: 2.5 } },
  });
  expect(config.experts!.layers).toEqual([false, true, false, true, false, false, true, false]);
  expect(config.experts!.routing).toEqual({ sigmoid: true, hasBias: true, groups: undefined });
});

test('an MLP beside layers with experts has columns of its own', () => {
  const { kinds, intermediate } = parse({}, EXPERTS);
  expect(intermediate).toBe(28);
  expect(kinds!.map((kind) => kind.intermediate)).toEqual([undefined, undefined, undefined, 52, undefined]);
});

test('other names and values of the same', () => {
  const { layers_block_type: types, n_groups, conv_kernel, use_conv_bias, head_dim, ...rest } = DENSE;
  const kinds = parse({}).kinds;
  expect(types).toEqual(['linear_attention', 'mlp', 'full_attention', 'mlp', 'linear_attention']);
  expect(parse({ layers_block_type: ['mamba', 'mlp', 'attention', 'mlp', 'mamba'] }).kinds).toEqual(kinds);
  const named = { mamba_n_groups: n_groups, mamba_d_conv: conv_kernel, mamba_conv_bias: use_conv_bias, attention_head_dim: head_dim };
  const early = parseNemotronHConfig({ ...rest, ...named, hybrid_override_pattern: 'M-*-M', rope_theta: 10_000 });
  expect(JSON.stringify(early)).toBe(JSON.stringify(parse({})));
});

test.each([
  [{ layers_block_type: undefined }, /hybrid_override_pattern is undefined and layers_block_type undefined, expected a letter or a type/],
  [{ layers_block_type: ['mamba', 'conv'] }, /layer_types has "conv"; known are mamba and attention and mlp/],
  [{ layers_block_type: undefined, hybrid_override_pattern: 'M-X' }, /layer_types has "X"/],
  [{ layers_block_type: ['mamba', 'mlp'] }, /no layer has attention/],
  [{ mlp_hidden_act: 'silu' }, /mlp_hidden_act is "silu", expected "relu2"/],
  [{ mamba_hidden_act: 'gelu' }, /mamba_hidden_act is "gelu", expected "silu"/],
  [{ use_bias: true }, /use_bias is true, expected false/],
  [{ mlp_bias: true }, /mlp_bias is true, expected false/],
  [{ attention_bias: true }, /attention_bias is true, expected false/],
  [{ moe_latent_size: 1024 }, /moe_latent_size is 1024, expected null/],
  [{ n_shared_experts: 2 }, /n_shared_experts is 2, expected 1/],
  [{ rope_parameters: { rope_type: 'default' } }, /rope_parameters is an object, expected null/],
  [{ sliding_window: 64 }, /sliding_window is 64, expected null/],
  [{ mamba_dt_limit: [0.001, 0.1] }, /time_step_limit is .*, expected 0 and infinity/],
  [{ n_groups: 3 }, /mamba_num_heads is 8, expected a multiple of n_groups, 3/],
  [{ ssm_state_size: 6 }, /ssm_state_size 6, expected multiples of 4/],
  [{ conv_kernel: 1 }, /conv_kernel is 1, expected 2 to 16/],
])('%j is refused by name', (fields, message) => {
  expect(() => parse(fields)).toThrow(message);
});
