/** DeepSeek-V2 and V3, GLM-4.7-Flash and MiniCPM3 as GGUF files (conversion/deepseek.py, glm.py, minicpm.py): the logits are transformers'. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { floatStorage } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { widenBlocks } from '../../engine/weights/block-format.ts';
import { BLOCK_FORMATS } from '../../engine/weights/block-types.ts';
import { quantizeRows } from '../reference/quantize.ts';
import { expectClose } from '../support/compare.ts';
import { DecoderHarness } from '../support/decoder-harness.ts';
import { testDevice } from '../support/device.ts';
import { ggufFile } from '../support/gguf-file.ts';
import type { Stored, StoredTensor } from '../support/gguf-file.ts';
import { LLAMA, PARTS, TOP, converted, expectFixtureLogits, f32, floats, metadataOf, u32 } from '../support/gguf-fixtures.ts';
import { unlessPassed } from '../support/known-cases.ts';
import { write } from '../support/tiny-gguf.ts';

let device: Device;
beforeAll(async () => {
  device = await testDevice();
});
afterAll(() => device.close());

const NAMES = {
  ...PARTS, ...LLAMA, 'self_attn.q_a_proj': 'attn_q_a', 'self_attn.q_a_layernorm': 'attn_q_a_norm', 'self_attn.q_b_proj': 'attn_q_b',
  'self_attn.kv_a_proj_with_mqa': 'attn_kv_a_mqa', 'self_attn.kv_a_layernorm': 'attn_kv_a_norm', 'self_attn.kv_b_proj': 'attn_kv_b',
  'mlp.gate': 'ffn_gate_inp', 'mlp.gate.e_score_correction_bias': 'exp_probs_b.bias',
  gate_proj: 'ffn_gate_exps', up_proj: 'ffn_up_exps', down_proj: 'ffn_down_exps',
  ...Object.fromEntries(['gate', 'up', 'down'].map((part) => [`mlp.shared_experts.${part}_proj`, `ffn_${part}_shexp`])),
}; // prettier-ignore

const COMMON: Record<string, Stored> = {
  context_length: u32(512), 'attention.layer_norm_rms_epsilon': f32(1e-6), 'rope.freq_base': f32(1e4), expert_count: u32(8), expert_used_count: u32(3),
}; // prettier-ignore

interface Heads {
  readonly heads: number;
  readonly rank: number;
  readonly still: number;
  readonly valueDim: number;
}

/** The two products of latents as newer converters write them: apart, that of keys transposed head by head. */
function apart(tensors: Readonly<Record<string, StoredTensor>>, { heads, rank, still, valueDim }: Heads): Record<string, StoredTensor> {
  const cut = Object.entries(tensors).flatMap(([name, tensor]): (readonly [string, StoredTensor])[] => {
    if (!name.includes('.attn_kv_b.')) return [[name, tensor]];
    const all = new Float32Array(tensor.data.slice().buffer);
    const at = (head: number, row: number, column: number): number => all[(head * (still + valueDim) + row) * rank + column]!;
    const [keys, values] = [new Float32Array(heads * rank * still), new Float32Array(heads * valueDim * rank)];
    keys.forEach((_, i) => (keys[i] = at(Math.floor(i / (rank * still)), i % still, Math.floor(i / still) % rank)));
    values.forEach((_, i) => (values[i] = at(Math.floor(i / (valueDim * rank)), still + (Math.floor(i / rank) % valueDim), i % rank)));
    return [
      [name.replace('kv_b', 'k_b'), floats(keys, [still, rank, heads])],
      [name.replace('kv_b', 'v_b'), floats(values, [rank, valueDim, heads])],
    ];
  });
  return Object.fromEntries(cut);
}

