/** config.json of models with experts: what published files say and transformers does not read, and what is refused by name. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import type { DecoderStackConfig } from '../../engine/models/layers/stack-config.ts';
import { decoderFor } from '../../engine/models/registry.ts';
import type { Json } from '../../engine/util/json.ts';

const FIXTURES = fileURLToPath(new URL('../fixtures/llama-tiny-random', import.meta.url));
const configOf = (name: string): Json => JSON.parse(readFileSync(join(FIXTURES, name, 'config.json'), 'utf8')) as Json;
const parse = (json: Json): DecoderStackConfig => decoderFor(json).parseConfig(json) as unknown as DecoderStackConfig;

describe('settings of published files', () => {
  test('Hunyuan-A13B has numbers by layer and an alpha', () => {
    const published = {
      num_experts: 7, moe_topk: [3, 3], moe_intermediate_size: [32, 32], num_shared_expert: [1, 1], use_qk_norm: true, use_cla: false, use_mixed_mlp_moe: true,
      norm_topk_prob: true, moe_layer_num_skipped: 0, attention_head_dim: 16, routed_scaling_factor: 1,
    }; // prettier-ignore
    const json = configOf('hunyuan_v1_moe');
    expect(parse({ ...json, ...published })).toEqual(parse(json));
    // More layers are listed than there are.
    expect(parse({ ...json, moe_topk: [3, 3, 4] })).toEqual(parse(json));
  });

  test('MiniMax-M2 says how many channels are rotated', () => {
    const { rope_parameters: _, ...json } = configOf('minimax_m2');
    const published = { rotary_dim: 8, rope_theta: 5_000_000, use_qk_norm: true, qk_norm_type: 'per_layer', scoring_func: 'sigmoid', use_routing_bias: true, shared_intermediate_size: 0, attn_type_list: [1, 1] }; // prettier-ignore
    expect(parse({ ...json, ...published }).rope).toMatchObject({ theta: 5_000_000, rotary: 8, headDim: 16 });
  });

  test('dots.llm1 names the way in which experts are chosen', () => {
    const json = configOf('dots1');
    expect(parse({ ...json, scoring_func: 'noaux_tc' })).toEqual(parse(json));
    expect(parse({ ...json, scoring_func: 'sigmoid' })).toEqual(parse(json));
  });

  test('ERNIE has experts in some layers, and shared ones or none', () => {
    const json = configOf('ernie4_5_moe');
    const layersOf = (more: Json): readonly boolean[] => parse({ ...json, num_hidden_layers: 6, ...more }).experts!.layers;
    expect(layersOf({ moe_layer_end_index: -1 })).toEqual([false, true, true, true, true, true]);
    expect(layersOf({ moe_layer_start_index: 2, moe_layer_end_index: 4 })).toEqual([false, false, true, true, true, false]);
    expect(layersOf({ moe_layer_interval: 2, moe_layer_end_index: -1 })).toEqual([false, true, false, true, false, true]);
    const { moe_num_experts, moe_k, ...usual } = json;
    expect(parse({ ...usual, num_experts: moe_num_experts, num_experts_per_tok: moe_k })).toEqual(parse(json));
    expect(parse({ ...json, moe_num_shared_experts: 0 }).experts?.hasShared).toBeUndefined();
  });
});

test.each([
  ['hunyuan_v1_moe', { moe_topk: [3, 2] }, /moe_topk is .*, expected the same number for each of 2 layers/],
  ['hunyuan_v1_moe', { num_experts: [7] }, /num_experts is .*, expected the same number for each of 2 layers/],
  ['hunyuan_v1_moe', { moe_intermediate_size: [16, 16] }, /moe_intermediate_size is 16, expected 32/],
  ['hunyuan_v1_moe', { num_shared_expert: 2 }, /num_shared_expert is 2, expected 1/],
  ['hunyuan_v1_moe', { use_cla: true }, /use_cla is true, expected false/],
  ['minimax_m2', { attn_type_list: [1, 0] }, /attn_type_list is .*, expected 1 for every layer/],
  ['minimax_m2', { qk_norm_type: 'per_head' }, /qk_norm_type is "per_head", expected "per_layer"/],
  ['minimax_m2', { scoring_func: 'softmax' }, /scoring_func is "softmax", expected "sigmoid"/],
  ['dots1', { scoring_func: 'softmax' }, /scoring_func is "softmax", expected "sigmoid"/],
  ['ernie4_5_moe', { use_bias: true }, /use_bias is true, expected false/],
  ['ernie4_5_moe', { moe_gate_act: 'sigmoid' }, /moe_gate_act is "sigmoid", expected "softmax"/],
  ['ernie4_5_moe', { num_experts: 8 }, /num_experts is 8, expected 7/],
])('%s with %o is refused', (name, more, message) => {
  expect(() => parse({ ...configOf(name), ...more })).toThrow(message);
});
