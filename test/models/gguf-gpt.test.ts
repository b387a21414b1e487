/** GPT-2, GPT-NeoX and Phi-2 as GGUF files (conversion/gpt2.py, gptneox.py, phi.py): the logits are transformers'. */
import { afterAll, beforeAll, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import { testDevice } from '../support/device.ts';
import { ggufFile } from '../support/gguf-file.ts';
import { converted, expectFixtureLogits, f32, floats, metadataOf, u32 } from '../support/gguf-fixtures.ts';
import type { StoredTensor } from '../support/gguf-file.ts';

let device: Device;
beforeAll(async () => {
  device = await testDevice();
});
afterAll(() => device.close());

const expectLogits = (name: string, file: Uint8Array): Promise<void> => expectFixtureLogits(device, name, file);

/** Names of tensors with their weights and biases. */
const both = (names: Readonly<Record<string, string>>): Record<string, string> => ({
  ...names,
  ...Object.fromEntries(Object.entries(names).map(([own, stored]) => [`${own}.bias`, `${stored}.bias`])),
});

const PARTS = { input_layernorm: 'attn_norm', post_attention_layernorm: 'ffn_norm' };
const NEOX = {
  top: both({ 'gpt_neox.embed_in': 'token_embd', 'gpt_neox.final_layer_norm': 'output_norm', embed_out: 'output' }),
  parts: both({
    ...PARTS,
    'attention.query_key_value': 'attn_qkv',
    'attention.dense': 'attn_output',
    'mlp.dense_h_to_4h': 'ffn_up',
    'mlp.dense_4h_to_h': 'ffn_down',
  }),
};
const PHI = {
  top: both({ 'model.embed_tokens': 'token_embd', 'model.final_layernorm': 'output_norm', lm_head: 'output' }),
  parts: both({
    ...PARTS,
    ...Object.fromEntries(['q', 'k', 'v'].map((part) => [`self_attn.${part}_proj`, `attn_${part}`])),
    'self_attn.dense': 'attn_output',
    'mlp.fc1': 'ffn_up',
    'mlp.fc2': 'ffn_down',
  }),
};
const GPT2 = {
  top: both({ 'transformer.wte': 'token_embd', 'transformer.wpe': 'position_embd', 'transformer.ln_f': 'output_norm' }),
  parts: both({
    ln_1: 'attn_norm',
    ln_2: 'ffn_norm',
    'attn.c_attn': 'attn_qkv',
    'attn.c_proj': 'attn_output',
    'mlp.c_fc': 'ffn_up',
    'mlp.c_proj': 'ffn_down',
  }),
};
const COMMON = { block_count: u32(2), context_length: u32(512), 'attention.layer_norm_epsilon': f32(1e-5) } as const;

/** Rows of all heads' queries, then keys, then values, of those that a checkpoint has by head. */
function byKind(values: Float32Array, heads: number): Float32Array {
  const size = values.length / heads / 3;
  const parts = [0, 1, 2].flatMap((kind) => Array.from({ length: heads }, (_, head) => (3 * head + kind) * size));
  return Float32Array.from(parts.flatMap((from) => [...values.subarray(from, from + size)]));
}

test.each([
  ['gpt_neox', true, { embedding_length: u32(32), feed_forward_length: u32(128), 'attention.head_count': u32(2), 'rope.dimension_count': u32(4) }],
  ['gpt_neox-serial', false, {
    embedding_length: u32(40), feed_forward_length: u32(52), 'attention.head_count': u32(5), 'rope.dimension_count': u32(4), 'rope.freq_base': f32(5000),
  }],
] as const)('%s: halves in parallel or not, queries before keys before values: the logits are transformers', async (fixture, isParallel, own) => {
  const heads = own['attention.head_count'].value as number;
  const tensors = await converted(fixture, {
    ...NEOX,
    value: (name, values) => (name.startsWith('attn_qkv') ? byKind(values, heads) : values),
  });
  const metadata = metadataOf('gptneox', { ...COMMON, ...own, use_parallel_residual: { type: 'bool', value: isParallel } });
  await expectLogits(fixture, ggufFile({ metadata, tensors }));
}); // prettier-ignore

test('phi: a head with biases, q, k and v in one tensor or three: the logits are transformers', async () => {
  const apart = await converted('phi', PHI);
  const metadata = metadataOf('phi2', {
    ...COMMON, embedding_length: u32(32), feed_forward_length: u32(96), 'attention.head_count': u32(2), 'attention.head_count_kv': u32(2), 'rope.dimension_count': u32(6),
  }); // prettier-ignore
  await expectLogits('phi', ggufFile({ metadata, tensors: apart }));
  await expectLogits('phi', ggufFile({ metadata, tensors: together(apart) }));
});

/** The same with q, k and v of a layer in one tensor. */
function together(apart: Readonly<Record<string, StoredTensor>>): Record<string, StoredTensor> {
  const tensors = { ...apart };
  for (const layer of [0, 1]) {
    for (const kind of ['weight', 'bias']) {
      const names = ['q', 'k', 'v'].map((part) => `blk.${layer}.attn_${part}.${kind}`);
      const parts = names.map((name) => tensors[name]!);
      const { dimensions } = parts[0]!;
      const bytes = Uint8Array.from(parts.flatMap(({ data }) => [...data]));
      tensors[`blk.${layer}.attn_qkv.${kind}`] = floats(new Float32Array(bytes.buffer), [
        ...dimensions.slice(0, -1),
        3 * dimensions.at(-1)!,
      ]);
      for (const name of names) delete tensors[name];
    }
  }
  return tensors;
}

test('gpt2: learned positions, matrices as those of others, a head stored or not: the logits are transformers', async () => {
  const tensors = await converted('gpt2', GPT2);
  for (const [name, tensor] of Object.entries(tensors))
    if (/(attn_(qkv|output)|ffn_\w+)\.weight$/.test(name) && tensor.dimensions.length > 1) tensors[name] = transposed(tensor);
  const metadata = metadataOf('gpt2', {
    ...COMMON,
    embedding_length: u32(32),
    feed_forward_length: u32(96),
    'attention.head_count': u32(2),
  });
  await expectLogits('gpt2', ggufFile({ metadata, tensors }));
  await expectLogits('gpt2', ggufFile({ metadata, tensors: { ...tensors, 'output.weight': tensors['token_embd.weight']! } }));
});

/** A matrix of f32 the other way round. */
function transposed({ dimensions, data }: StoredTensor): StoredTensor {
  const [columns = 1, rows = 1] = dimensions;
  const values = new Float32Array(data.slice().buffer);
  return floats(
    Float32Array.from(values, (_, i) => values[(i % rows) * columns + Math.floor(i / rows)]!),
    [rows, columns],
  );
}