test('a softmax, both products of latents in one tensor, sizes of heads: the logits are transformers', async () => {
  const settings: Record<string, Stored> = {
    ...COMMON, block_count: u32(2), embedding_length: u32(40), feed_forward_length: u32(52), 'attention.head_count': u32(5), 'attention.head_count_kv': u32(5),
    'attention.key_length': u32(20), 'attention.value_length': u32(16), 'attention.kv_lora_rank': u32(32), 'rope.dimension_count': u32(8),
    'rope.scaling.type': { type: 'string', value: 'yarn' }, 'rope.scaling.factor': f32(8), 'rope.scaling.original_context_length': u32(16),
    'rope.scaling.yarn_log_multiplier': f32(0.0707), expert_feed_forward_length: u32(20), expert_shared_count: u32(2), leading_dense_block_count: u32(1),
    expert_weights_scale: f32(1.5), expert_group_count: u32(1), expert_group_used_count: u32(1),
  }; // prettier-ignore
  const tensors = await converted('deepseek_v2', { top: TOP, parts: NAMES });
  const file = (more: Record<string, Stored> = {}, add: Record<string, StoredTensor> = {}): Uint8Array =>
    ggufFile({ metadata: metadataOf('deepseek2', { ...settings, ...more }), tensors: { ...tensors, ...add } });
  await expectFixtureLogits(device, 'deepseek_v2', file());
  const refused = (more: Record<string, Stored>) => expect(expectFixtureLogits(device, 'deepseek_v2', file(more))).rejects;
  await refused({ expert_gating_func: u32(3) }).toThrow(/expert_gating_func is 3, expected 1 \(softmax\) or 2 \(sigmoid\)/);
  await refused({ expert_weights_norm: { type: 'bool', value: true } }).toThrow(/norm_topk_prob is true, expected false/);
  await refused({ 'attention.temperature_scale': f32(0.1) }).toThrow(/attention\.temperature_scale is 0\.1/);
  const biased = file({}, { 'blk.0.attn_kv_a_mqa.bias': floats(new Float32Array(40).fill(1), [40]) });
  await expect(expectFixtureLogits(device, 'deepseek_v2', biased)).rejects.toThrow(/kv_a_proj_with_mqa\.bias/);
});

const V3: Record<string, Stored> = {
    ...COMMON, block_count: u32(2), embedding_length: u32(32), feed_forward_length: u32(64), 'attention.head_count': u32(4), 'attention.head_count_kv': u32(1),
    'attention.key_length': u32(48), 'attention.value_length': u32(32), 'attention.key_length_mla': u32(48), 'attention.value_length_mla': u32(32),
    'attention.kv_lora_rank': u32(32), 'attention.q_lora_rank': u32(32), 'rope.dimension_count': u32(16), 'rope.scaling.type': { type: 'string', value: 'yarn' },
    'rope.scaling.factor': f32(40), 'rope.scaling.original_context_length': u32(16), 'rope.scaling.yarn_log_multiplier': f32(0.1),
    expert_feed_forward_length: u32(32), expert_shared_count: u32(1), leading_dense_block_count: u32(1), expert_gating_func: u32(2), expert_weights_scale: f32(2.5),
    expert_weights_norm: { type: 'bool', value: true }, expert_group_count: u32(4), expert_group_used_count: u32(2),
}; // prettier-ignore
const V3_HEADS = { heads: 4, rank: 32, still: 32, valueDim: 32 };

test('sigmoids, groups, YaRN, products of latents in two tensors, sizes of latents as those of attention: the logits are transformers', async () => {
  const tensors = apart(await converted('deepseek_v3', { top: TOP, parts: NAMES }), V3_HEADS);
  await expectFixtureLogits(device, 'deepseek_v3', ggufFile({ metadata: metadataOf('deepseek2', V3), tensors }));
});

/** Matrices with rows of whole blocks in Q8_0, and the values that these stand for as floats. */
function inBlocks(tensors: Readonly<Record<string, StoredTensor>>): Record<'blocks' | 'values', Record<string, StoredTensor>> {
  const both = { blocks: { ...tensors }, values: { ...tensors } };
  for (const [name, { dimensions, data }] of Object.entries(tensors)) {
    if (dimensions.length < 2 || dimensions[0]! % 32 !== 0 || name.includes('ffn_gate_inp')) continue;
    const stored = quantizeRows(new Float32Array(data.slice().buffer), 'Q8_0');
    const values = new Float32Array(data.length / 4);
    widenBlocks(BLOCK_FORMATS.Q8_0, stored, values);
    both.blocks[name] = { dimensions, type: 8, data: stored };
    both.values[name] = floats(values, dimensions);
  }
  return both;
}

