/** Dense families of one or two types as GGUF files (conversion/ernie.py, hunyuan.py, olmo.py, chatglm.py, glm.py, exaone.py): the logits are transformers'. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import { testDevice } from '../support/device.ts';
import { ggufFile } from '../support/gguf-file.ts';
import type { Stored, StoredTensor } from '../support/gguf-file.ts';
import { LLAMA, PARTS, TOP, converted, expectFixtureLogits, f32, floats, i32s, metadataOf, u32 } from '../support/gguf-fixtures.ts';

let device: Device;
beforeAll(async () => {
  device = await testDevice();
});
afterAll(() => device.close());

/** The settings of a fixture of two layers, six query heads over two of keys, each of 24 channels. */
const COMMON: Readonly<Record<string, Stored>> = {
  block_count: u32(2), context_length: u32(512), embedding_length: u32(48), feed_forward_length: u32(64), 'attention.head_count': u32(6),
  'attention.head_count_kv': u32(2), 'attention.key_length': u32(24), 'attention.value_length': u32(24), 'rope.dimension_count': u32(24),
  'rope.freq_base': f32(1e4),
}; // prettier-ignore

/** Names of parts, and of their biases. */
function withBiases(parts: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return { ...parts, ...Object.fromEntries(Object.entries(parts).map(([part, stored]) => [`${part}.bias`, `${stored}.bias`])) };
}

test('ernie4_5: pairs of adjacent channels in the order of transformers, biases: the logits are transformers', async () => {
  const tensors = await converted('ernie4_5', { top: TOP, parts: withBiases({ ...LLAMA, ...PARTS }) });
  const metadata = metadataOf('ernie4_5', { ...COMMON, 'attention.layer_norm_rms_epsilon': f32(1e-5) });
  await expectFixtureLogits(device, 'ernie4_5', ggufFile({ metadata, tensors }));
});

test('hunyuan-dense: the base with its alpha, norms behind the rotation: the logits are transformers', async () => {
  const parts = { ...LLAMA, ...PARTS, 'self_attn.query_layernorm': 'attn_q_norm', 'self_attn.key_layernorm': 'attn_k_norm' };
  const tensors = await converted('hunyuan_v1_dense', { top: TOP, parts });
  const settings: Record<string, Stored> = {
    ...COMMON, 'attention.layer_norm_rms_epsilon': f32(1e-5), 'rope.freq_base': f32(1e4 * 50 ** (24 / 22)),
    'rope.scaling.type': { type: 'string', value: 'none' }, 'rope.scaling.factor': f32(1), 'rope.scaling.original_context_length': u32(262_144),
  }; // prettier-ignore
  await expectFixtureLogits(device, 'hunyuan_v1_dense', ggufFile({ metadata: metadataOf('hunyuan-dense', settings), tensors }));
});

/** The settings of a fixture of five query heads on one of keys, each of 16 channels. */
const FIVE: Readonly<Record<string, Stored>> = {
  ...COMMON, embedding_length: u32(40), 'attention.head_count': u32(5), 'attention.head_count_kv': u32(1), 'attention.key_length': u32(16),
  'attention.value_length': u32(16), 'rope.dimension_count': u32(16),
}; // prettier-ignore

test('seed_oss: biases of queries, keys and values, a norm with the name of another: the logits are transformers', async () => {
  const parts = { ...withBiases(PARTS), input_layernorm: 'attn_norm', post_attention_layernorm: 'post_attention_norm' };
  const tensors = await converted('seed_oss', { top: TOP, parts });
  const metadata = metadataOf('seed_oss', { ...FIVE, 'attention.layer_norm_rms_epsilon': f32(1e-6) });
  await expectFixtureLogits(device, 'seed_oss', ggufFile({ metadata, tensors }));
});

const GLM = { ...withBiases(PARTS), 'mlp.gate_up_proj': 'ffn_up' };
const GLM_EPS = { 'attention.layer_norm_rms_epsilon': f32(1.5625e-7) };

/** Of tensors of equal rows, all rows. */
function stacked(parts: readonly StoredTensor[]): StoredTensor {
  const [first] = parts as [StoredTensor];
  const rows = parts.reduce((sum, { dimensions }) => sum + dimensions.at(-1)!, 0);
  return { ...first, dimensions: [...first.dimensions.slice(0, -1), rows], data: Buffer.concat(parts.map(({ data }) => data)) };
}

test('chatglm: a part of a head in pairs of adjacent channels, q, k and v apart and in one tensor: the logits are transformers', async () => {
  const tensors = await converted('glm', { top: TOP, parts: { ...GLM, ...LLAMA } });
  const metadata = metadataOf('chatglm', { ...FIVE, ...GLM_EPS, 'rope.dimension_count': u32(8) });
  await expectFixtureLogits(device, 'glm', ggufFile({ metadata, tensors }));
  const isApart = (name: string): boolean => /attn_[qkv]\./.test(name);
  const fused = Object.fromEntries(Object.entries(tensors).filter(([name]) => !isApart(name)));
  for (const layer of [0, 1]) {
    for (const kind of ['weight', 'bias']) {
      const parts = ['q', 'k', 'v'].map((part) => tensors[`blk.${layer}.attn_${part}.${kind}`]!);
      fused[`blk.${layer}.attn_qkv.${kind}`] = stacked(parts);
    }
  }
  await expectFixtureLogits(device, 'glm', ggufFile({ metadata, tensors: fused }));
});

