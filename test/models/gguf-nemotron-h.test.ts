/** Nemotron-H as GGUF files (conversion/nemotron.py): the logits are transformers'. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import { testDevice } from '../support/device.ts';
import { ggufFile } from '../support/gguf-file.ts';
import type { Stored, StoredTensor } from '../support/gguf-file.ts';
import { converted, expectFixtureLogits, f32, floats, i32s, mambaShaped, metadataOf, paired, u32 } from '../support/gguf-fixtures.ts';

let device: Device;
beforeAll(async () => {
  device = await testDevice();
});
afterAll(() => device.close());

const TOP = { 'backbone.embeddings': 'token_embd', 'backbone.norm_f': 'output_norm', lm_head: 'output' };
const PARTS = {
  norm: 'attn_norm', 'mixer.in_proj': 'ssm_in', 'mixer.conv1d': 'ssm_conv1d', 'mixer.conv1d.bias': 'ssm_conv1d.bias', 'mixer.norm': 'ssm_norm',
  'mixer.out_proj': 'ssm_out', 'mixer.A_log': 'ssm_a', 'mixer.D': 'ssm_d', 'mixer.dt_bias': 'ssm_dt.bias',
  'mixer.q_proj': 'attn_q', 'mixer.k_proj': 'attn_k', 'mixer.v_proj': 'attn_v', 'mixer.o_proj': 'attn_output',
  'mixer.up_proj': 'ffn_up', 'mixer.down_proj': 'ffn_down', 'mixer.gate': 'ffn_gate_inp', 'mixer.gate.e_score_correction_bias': 'exp_probs_b.bias',
  up_proj: 'ffn_up_exps', down_proj: 'ffn_down_exps', 'mixer.shared_experts.up_proj': 'ffn_up_shexp', 'mixer.shared_experts.down_proj': 'ffn_down_shexp',
}; // prettier-ignore
const COMMON: Record<string, Stored> = {
  block_count: u32(5), context_length: u32(2 ** 20), 'attention.layer_norm_epsilon': f32(1e-5), 'rope.dimension_count': u32(8),
  'rope.scaling.finetuned': { type: 'bool', value: false },
}; // prettier-ignore

/** A fixture's tensors as the converter shapes them; rows of q and k of `headDim` are in rotary pairs, which means nothing here. */
async function tensorsOf(
  fixture: string,
  groups: number,
  [hidden, headDim]: readonly [number, number],
): Promise<Record<string, StoredTensor>> {
  const tensors = await converted(fixture, {
    top: TOP,
    parts: PARTS,
    value: (own, values) => {
      if (own === 'ssm_a') return values.map((value) => -Math.exp(value));
      return own === 'attn_q' || own === 'attn_k' ? paired(values, hidden, headDim) : values;
    },
  });
  return mambaShaped(tensors, groups);
}

test('nemotron_h: layers of Mamba, attention and an MLP: the logits are transformers', async () => {
  const metadata = metadataOf('nemotron_h', {
    ...COMMON, embedding_length: u32(32), feed_forward_length: i32s(0, 64, 0, 64, 0), 'attention.head_count': u32(4), 'attention.head_count_kv': i32s(0, 0, 4, 0, 0),
    'attention.key_length': u32(8), 'attention.value_length': u32(8),
    'ssm.conv_kernel': u32(4), 'ssm.state_size': u32(24), 'ssm.group_count': u32(2), 'ssm.inner_size': u32(64), 'ssm.time_step_rank': u32(8),
  }); // prettier-ignore
  const tensors = await tensorsOf('nemotron_h', 2, [32, 8]);
  await expectFixtureLogits(device, 'nemotron_h', ggufFile({ metadata, tensors }));
  const { 'blk.1.ffn_up.weight': _, ...without } = tensors;
  const missing = expectFixtureLogits(device, 'nemotron_h', ggufFile({ metadata, tensors: without }));
  await expect(missing).rejects.toThrow(/layer 1 has none of ssm_in, attn_q, ffn_gate_inp, ffn_up/);
  const biased = { ...tensors, 'blk.3.ffn_up.bias': floats(new Float32Array(64).fill(1), [64]) };
  await expect(expectFixtureLogits(device, 'nemotron_h', ggufFile({ metadata, tensors: biased }))).rejects.toThrow(/up_proj\.bias/);
});

test('nemotron_h_moe: experts without gates, in groups, beside a shared one: the logits are transformers', async () => {
  const settings: Record<string, Stored> = {
    ...COMMON, embedding_length: u32(40), feed_forward_length: i32s(0, 32, 0, 0, 32), 'attention.head_count': u32(5), 'attention.head_count_kv': i32s(0, 0, 1, 0, 0),
    'attention.key_length': u32(16), 'attention.value_length': u32(16),
    'ssm.conv_kernel': u32(3), 'ssm.state_size': u32(16), 'ssm.group_count': u32(1), 'ssm.inner_size': u32(80), 'ssm.time_step_rank': u32(5),
    expert_count: u32(8), expert_used_count: u32(3), expert_group_count: u32(4), expert_group_used_count: u32(2), expert_feed_forward_length: u32(32),
    expert_shared_feed_forward_length: u32(28), expert_shared_count: u32(1), expert_weights_norm: { type: 'bool', value: true }, expert_weights_scale: f32(1.5),
  }; // prettier-ignore
  const tensors = await tensorsOf('nemotron_h-experts', 1, [40, 16]);
  const file = (more: Record<string, Stored> = {}): Uint8Array =>
    ggufFile({ metadata: metadataOf('nemotron_h_moe', { ...settings, ...more }), tensors });
  await expectFixtureLogits(device, 'nemotron_h-experts', file());
  const refused = (more: Record<string, Stored>) => expect(expectFixtureLogits(device, 'nemotron_h-experts', file(more))).rejects;
  await refused({ moe_latent_size: u32(16) }).toThrow(/moe_latent_size is 16, expected null/);
  await refused({ expert_shared_count: u32(2) }).toThrow(/n_shared_experts is 2, expected 1/);
  await refused({ expert_feed_forward_length: i32s(0, 32, 0, 0, 16) }).toThrow(/expert_feed_forward_length differs from layer to layer/);
});