test.each(['in one tensor', 'in two'])(
  'quantised, with products of latents %s: the logits are those of the values that blocks stand for',
  async (how) => {
    const whole = await converted('deepseek_v3', { top: TOP, parts: NAMES });
    const { blocks, values } = inBlocks(how === 'in two' ? apart(whole, V3_HEADS) : whole);
    const logitsOf = async (on: Device, tensors: Record<string, StoredTensor>): Promise<{ logits: Float32Array; bytes: number }> => {
      const path = write(ggufFile({ metadata: metadataOf('deepseek2', V3), tensors }));
      const harness = await DecoderHarness.load(on, path, { storage: { ...floatStorage('f32'), keepBlocks: true }, sequences: 1 });
      const rows = await harness.step([{ sequence: 0, start: 0, tokens: Array.from({ length: 30 }, (_, i) => (7 * i) % 150) }]);
      return { logits: Float32Array.from(rows.flatMap((row) => [...row])), bytes: harness.weightBytes };
    };
    await unlessPassed(
      device,
      { expected: [] },
      async (on) => {
        const [packed, exact] = [await logitsOf(on, blocks), await logitsOf(on, values)];
        expect(packed.bytes).toBeLessThan(0.5 * exact.bytes);
        return [packed.logits, exact.logits] as const;
      },
      ([packed, exact]) => expectClose(how, packed, exact, 1e-6),
    );
  },
);

test('GLM-4.7-Flash, without the head that guesses and the key of its router: the logits are transformers', async () => {
  const settings: Record<string, Stored> = {
    ...COMMON, block_count: u32(4), nextn_predict_layers: u32(1), embedding_length: u32(40), feed_forward_length: u32(52), 'attention.head_count': u32(5),
    'attention.head_count_kv': u32(1), 'attention.layer_norm_rms_epsilon': f32(1e-5), 'rope.freq_base': f32(1e6), 'rope.dimension_count': u32(8),
    'attention.key_length': u32(40), 'attention.value_length': u32(32), 'attention.key_length_mla': u32(20), 'attention.value_length_mla': u32(20),
    'attention.kv_lora_rank': u32(32), 'attention.q_lora_rank': u32(24), expert_feed_forward_length: u32(20), expert_shared_count: u32(1),
    leading_dense_block_count: u32(2), expert_weights_scale: f32(1.8), expert_weights_norm: { type: 'bool', value: true },
  }; // prettier-ignore
  const tensors = apart(await converted('glm4_moe_lite', { top: TOP, parts: NAMES }), { heads: 5, rank: 32, still: 12, valueDim: 20 });
  const head = { 'blk.3.nextn.eh_proj.weight': floats(new Float32Array(80 * 40), [80, 40]) };
  await expectFixtureLogits(
    device,
    'glm4_moe_lite',
    ggufFile({ metadata: metadataOf('deepseek2', settings), tensors: { ...tensors, ...head } }),
  );
});

test('MiniCPM3, whose multipliers no file has: the logits are transformers', async () => {
  const settings: Record<string, Stored> = {
    block_count: u32(2), context_length: u32(512), embedding_length: u32(32), feed_forward_length: u32(64), 'attention.head_count': u32(4),
    'attention.head_count_kv': u32(4), 'attention.layer_norm_rms_epsilon': f32(1e-5), 'rope.dimension_count': u32(8), 'attention.key_length': u32(20),
    'attention.kv_lora_rank': u32(32), 'attention.q_lora_rank': u32(32),
  }; // prettier-ignore
  const tensors = await converted('minicpm3', { top: TOP, parts: NAMES });
  const factors = floats(Float32Array.of(1, 1.04, 1.08, 1.12), [4]);
  const both = { 'rope_factors_short.weight': factors, 'rope_factors_long.weight': factors };
  const file = ggufFile({ metadata: metadataOf('minicpm3', settings), tensors: { ...tensors, ...both } });
  await expectFixtureLogits(device, 'minicpm3', file);
});
