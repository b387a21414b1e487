/** Decoders with layer norms as GGUF files (conversion/command_r.py, starcoder.py, stablelm.py, nemotron.py): the logits are transformers'. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import { testDevice } from '../support/device.ts';
import { ggufFile } from '../support/gguf-file.ts';
import { LLAMA, PARTS, TOP, converted, expectFixtureLogits, f32, floats, i32s, metadataOf, u32 } from '../support/gguf-fixtures.ts';

const COHERE = {
  ...PARTS,
  input_layernorm: 'attn_norm',
  ...Object.fromEntries(['q', 'k', 'v', 'o'].map((part) => [`self_attn.${part}_proj.bias`, `attn_${part === 'o' ? 'output' : part}.bias`])),
};

let device: Device;
beforeAll(async () => {
  device = await testDevice();
});
afterAll(() => device.close());

const expectLogits = (name: string, file: Uint8Array): Promise<void> => expectFixtureLogits(device, name, file);

test.each([
  ['cohere', 'command-r', {
    block_count: u32(2), embedding_length: u32(48), feed_forward_length: u32(64), 'attention.head_count': u32(6), 'attention.head_count_kv': u32(2), logit_scale: f32(0.25),
  }],
  ['cohere2', 'cohere2', {
    block_count: u32(3), embedding_length: u32(40), feed_forward_length: u32(64), 'attention.head_count': u32(5), 'attention.head_count_kv': u32(1), logit_scale: f32(0.5),
    'attention.sliding_window': u32(11), 'attention.sliding_window_pattern': i32s(1, 0, 1), 'rope.dimension_count': u32(8),
  }],
] as const)('%s: layer norms, pairs of adjacent channels in the order of transformers: the logits are transformers', async (fixture, architecture, own) => {
  const common = {
    context_length: u32(512), 'attention.layer_norm_epsilon': f32(1e-5), 'rope.freq_base': f32(1e4), 'rope.scaling.type': { type: 'string', value: 'none' },
  } as const;
  const tensors = await converted(fixture, { top: TOP, parts: COHERE });
  const metadata = metadataOf(architecture, { ...common, ...own });
  await expectLogits(fixture, ggufFile({ metadata, tensors }));
  // Such files have biases without a value, which is left out.
  if (fixture === 'cohere2') {
    const withBias = (value: number): Uint8Array => ggufFile({ metadata, tensors: { ...tensors, 'blk.1.attn_norm.bias': floats(new Float32Array(40).fill(value), [40]) } }); // prettier-ignore
    await expectLogits(fixture, withBias(0));
    await expect(expectLogits(fixture, withBias(0.5))).rejects.toThrow(/input_layernorm\.bias is not zero/);
  }
  const normed = { ...tensors, 'blk.0.attn_q_norm.weight': floats(new Float32Array(8), [8]) };
  await expect(expectLogits(fixture, ggufFile({ metadata, tensors: normed }))).rejects.toThrow(/use_qk_norm is true/);
}); // prettier-ignore

test.each([
  ['starcoder2', {
    embedding_length: u32(40), feed_forward_length: u32(64), 'attention.head_count': u32(5), 'attention.head_count_kv': u32(1), 'attention.sliding_window': u32(16),
  }],
  ['stablelm', {
    embedding_length: u32(64), feed_forward_length: u32(64), 'attention.head_count': u32(4), 'attention.head_count_kv': u32(4), 'rope.dimension_count': u32(4),
    use_parallel_residual: { type: 'bool', value: false },
  }],
  ['stablelm-parallel', {
    embedding_length: u32(40), feed_forward_length: u32(64), 'attention.head_count': u32(5), 'attention.head_count_kv': u32(1), 'rope.dimension_count': u32(4),
    use_parallel_residual: { type: 'bool', value: true },
  }],
  ['nemotron', {
    embedding_length: u32(48), feed_forward_length: u32(64), 'attention.head_count': u32(6), 'attention.head_count_kv': u32(2), 'rope.dimension_count': u32(12),
    'attention.key_length': u32(24), 'attention.value_length': u32(24),
  }],
] as const)('%s: layer norms with biases: the logits are transformers', async (fixture, own) => {
  const common = { block_count: u32(2), context_length: u32(512), 'attention.layer_norm_epsilon': f32(1e-5), 'rope.freq_base': f32(1e4) };
  const named = { ...LLAMA, ...PARTS, 'mlp.c_fc': 'ffn_up', 'mlp.c_proj': 'ffn_down' };
  const biases = Object.fromEntries(Object.entries(named).map(([part, stored]) => [`${part}.bias`, `${stored}.bias`]));
  const isShifted = (name: string): boolean => fixture === 'nemotron' && name.endsWith('norm');
  const tensors = await converted(fixture, {
    top: { ...TOP, 'model.norm.bias': 'output_norm.bias' },
    parts: { ...named, ...biases },
    value: (name, values) => (isShifted(name) ? values.map((value) => value + 1) : values),
  });
  await expectLogits(fixture, ggufFile({ metadata: metadataOf(fixture.replace('-parallel', ''), { ...common, ...own }), tensors }));
}); // prettier-ignore
