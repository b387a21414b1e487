/** Gemma 1, Mixtral, OLMoE and Phi-3.5-MoE as GGUF files (conversion/gemma.py, llama.py, olmo.py, phi.py): the logits are transformers'. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import { testDevice } from '../support/device.ts';
import { ggufFile } from '../support/gguf-file.ts';
import { LLAMA, PARTS, TOP, converted, expectFixtureLogits, f32, floats, metadataOf, paired, u32 } from '../support/gguf-fixtures.ts';

let device: Device;
beforeAll(async () => {
  device = await testDevice();
});
afterAll(() => device.close());

const COMMON = { block_count: u32(2), context_length: u32(512), 'rope.freq_base': f32(1e4) };
const EXPERTS = { expert_count: u32(5), expert_used_count: u32(2) };
const STACKED = { gate_proj: 'ffn_gate_exps', up_proj: 'ffn_up_exps', down_proj: 'ffn_down_exps' };

test('gemma: norms with their one: the logits are transformers', async () => {
  const settings = {
    ...COMMON, embedding_length: u32(48), feed_forward_length: u32(64), 'attention.head_count': u32(6), 'attention.head_count_kv': u32(2),
    'attention.key_length': u32(24), 'attention.value_length': u32(24), 'attention.layer_norm_rms_epsilon': f32(1e-6),
  }; // prettier-ignore
  const value = (own: string, values: Float32Array): Float32Array => (own.endsWith('norm') ? values.map((stored) => stored + 1) : values);
  const tensors = await converted('gemma', { top: TOP, parts: { ...PARTS, ...LLAMA }, value });
  await expectFixtureLogits(device, 'gemma', ggufFile({ metadata: metadataOf('gemma', settings), tensors }));
});

test('mixtral: a llama with experts, as many columns as an MLP has, rows in rotary pairs: the logits are transformers', async () => {
  const settings = {
    ...COMMON, ...EXPERTS, embedding_length: u32(36), feed_forward_length: u32(32), 'attention.head_count': u32(7), 'attention.head_count_kv': u32(1),
    'attention.key_length': u32(8), 'attention.value_length': u32(8), 'rope.dimension_count': u32(8), 'attention.layer_norm_rms_epsilon': f32(1e-5),
  }; // prettier-ignore
  const tensors = await converted('mixtral', {
    top: TOP,
    parts: { ...PARTS, ...LLAMA, 'block_sparse_moe.gate': 'ffn_gate_inp', w1: 'ffn_gate_exps', w3: 'ffn_up_exps', w2: 'ffn_down_exps' },
    value: (own, values) => (own === 'attn_q' || own === 'attn_k' ? paired(values, 36, 8) : values),
  });
  const metadata = metadataOf('llama', settings);
  await expectFixtureLogits(device, 'mixtral', ggufFile({ metadata, tensors }));
  const { 'llama.expert_used_count': _, ...without } = metadata;
  const file = ggufFile({ metadata: without, tensors });
  await expect(expectFixtureLogits(device, 'mixtral', file)).rejects.toThrow(/llama\.expert_used_count is missing/);
});

test('olmoe: shares that are not normalised, norms over all heads: the logits are transformers', async () => {
  const settings = {
    ...COMMON, ...EXPERTS, embedding_length: u32(40), feed_forward_length: u32(32), 'attention.head_count': u32(5), 'attention.head_count_kv': u32(5),
    'attention.layer_norm_rms_epsilon': f32(1e-5),
  }; // prettier-ignore
  const parts = {
    ...PARTS,
    ...LLAMA,
    ...STACKED,
    'self_attn.q_norm': 'attn_q_norm',
    'self_attn.k_norm': 'attn_k_norm',
    'mlp.gate': 'ffn_gate_inp',
  };
  const tensors = await converted('olmoe', { top: TOP, parts });
  await expectFixtureLogits(device, 'olmoe', ggufFile({ metadata: metadataOf('olmoe', settings), tensors }));
});

test("phimoe: layer norms with the eps of others, biases, LongRoPE's factors as tensors: the logits are transformers", async () => {
  const settings = {
    ...COMMON, embedding_length: u32(32), feed_forward_length: u32(32), 'attention.head_count': u32(4), 'attention.head_count_kv': u32(2),
    'attention.layer_norm_rms_epsilon': f32(1e-5), 'rope.dimension_count': u32(8), 'rope.scaling.original_context_length': u32(512),
    'rope.scaling.attn_factor': f32(1.25), 'attention.sliding_window': u32(24), expert_count: u32(6), expert_used_count: u32(2),
  }; // prettier-ignore
  const named = { ...PARTS, ...LLAMA };
  const biases = Object.fromEntries(Object.entries(named).map(([part, stored]) => [`${part}.bias`, `${stored}.bias`]));
  const tensors = await converted('phimoe', {
    top: { ...TOP, 'model.norm.bias': 'output_norm.bias', 'lm_head.bias': 'output.bias' },
    parts: { ...named, ...biases, 'block_sparse_moe.gate': 'ffn_gate_inp', w1: 'ffn_gate_exps', w3: 'ffn_up_exps', w2: 'ffn_down_exps' },
  });
  const factors = (step: number) =>
    floats(
      Float32Array.from({ length: 4 }, (_, i) => 1 + step * i),
      [4],
    );
  const scaled = { ...tensors, 'rope_factors_short.weight': factors(0.04), 'rope_factors_long.weight': factors(0.7) };
  await expectFixtureLogits(device, 'phimoe', ggufFile({ metadata: metadataOf('phimoe', settings), tensors: scaled }));
});
