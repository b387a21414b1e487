/** ERNIE 4.5, MiniMax-M2, dots.llm1 and Hunyuan with experts as GGUF files (conversion/ernie.py, minimax.py, dots1.py, hunyuan.py): the logits are transformers'. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import type { Json } from '../../engine/util/json.ts';
import { differing } from '../support/compare.ts';
import { DecoderHarness } from '../support/decoder-harness.ts';
import { testDevice } from '../support/device.ts';
import { ggufFile } from '../support/gguf-file.ts';
import type { Stored, StoredTensor } from '../support/gguf-file.ts';
import { FIXTURES, LLAMA, PARTS, TOP, converted, expectFixtureLogits, f32, metadataOf, u32 } from '../support/gguf-fixtures.ts';
import { unlessPassed } from '../support/known-cases.ts';

let device: Device;
beforeAll(async () => {
  device = await testDevice();
});
afterAll(() => device.close());

const COMMON = { context_length: u32(512), embedding_length: u32(40), 'attention.head_count': u32(5), 'attention.head_count_kv': u32(1), 'rope.freq_base': f32(1e4) }; // prettier-ignore
const NORMS = { 'self_attn.q_norm': 'attn_q_norm', 'self_attn.k_norm': 'attn_k_norm' };

/** Names of the parts of experts, and of the shared one. */
function partsOf(shared: string, gate = 'mlp.gate'): Readonly<Record<string, string>> {
  const of = (['gate', 'up', 'down'] as const).flatMap((part) => [
    [`${part}_proj`, `ffn_${part}_exps`] as const,
    [`mlp.${shared}.${part}_proj`, `ffn_${part}_shexp`] as const,
  ]);
  return { ...PARTS, ...LLAMA, ...NORMS, ...Object.fromEntries(of), [gate]: 'ffn_gate_inp' };
}

test('ernie4_5-moe: a bias beside a softmax, pairs of adjacent channels: the logits are transformers', async () => {
  const settings: Record<string, Stored> = {
    ...COMMON, block_count: u32(3), feed_forward_length: u32(64), 'attention.layer_norm_rms_epsilon': f32(1e-5),
    expert_count: u32(7), expert_used_count: u32(3), expert_feed_forward_length: u32(20), expert_shared_count: u32(2), expert_shared_feed_forward_length: u32(40),
    leading_dense_block_count: u32(1), interleave_moe_layer_step: u32(1),
  }; // prettier-ignore
  const parts = { ...partsOf('shared_experts'), 'mlp.moe_statics.e_score_correction_bias': 'exp_probs_b.bias' };
  const tensors = await converted('ernie4_5_moe', { top: TOP, parts });
  const metadata = metadataOf('ernie4_5-moe', settings);
  await expectFixtureLogits(device, 'ernie4_5_moe', ggufFile({ metadata, tensors }));
  // A matrix of one row, as config.json's own files have it.
  const bias = (name: string): readonly [string, StoredTensor] => [name, { ...tensors[name]!, dimensions: [7, 1] }];
  const asRow = { ...tensors, ...Object.fromEntries([1, 2].map((layer) => bias(`blk.${layer}.exp_probs_b.bias`))) };
  await expectFixtureLogits(device, 'ernie4_5_moe', ggufFile({ metadata, tensors: asRow }));
  const { 'blk.2.exp_probs_b.bias': _, ...without } = tensors;
  const unbiased = ggufFile({ metadata, tensors: without });
  await expect(expectFixtureLogits(device, 'ernie4_5_moe', unbiased)).rejects.toThrow(
    /blk\.2\.exp_probs_b\.bias|layers\.2\.mlp\.expert_bias/,
  );
});

