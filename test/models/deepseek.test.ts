/** How config.json of models with latent attention reads. The numbers are in families.test.ts. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { wholeShard } from '../../engine/models/shard.ts';
import { parseDeepSeekConfig } from '../../engine/models/deepseek/config.ts';
import { DEEPSEEK } from '../../engine/models/deepseek/deepseek.ts';
import { pageBytes } from '../../engine/ops/kv.ts';
import { planMemory } from '../../engine/runner/memory-plan.ts';
import type { Json } from '../../engine/util/json.ts';
import { DecoderHarness } from '../support/decoder-harness.ts';
import { testDevice } from '../support/device.ts';
import { countWork } from '../support/kernel-work.ts';

const fixture = (name: string): Json => JSON.parse(readFileSync(fileURLToPath(new URL(`../fixtures/llama-tiny-random/${name}/config.json`, import.meta.url)), 'utf8')) as Json; // prettier-ignore
const V2 = fixture('deepseek_v2');
const V3 = fixture('deepseek_v3');

/** The sizes of published models. */
const V2_LITE: Json = {
  model_type: 'deepseek_v2', hidden_size: 2048, intermediate_size: 10_944, num_hidden_layers: 27, num_attention_heads: 16, num_key_value_heads: 16, vocab_size: 102_400,
  max_position_embeddings: 163_840, kv_lora_rank: 512, q_lora_rank: null, qk_nope_head_dim: 128, qk_rope_head_dim: 64, v_head_dim: 128, moe_intermediate_size: 1408,
  n_routed_experts: 64, n_shared_experts: 2, num_experts_per_tok: 6, first_k_dense_replace: 1, moe_layer_freq: 1, n_group: 1, topk_group: 1, topk_method: 'greedy',
  scoring_func: 'softmax', norm_topk_prob: false, routed_scaling_factor: 1, rope_theta: 10_000, rms_norm_eps: 1e-6, aux_loss_alpha: 0.001, seq_aux: true,
  rope_scaling: { type: 'yarn', factor: 40, mscale: 0.707, mscale_all_dim: 0.707, beta_fast: 32, beta_slow: 1, original_max_position_embeddings: 4096 },
}; // prettier-ignore
const FLASH: Json = {
  model_type: 'glm4_moe_lite', hidden_size: 2048, intermediate_size: 10_240, num_hidden_layers: 47, num_attention_heads: 20, num_key_value_heads: 20, vocab_size: 154_880,
  max_position_embeddings: 202_752, kv_lora_rank: 512, q_lora_rank: 768, qk_nope_head_dim: 192, qk_rope_head_dim: 64, v_head_dim: 256, moe_intermediate_size: 1536,
  n_routed_experts: 64, n_shared_experts: 1, num_experts_per_tok: 4, first_k_dense_replace: 1, n_group: 1, topk_group: 1, topk_method: 'noaux_tc', norm_topk_prob: true,
  routed_scaling_factor: 1.8, rms_norm_eps: 1e-5, attention_bias: false, num_nextn_predict_layers: 1, partial_rotary_factor: 1, rope_theta: 1_000_000,
}; // prettier-ignore

test('V2-Lite: its sizes, the scale of its scores, its pages', () => {
  const config = parseDeepSeekConfig(V2_LITE);
  expect(config).toMatchObject({ layers: 27, heads: 16, kvHeads: 1, headDim: 576, intermediate: 2816, outputBias: false });
  expect(config.latent).toEqual({
    rank: 512,
    rotary: 64,
    queryRank: undefined,
    still: 128,
    valueDim: 128,
    isInterleaved: true,
    hasBias: false,
    eps: 1e-6,
  });
  const mscale = 0.1 * 0.707 * Math.log(40) + 1;
  expect(config.scores!.scale).toBeCloseTo(mscale ** 2 / Math.sqrt(192), 12);
  expect(config.rope).toMatchObject({ headDim: 64, scaling: { kind: 'yarn', attentionFactor: 1 } });
  expect(config.experts).toMatchObject({ count: 64, perRow: 6, intermediate: 1408, routing: { sigmoid: false, hasBias: false } });
  expect(config.kinds!.map(({ intermediate }) => intermediate)).toEqual([10_944, ...new Array<undefined>(26).fill(undefined)]);
  const { pages } = DEEPSEEK.parseConfig(V2_LITE);
  expect(pages).toEqual(new Array(27).fill({ kvHeads: 1, headDim: 576, valuesInKeys: 512 }));
  // 30 KiB per token.
  expect(pageBytes({ layers: pages, pageSize: 16, dtype: 'f16' }).all).toBe(16 * 27 * 576 * 2);
});

