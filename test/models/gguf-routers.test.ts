/** Granite, Qwen2 and GLM with experts as GGUF files (conversion/granite.py, qwen.py, glm.py): the logits are transformers'. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import { testDevice } from '../support/device.ts';
import { ggufFile } from '../support/gguf-file.ts';
import type { Stored, StoredTensor } from '../support/gguf-file.ts';
import { LLAMA, PARTS, TOP, converted, expectFixtureLogits, f32, floats, metadataOf, paired, u32 } from '../support/gguf-fixtures.ts';

let device: Device;
beforeAll(async () => {
  device = await testDevice();
});
afterAll(() => device.close());

const COMMON = {
  block_count: u32(2), context_length: u32(512), embedding_length: u32(40), 'attention.head_count': u32(5), 'attention.head_count_kv': u32(1),
  'rope.freq_base': f32(1e4), expert_count: u32(7), expert_used_count: u32(3),
}; // prettier-ignore
const STACKED = { gate_proj: 'ffn_gate_exps', up_proj: 'ffn_up_exps', down_proj: 'ffn_down_exps' };
const BIASES = Object.fromEntries(['q', 'k', 'v'].map((part) => [`self_attn.${part}_proj.bias`, `attn_${part}.bias`]));

/** Names of the parts of a shared expert. */
function sharedAs(name: string): Readonly<Record<string, string>> {
  return Object.fromEntries(['gate', 'up', 'down'].map((part) => [`mlp.${name}.${part}_proj`, `ffn_${part}_shexp`]));
}

/** Of a stack of matrices, the rows [from, to) of each. */
function rowsOf({ dimensions: [columns = 0, rows = 0, experts = 0], data }: StoredTensor, from: number, to: number): StoredTensor {
  const all = new Float32Array(data.slice().buffer);
  const parts = Array.from({ length: experts }, (_, i) => [...all.subarray((i * rows + from) * columns, (i * rows + to) * columns)]);
  return floats(Float32Array.from(parts.flat()), [columns, to - from, experts]);
}

test('granitemoe: gates and ups of all experts apart, multipliers, rows in rotary pairs: the logits are transformers', async () => {
  const settings: Record<string, Stored> = {
    ...COMMON, feed_forward_length: u32(32), 'attention.head_count_kv': u32(5), 'attention.layer_norm_rms_epsilon': f32(1e-6), 'rope.dimension_count': u32(8),
    'attention.scale': f32(0.1), embedding_scale: f32(3), residual_scale: f32(0.22), logit_scale: f32(2),
  }; // prettier-ignore
  const tensors = await converted('granitemoe', {
    top: TOP,
    parts: {
      ...PARTS, ...LLAMA, 'block_sparse_moe.router.layer': 'ffn_gate_inp',
      'block_sparse_moe.input_linear': 'both', 'block_sparse_moe.output_linear': 'ffn_down_exps',
    }, // prettier-ignore
    value: (own, values) => (own === 'attn_q' || own === 'attn_k' ? paired(values, 40, 8) : values),
  });
  for (const layer of [0, 1]) {
    const both = tensors[`blk.${layer}.both.weight`]!;
    delete tensors[`blk.${layer}.both.weight`];
    tensors[`blk.${layer}.ffn_gate_exps.weight`] = rowsOf(both, 0, 32);
    tensors[`blk.${layer}.ffn_up_exps.weight`] = rowsOf(both, 32, 64);
  }
  const metadata = metadataOf('granitemoe', settings);
  await expectFixtureLogits(device, 'granitemoe', ggufFile({ metadata, tensors }));
  // A shared MLP beside the experts, as granitemoeshared has.
  const shared = { ...tensors, 'blk.0.ffn_up_shexp.weight': floats(new Float32Array(40 * 8), [40, 8]) };
  await expect(expectFixtureLogits(device, 'granitemoe', ggufFile({ metadata, tensors: shared }))).rejects.toThrow(/blk\.0\.ffn_up_shexp/);
});

test('qwen2moe: shares that are not normalised, and a shared expert with a gate: the logits are transformers', async () => {
  const settings: Record<string, Stored> = {
    ...COMMON, feed_forward_length: u32(52), 'attention.layer_norm_rms_epsilon': f32(1e-6),
    expert_feed_forward_length: u32(20), expert_shared_feed_forward_length: u32(32),
  }; // prettier-ignore
  const parts = {
    ...PARTS, ...LLAMA, ...STACKED, ...BIASES, ...sharedAs('shared_expert'), 'mlp.gate': 'ffn_gate_inp', 'mlp.shared_expert_gate': 'ffn_gate_inp_shexp',
  }; // prettier-ignore
  const tensors = await converted('qwen2_moe', { top: TOP, parts });
  await expectFixtureLogits(device, 'qwen2_moe', ggufFile({ metadata: metadataOf('qwen2moe', settings), tensors }));
});

test('glm4moe: a bias that chooses, a shared expert, and a head that guesses, which is left out: the logits are transformers', async () => {
  const settings: Record<string, Stored> = {
    ...COMMON, block_count: u32(4), nextn_predict_layers: u32(1), feed_forward_length: u32(64), 'attention.layer_norm_rms_epsilon': f32(1e-5),
    'attention.key_length': u32(16), 'attention.value_length': u32(16), 'rope.dimension_count': u32(8),
    expert_count: u32(8), expert_feed_forward_length: u32(20), expert_shared_count: u32(1), leading_dense_block_count: u32(1),
    expert_gating_func: u32(2), expert_weights_scale: f32(1.5), expert_weights_norm: { type: 'bool', value: true },
  }; // prettier-ignore
  const tensors = await converted('glm4_moe', {
    top: TOP,
    parts: {
      ...PARTS, ...STACKED, ...BIASES, ...sharedAs('shared_experts'), input_layernorm: 'attn_norm', post_attention_layernorm: 'post_attention_norm',
      'self_attn.q_norm': 'attn_q_norm', 'self_attn.k_norm': 'attn_k_norm', 'mlp.gate': 'ffn_gate_inp', 'mlp.gate.e_score_correction_bias': 'exp_probs_b.bias',
    }, // prettier-ignore
  });
  const head = {
    'blk.3.nextn.eh_proj.weight': floats(new Float32Array(80 * 40), [80, 40]),
    'blk.3.attn_norm.weight': floats(new Float32Array(40), [40]),
  };
  const metadata = metadataOf('glm4moe', settings);
  await expectFixtureLogits(device, 'glm4_moe', ggufFile({ metadata, tensors: { ...tensors, ...head } }));
  const softmax = ggufFile({ metadata: { ...metadata, 'glm4moe.expert_gating_func': u32(1) }, tensors });
  await expect(expectFixtureLogits(device, 'glm4_moe', softmax)).rejects.toThrow(/expert_gating_func is 1, expected 2 \(sigmoid\)/);
});