test('ernie4_5-moe without shared experts, in every other layer: the logits are those of its config.json', async () => {
  const settings: Record<string, Stored> = {
    ...COMMON, block_count: u32(3), embedding_length: u32(48), 'attention.head_count': u32(6), 'attention.head_count_kv': u32(2), feed_forward_length: u32(64),
    'attention.layer_norm_rms_epsilon': f32(1e-5), expert_count: u32(5), expert_used_count: u32(2), expert_feed_forward_length: u32(20),
    leading_dense_block_count: u32(0), interleave_moe_layer_step: u32(2),
  }; // prettier-ignore
  const parts = { ...partsOf('shared_experts'), 'mlp.moe_statics.e_score_correction_bias': 'exp_probs_b.bias' };
  const tensors = await converted('ernie4_5_moe-apart', { top: TOP, parts });
  const folder = mkdtempSync(join(tmpdir(), 'parley-gguf-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  cpSync(join(FIXTURES, 'ernie4_5_moe-apart'), join(folder, 'model'), { recursive: true });
  writeFileSync(join(folder, 'model.gguf'), ggufFile({ metadata: metadataOf('ernie4_5-moe', settings), tensors }));
  // GGUF files do not say what sums of shares are divided by at least: in published models it is next to nothing.
  const json = JSON.parse(readFileSync(join(folder, 'model', 'config.json'), 'utf8')) as Json;
  writeFileSync(join(folder, 'model', 'config.json'), JSON.stringify({ ...json, moe_norm_min: 1e-12 }));
  const tokens = Array.from({ length: 37 }, (_, i) => (i * 7) % 150);
  await unlessPassed(
    device,
    { expected: [] },
    async (on) => {
      const rowsOf = async (name: string): Promise<Float32Array[]> =>
        (await DecoderHarness.load(on, join(folder, name))).step([{ sequence: 0, start: 0, tokens }]);
      return [await rowsOf('model.gguf'), await rowsOf('model')] as const;
    },
    (rows) => expect(differing(...rows)).toBe(0),
  );
});

test('minimax-m2: norms over all heads, half of a head rotated, sigmoids and a bias: the logits are transformers', async () => {
  const settings: Record<string, Stored> = {
    ...COMMON, block_count: u32(2), feed_forward_length: u32(32), 'attention.layer_norm_rms_epsilon': f32(1e-6), 'attention.key_length': u32(16),
    'attention.value_length': u32(16), 'rope.dimension_count': u32(8), expert_count: u32(8), expert_used_count: u32(3), expert_feed_forward_length: u32(32),
    expert_gating_func: u32(2),
  }; // prettier-ignore
  const parts = {
    ...PARTS, ...LLAMA, ...NORMS, 'block_sparse_moe.gate': 'ffn_gate_inp', 'block_sparse_moe.e_score_correction_bias': 'exp_probs_b.bias',
    w1: 'ffn_gate_exps', w3: 'ffn_up_exps', w2: 'ffn_down_exps',
  }; // prettier-ignore
  const tensors = await converted('minimax_m2', { top: TOP, parts });
  const metadata = metadataOf('minimax-m2', settings);
  await expectFixtureLogits(device, 'minimax_m2', ggufFile({ metadata, tensors }));
  const softmax = ggufFile({ metadata: { ...metadata, 'minimax-m2.expert_gating_func': u32(1) }, tensors });
  await expect(expectFixtureLogits(device, 'minimax_m2', softmax)).rejects.toThrow(/expert_gating_func is 1, expected 2 \(sigmoid\)/);
});

const DOTS = { ...partsOf('shared_experts'), 'mlp.gate.e_score_correction_bias': 'exp_probs_b.bias' };

test('dots1: norms of heads, experts behind the first layer, sigmoids and a bias: the logits are transformers', async () => {
  const settings: Record<string, Stored> = {
    ...COMMON, block_count: u32(3), 'attention.head_count_kv': u32(5), feed_forward_length: u32(64), 'attention.layer_norm_rms_epsilon': f32(1e-6),
    expert_count: u32(8), expert_used_count: u32(3), expert_feed_forward_length: u32(20), expert_shared_count: u32(2), leading_dense_block_count: u32(1),
    expert_gating_func: u32(2), expert_weights_scale: f32(2.5), expert_weights_norm: { type: 'bool', value: true },
  }; // prettier-ignore
  const tensors = await converted('dots1', { top: TOP, parts: DOTS });
  await expectFixtureLogits(device, 'dots1', ggufFile({ metadata: metadataOf('dots1', settings), tensors }));
});

test('hunyuan-moe: a base with its alpha in it, an MLP beside the experts: the logits are transformers', async () => {
  const settings: Record<string, Stored> = {
    ...COMMON, block_count: u32(2), feed_forward_length: u32(32), 'attention.layer_norm_rms_epsilon': f32(1e-5), 'attention.key_length': u32(16),
    'attention.value_length': u32(16), 'rope.freq_base': f32(1e4 * 50 ** (16 / 14)), expert_count: u32(7), expert_used_count: u32(3),
    expert_feed_forward_length: u32(32), expert_shared_feed_forward_length: u32(32), expert_shared_count: u32(1),
  }; // prettier-ignore
  const parts = {
    ...partsOf('shared_mlp', 'mlp.gate.wg'),
    'self_attn.query_layernorm': 'attn_q_norm',
    'self_attn.key_layernorm': 'attn_k_norm',
  };
  const tensors = await converted('hunyuan_v1_moe', { top: TOP, parts });
  const metadata = metadataOf('hunyuan-moe', settings);
  await expectFixtureLogits(device, 'hunyuan_v1_moe', ggufFile({ metadata, tensors }));
  const two = ggufFile({ metadata: { ...metadata, 'hunyuan-moe.expert_shared_count': u32(2) }, tensors });
  await expect(expectFixtureLogits(device, 'hunyuan_v1_moe', two)).rejects.toThrow(/num_shared_expert is 2, expected 1/);
});