test('GLM-4.7-Flash: its sizes, and without the layer behind its last', () => {
  const config = parseDeepSeekConfig(FLASH);
  expect(config.latent).toMatchObject({ queryRank: 768, still: 192, valueDim: 256 });
  expect(config.scores).toEqual({ scale: 1 / 16 });
  expect(config.experts).toMatchObject({
    routing: { sigmoid: true, hasBias: true, groups: undefined },
    shares: { normalised: true, scale: 1.8 },
  });
  expect(config.experts!.layers.indexOf(true)).toBe(1);
  const taken = ['model.layers.46.mlp.gate.weight', 'model.layers.47.eh_proj.weight', 'lm_head.weight'].map((name) =>
    DEEPSEEK.takes!(name, FLASH),
  );
  expect(taken).toEqual([true, false, true]);
});

test('the first rank of two has half of the heads and all of the latent', () => {
  for (const rank of [0, 1]) expect(() => DEEPSEEK.expectShard!(V2_LITE, { ...wholeShard(27), rank, ranks: 2 })).not.toThrow();
  expect(() => DEEPSEEK.expectShard!(V2_LITE, { ...wholeShard(27), ranks: 17 })).toThrow(/17 adapters/);
});

test('a decode reads one key per position and layer, and no values', async () => {
  const device = await testDevice();
  const [positions, rows] = [304, 2];
  const folder = fileURLToPath(new URL('../fixtures/llama-tiny-random/deepseek_v2', import.meta.url));
  const harness = await DecoderHarness.load(device, folder, { dtype: 'f16', sequences: rows, rows });
  const read = countWork(device, () => positions);
  await harness.step([0, 1].map((sequence) => ({ sequence, start: positions - 1, tokens: [7 + sequence] })));
  read.stop();
  const { layers, pages } = harness.decoder.shape;
  expect(read.pages).toBe(rows * positions * layers * pages[0]!.headDim * 2);
  const calls = (name: string): number => read.kernels.get(name)?.calls ?? 0;
  // Products of heads: two of a layer, and two of the experts in the second.
  const counted = ['latent_store', 'latent_queries', 'paged_attention', 'expert_linear'].map(calls);
  expect(counted).toEqual([layers, layers, layers, 2 * layers + 2]);
  expect(device.errors).toEqual([]);
  device.close();
});

test('pages in bytes are refused before anything is loaded', () => {
  const { pages } = DEEPSEEK.parseConfig(V2_LITE);
  const request = {
    model: 'lite', memory: { bytes: 2 ** 36, from: 'said' }, fraction: 1, others: 0, weights: 2 ** 34, activations: 2 ** 28, maxRunning: 8, context: 4096,
    maxBindingBytes: 2 ** 31,
  } as const; // prettier-ignore
  const plan = (dtype: 'f16' | 'int8') => planMemory({ ...request, kv: { layers: pages, pageSize: 16, dtype } });
  expect(plan('f16').kvBytes).toBe(8 * 4096 * 27 * 576 * 2);
  expect(() => plan('int8')).toThrow(/keys that are values too/);
});

test.each([
  [V2, { norm_topk_prob: true }, /norm_topk_prob is true, expected false/],
  [V2, { topk_method: 'noaux_tc' }, /topk_method is "noaux_tc", expected greedy or group_limited_greedy/],
  [V2, { scoring_func: 'sigmoid' }, /scoring_func is "sigmoid", expected "softmax"/],
  [V2, { moe_layer_freq: 2 }, /moe_layer_freq is 2, expected 1/],
  [V2, { qk_rope_head_dim: 12, head_dim: 12 }, /qk_rope_head_dim 12 \(multiples of 8\)/],
  [V2, { v_head_dim: 18 }, /v_head_dim 18 \(multiples of 4\)/],
  [V3, { topk_method: 'greedy' }, /topk_method is "greedy", expected noaux_tc/],
  [V3, { scoring_func: 'softmax' }, /scoring_func is "softmax", expected "sigmoid"/],
  [V2, { head_dim: 16 }, /head_dim is 16, expected 8/],
  [V3, { num_key_value_heads: 1 }, /num_key_value_heads is 1, expected 4/],
  [V3, { n_routed_experts: null }, /n_routed_experts is undefined/],
  [V3, { partial_rotary_factor: 0.5 }, /partial_rotary_factor 0\.5/],
  [
    fixture('glm4_moe_lite'),
    { mlp_layer_types: ['dense', 'full', 'sparse'] },
    /mlp_layer_types is a list of 3, expected dense or sparse for each of 3 layers/,
  ],
])('%# is refused by name', (config, fields, message) => {
  expect(() => parseDeepSeekConfig({ ...config, ...fields })).toThrow(message);
});