test('glm4: four norms, no biases: the logits are transformers; a rotation for images is refused', async () => {
  const parts = {
    ...GLM, input_layernorm: 'attn_norm', post_self_attn_layernorm: 'post_attention_norm', post_attention_layernorm: 'ffn_norm',
    post_mlp_layernorm: 'post_ffw_norm',
  }; // prettier-ignore
  const tensors = await converted('glm4', { top: TOP, parts });
  const metadata = metadataOf('glm4', { ...COMMON, ...GLM_EPS, 'rope.dimension_count': u32(12) });
  await expectFixtureLogits(device, 'glm4', ggufFile({ metadata, tensors }));
  const seen = { ...metadata, 'glm4.rope.dimension_sections': i32s(4, 4, 4, 0) };
  await expect(expectFixtureLogits(device, 'glm4', ggufFile({ metadata: seen, tensors }))).rejects.toThrow(/dimension_sections is there/);
});

const EXAONE = {
  ...PARTS, post_attention_layernorm: 'post_attention_norm', post_feedforward_layernorm: 'post_ffw_norm', 'self_attn.q_norm': 'attn_q_norm',
  'self_attn.k_norm': 'attn_k_norm',
}; // prettier-ignore

/** Divisors of the frequencies of heads of 16 channels: of those that turn less than once in 32 positions `most`, of fast ones 1. */
function llama3Factors(most: number): StoredTensor {
  const factors = Array.from({ length: 8 }, (_, i) => {
    const turns = (32 * 1e4 ** (-i / 8)) / (2 * Math.PI);
    const smooth = (turns - 1) / 3;
    return turns > 4 ? 1 : turns < 1 ? most : 1 / ((1 - smooth) / most + smooth);
  });
  return floats(Float32Array.from(factors), [8]);
}

test('exaone4: layers with a window rotate by factors, the others do not: the logits are transformers', async () => {
  const tensors = await converted('exaone4', { top: TOP, parts: EXAONE });
  const metadata = metadataOf('exaone4', {
    ...FIVE, block_count: u32(3), 'attention.layer_norm_rms_epsilon': f32(1e-5), 'attention.sliding_window': u32(11),
    'attention.sliding_window_pattern': { type: 'bools', value: [true, false, true] },
  }); // prettier-ignore
  await expectFixtureLogits(device, 'exaone4', ggufFile({ metadata, tensors: { ...tensors, 'rope_freqs.weight': llama3Factors(16) } }));
});

test('exaone4 without a window: all layers rotate: the logits are transformers', async () => {
  const tensors = await converted('exaone4-full', { top: TOP, parts: EXAONE });
  const metadata = metadataOf('exaone4', { ...COMMON, 'attention.layer_norm_rms_epsilon': f32(1e-5) });
  await expectFixtureLogits(device, 'exaone4-full', ggufFile({ metadata, tensors }));
});

const XIELU = { alpha_p: 'xielu_alpha_p', alpha_n: 'xielu_alpha_n', beta: 'xielu_beta', eps: 'xielu_eps' };

test('apertus: numbers of the activation among the settings, positions scaled by factors: the logits are transformers', async () => {
  const parts = {
    ...PARTS, attention_layernorm: 'attn_norm', feedforward_layernorm: 'ffn_norm', 'self_attn.q_norm': 'attn_q_norm', 'self_attn.k_norm': 'attn_k_norm',
    ...Object.fromEntries(Object.entries(XIELU).map(([name, stored]) => [`mlp.act_fn.${name}`, stored])),
  }; // prettier-ignore
  const all = await converted('apertus', { top: TOP, parts });
  const isNumber = (name: string): boolean => name.includes('xielu');
  const tensors = Object.fromEntries(Object.entries(all).filter(([name]) => !isNumber(name)));
  const numberOf = (name: string): number => new Float32Array(all[name]!.data.slice().buffer)[0]!;
  const numbers = Object.entries(XIELU).map(
    ([name, stored]) =>
      [`xielu.${name}`, { type: 'f32s', value: [0, 1, 2].map((layer) => numberOf(`blk.${layer}.${stored}.weight`)) }] as const,
  );
  const metadata = metadataOf('apertus', {
    ...COMMON, block_count: u32(3), embedding_length: u32(32), feed_forward_length: u32(96), 'attention.key_length': u32(16),
    'attention.value_length': u32(16), 'rope.dimension_count': u32(16), 'attention.layer_norm_rms_epsilon': f32(1e-5),
  }); // prettier-ignore
  const file = (settings: Readonly<Record<string, Stored>>): Uint8Array => ggufFile({ metadata: { ...metadata, ...settings }, tensors: { ...tensors, 'rope_freqs.weight': llama3Factors(8) } }); // prettier-ignore
  await expectFixtureLogits(device, 'apertus', file(Object.fromEntries(numbers)));
  await expect(expectFixtureLogits(device, 'apertus', file(Object.fromEntries(numbers.slice(1))))).rejects.toThrow(
    /xielu.alpha_p is missing/,
  );
});
