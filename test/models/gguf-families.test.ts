/** Families that no file of llama.cpp's own stands for here: tiny checkpoints of transformers, under the names that its converter gives them (conversion/phi.py, olmo.py). */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { openSafetensors } from '../../engine/weights/safetensors.ts';
import { expectClose } from '../support/compare.ts';
import { DecoderHarness } from '../support/decoder-harness.ts';
import { testDevice } from '../support/device.ts';
import { ggufFile } from '../support/gguf-file.ts';
import type { Stored, StoredTensor } from '../support/gguf-file.ts';

const FIXTURES = fileURLToPath(new URL('../fixtures/llama-tiny-random', import.meta.url));
const platform = createNodePlatform({ log: () => undefined });

const TOP: Readonly<Record<string, string>> = { 'model.embed_tokens': 'token_embd', 'model.norm': 'output_norm', lm_head: 'output' };
const PARTS: Readonly<Record<string, string>> = {
  'self_attn.q_proj': 'attn_q',
  'self_attn.k_proj': 'attn_k',
  'self_attn.v_proj': 'attn_v',
  'self_attn.o_proj': 'attn_output',
  'mlp.gate_proj': 'ffn_gate',
  'mlp.up_proj': 'ffn_up',
  'mlp.down_proj': 'ffn_down',
};
const PHI3 = {
  input_layernorm: 'attn_norm',
  post_attention_layernorm: 'ffn_norm',
  'self_attn.qkv_proj': 'attn_qkv',
  'mlp.gate_up_proj': 'ffn_up',
};
const OLMO = {
  post_attention_layernorm: 'post_attention_norm',
  post_feedforward_layernorm: 'post_ffw_norm',
  'self_attn.q_norm': 'attn_q_norm',
  'self_attn.k_norm': 'attn_k_norm',
};

let device: Device;
beforeAll(async () => {
  device = await testDevice();
});
afterAll(() => device.close());

const u32 = (value: number): Stored => ({ type: 'u32', value });
const f32 = (value: number): Stored => ({ type: 'f32', value });
const floats = (values: Float32Array, dimensions: readonly number[]): StoredTensor => ({ dimensions, type: 0, data: new Uint8Array(values.buffer, values.byteOffset, values.byteLength) }); // prettier-ignore

interface Config extends Readonly<Record<string, number>> {}
interface Rope {
  readonly rope_theta: number;
  readonly short_factor?: readonly number[];
  readonly long_factor?: readonly number[];
}

test.each([
  ['phi3', 'phi3', PHI3, { 'rope.dimension_count': u32(10), 'rope.scaling.attn_factor': f32(Math.sqrt(1 + Math.log(4) / Math.log(512))) }],
  ['phi3-long', 'phi3', PHI3, { 'rope.scaling.attn_factor': f32(Math.sqrt(1 + Math.log(16) / Math.log(32))) }],
  ['olmo2', 'olmo2', OLMO, {}],
])('%s: the logits are transformers', async (name, architecture, own, more) => {
  const source = join(FIXTURES, name);
  const config = JSON.parse(readFileSync(join(source, 'config.json'), 'utf8')) as Config & { readonly rope_parameters: Rope };
  const { rope_theta, short_factor, long_factor } = config.rope_parameters;
  const settings: Record<string, Stored> = {
    block_count: u32(config['num_hidden_layers']!),
    context_length: u32(config['max_position_embeddings']!),
    embedding_length: u32(config['hidden_size']!),
    feed_forward_length: u32(config['intermediate_size']!),
    'attention.head_count': u32(config['num_attention_heads']!),
    'attention.head_count_kv': u32(config['num_key_value_heads']!),
    'attention.layer_norm_rms_epsilon': f32(config['rms_norm_eps']!),
    'attention.sliding_window': u32(config['sliding_window'] ?? 0),
    'rope.freq_base': f32(rope_theta),
    'rope.scaling.original_context_length': u32(config['original_max_position_embeddings'] ?? 512),
    ...more,
  };
  const metadata: Record<string, Stored> = { 'general.architecture': { type: 'string', value: architecture } };
  for (const [key, value] of Object.entries(settings)) metadata[`${architecture}.${key}`] = value;
  const tensors: Record<string, StoredTensor> = {};
  const checkpoint = await openSafetensors(platform, source, 'model.safetensors');
  for (const stored of checkpoint.names()) {
    const [, layer, part] = /^model\.layers\.(\d+)\.(.*)\.weight$/.exec(stored) ?? [];
    const given =
      layer === undefined ? TOP[stored.replace('.weight', '')] : `blk.${layer}.${({ ...PARTS, ...own } as typeof PARTS)[part!]}`;
    tensors[`${given}.weight`] = floats(await checkpoint.read(stored), checkpoint.tensor(stored)!.shape.toReversed());
  }
  await checkpoint.close();
  for (const [length, factors] of Object.entries({ short: short_factor, long: long_factor })) {
    if (factors) tensors[`rope_factors_${length}.weight`] = floats(Float32Array.from(factors), [factors.length]);
  }

  const folder = mkdtempSync(join(tmpdir(), 'parley-gguf-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, `${name}.gguf`);
  writeFileSync(file, ggufFile({ metadata, tensors }));
  const { prompt } = JSON.parse(readFileSync(join(source, 'golden.json'), 'utf8')) as { prompt: number[] };
  const golden = await openSafetensors(platform, source, 'golden.safetensors');
  const harness = await DecoderHarness.load(device, file);
  const rows = await harness.step([{ sequence: 0, start: 0, tokens: prompt }]);
  expectClose(name, Float32Array.from(rows.flatMap((row) => [...row])), await golden.read('logits'), 1e-6);
  await golden.close();
  expect(device.errors).toEqual([]);
});
