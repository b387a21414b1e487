/** Gemma 4: what its config.json says in its several spellings, and checkpoints as they are published. The numbers are compared in families.test.ts. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { weightStorage } from '../../engine/config.ts';
import { weightRules } from '../../engine/models/decoder.ts';
import { GEMMA4 } from '../../engine/models/gemma4/gemma4.ts';
import { parseGemma4Config } from '../../engine/models/gemma4/config.ts';
import { hasPages, partOf } from '../../engine/models/layers/stack-config.ts';
import type { Shard } from '../../engine/models/shard.ts';
import { ropeFrequencies } from '../../engine/ops/rope.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { openSafetensors } from '../../engine/weights/safetensors.ts';
import { checkpointBytes } from '../../engine/weights/storage.ts';
import { differing } from '../support/compare.ts';
import { DecoderHarness } from '../support/decoder-harness.ts';
import { testDevice } from '../support/device.ts';
import { safetensorsFile } from '../support/safetensors-file.ts';
import type { Tensors } from '../support/safetensors-file.ts';

const FIXTURE = fileURLToPath(new URL('../fixtures/llama-tiny-random/gemma4', import.meta.url));
const written = JSON.parse(readFileSync(join(FIXTURE, 'config.json'), 'utf8')) as Record<string, unknown>;
// As published: what transformers 5 writes by layer follows from two fields.
const published: Readonly<Record<string, unknown>> = {
  ...written,
  per_layer_config: undefined,
  global_head_dim: 80,
  rope_parameters: undefined,
};
/** google/gemma-4-E2B-it. */
const E2B = {
  model_type: 'gemma4_text', hidden_size: 1536, intermediate_size: 6144, num_hidden_layers: 35, num_attention_heads: 8, num_key_value_heads: 1,
  num_kv_shared_layers: 20, use_double_wide_mlp: true, final_logit_softcapping: 30, num_global_key_value_heads: null,
  layer_types: Array.from({ length: 35 }, (_, i): string => ((i + 1) % 5 === 0 ? 'full_attention' : 'sliding_attention')),
}; // prettier-ignore

describe('config.json', () => {
  test('says the same by layer and by kind of layer', () => {
    expect(parseGemma4Config(published)).toEqual(parseGemma4Config(written));
  });

  test('of E2B: the last twenty layers have no pages and read those of the last of their kind; their MLPs are twice as wide', () => {
    const { kinds = [], layerInputs, logitSoftCap, scores } = parseGemma4Config(E2B);
    expect(kinds.filter(hasPages)).toHaveLength(15);
    expect([...new Set(kinds.map(({ keysOf, window }) => [keysOf, window].join()))]).toEqual([',512', ',', '13,512', '14,']);
    expect([kinds[0], kinds[4], kinds[15]]).toMatchObject([{ kvHeads: 1, headDim: 256 }, { headDim: 512 }, { headDim: 256, intermediate: 12288 }]); // prettier-ignore
    expect({ layerInputs, logitSoftCap, scores }).toMatchObject({ layerInputs: { columns: 256 }, logitSoftCap: 30, scores: { scale: 1 } });
    const { pages } = GEMMA4.parseConfig(E2B);
    expect(pages.map(({ kvHeads, headDim }) => kvHeads * headDim)).toEqual(Array.from({ length: 15 }, (_, i) => (i % 5 === 4 ? 512 : 256)));
  });

  test('of 31B: keys are values where everything is seen, by fewer heads; a quarter of the pairs is rotated, by frequencies of all', () => {
    const { kinds = [] } = parseGemma4Config({ model_type: 'gemma4_text', num_hidden_layers: 6, num_attention_heads: 32, num_key_value_heads: 16, num_global_key_value_heads: 4, attention_k_eq_v: true, hidden_size_per_layer_input: 0, use_bidirectional_attention: 'vision' }); // prettier-ignore
    expect(kinds.map(({ kvHeads, headDim, valuesAreKeys = false }) => [kvHeads, headDim, valuesAreKeys])).toEqual([...Array<unknown>(5).fill([16, 256, false]), [4, 512, true]]); // prettier-ignore
    const frequencies = ropeFrequencies(kinds[5]!.rope);
    expect([...frequencies.subarray(0, 64)]).toEqual(Array.from({ length: 64 }, (_, i) => 1e6 ** (-2 * i / 512))); // prettier-ignore
    expect(frequencies.subarray(64).every((frequency) => frequency === 0)).toBe(true);
  });

  test('of a model whose layers read the keys of others, is not cut in any way', () => {
    const config = parseGemma4Config({ ...E2B, hidden_size_per_layer_input: 0 });
    const cut = (shard: Shard) => () => partOf(config, shard);
    const all = { from: 0, to: 35 };
    expect(cut({ rank: 0, ranks: 1, layers: all })).not.toThrow();
    for (const shard of [{ rank: 0, ranks: 2, layers: all }, { rank: 0, ranks: 1, layers: { from: 0, to: 20 } }]) {
      expect(cut(shard)).toThrow(/layers that read the keys of others cannot be split over several adapters/);
    } // prettier-ignore
  });

  test('has a last layer that sees everything, whatever it says', () => {
    const { kinds = [] } = parseGemma4Config({ ...E2B, num_kv_shared_layers: 0, layer_types: E2B.layer_types.with(34, 'sliding_attention') }); // prettier-ignore
    expect(kinds[34]).toMatchObject({ headDim: 512 });
    expect(kinds[34]!.window).toBeUndefined();
  });

  test.each([
    [{ enable_moe_block: true, num_experts: 8, top_k_experts: 9 }, /num_experts_per_tok is 9 of 8 experts/],
    [{ use_bidirectional_attention: 'all' }, /use_bidirectional_attention is "all", expected null/],
    [{ attention_bias: true }, /attention_bias is true, expected false/],
    [{ num_kv_shared_layers: 35 }, /num_kv_shared_layers is 35 of 35 layers/],
    [{ num_kv_shared_layers: 31 }, /layer 4 reads the keys of a layer with full_attention, of which there is none before layer 4/],
    [{ vocab_size_per_layer_input: 100 }, /vocab_size_per_layer_input is 100, expected 262144/],
    [{ hidden_size_per_layer_input: 6 }, /hidden_size_per_layer_input is 6, expected a multiple of 4/],
    [{ rope_parameters: { full_attention: { rope_type: 'default' } } }, /rope_parameters has no sliding_attention/],
    [{ per_layer_config: { 4: { num_attention_heads: 4 } } }, /per_layer_config has num_attention_heads; known are head_dim and num_key_value_heads/],
    [{ layer_types: E2B.layer_types.with(3, 'chunked_attention') }, /layer_types has "chunked_attention"/],
    [{ hidden_activation: 'silu' }, /hidden_activation is "silu", expected "gelu_pytorch_tanh"/],
  ])('refuses %o', (change, message) => {
    expect(() => GEMMA4.parseConfig({ ...E2B, ...change })).toThrow(message);
  }); // prettier-ignore
});

/** The fixture as published checkpoints are: behind eyes and ears, with keys and values of layers that have none. */
async function writePublished(folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const { model_type, eos_token_id, ...text } = published;
  const wrapped = { model_type: 'gemma4', eos_token_id, text_config: { model_type, ...text }, vision_config: { model_type: 'gemma4_vision' }, audio_config: {} }; // prettier-ignore
  writeFileSync(join(folder, 'config.json'), JSON.stringify(wrapped));
  const tensors: Tensors = {};
  const checkpoint = await openSafetensors(createNodePlatform(), FIXTURE, 'model.safetensors');
  for (const name of checkpoint.names()) {
    const { shape } = checkpoint.tensor(name)!;
    tensors[name.replace('model.', 'model.language_model.')] = { shape, data: await checkpoint.read(name) };
  }
  await checkpoint.close();
  const unused = { shape: [4], data: new Float32Array(4).fill(NaN) };
  for (const layer of [3, 4]) {
    for (const part of ['k_proj', 'v_proj', 'k_norm']) tensors[`model.language_model.layers.${layer}.self_attn.${part}.weight`] = unused;
  }
  for (const name of ['vision_tower.encoder.a', 'audio_tower.b', 'embed_vision.c', 'embed_audio.d'])
    tensors[`model.${name}.weight`] = unused;
  writeFileSync(join(folder, 'model.safetensors'), safetensorsFile(tensors));
}

test('a published checkpoint gives the same bits as its text part alone', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'parley-gemma4-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  await writePublished(folder);
  const device = await testDevice();
  const prompt = [{ sequence: 0, start: 0, tokens: [5, 9, 77, 31, 4, 150, 8, 8, 61, 12, 99, 3, 40] }];
  const [whole, part] = [await DecoderHarness.load(device, folder), await DecoderHarness.load(device, FIXTURE)];
  expect(differing(await whole.step(prompt), await part.step(prompt))).toBe(0);
  device.close();
});

test('the table of the layers has 8 bits, unless weights are asked for in f32', async () => {
  const checkpoint = {
    names: () => ['model.language_model.embed_tokens_per_layer.weight'],
    tensor: () => ({ dtype: 'BF16', shape: [64, 96] }) as const,
    read: async () => new Float32Array(),
    readIds: async () => new Int32Array(),
    close: async () => undefined,
  };
  const bytes = (dtype: 'auto' | 'f32', quantization: 'none' | 'q8_0' | 'q4_0') => checkpointBytes(checkpoint, weightStorage({ dtype, quantization }), weightRules(GEMMA4, {})); // prettier-ignore
  expect(bytes('auto', 'none')).toBe(bytes('auto', 'q8_0'));
  expect(bytes('auto', 'q4_0')).toBe(bytes('auto', 'q8_0'));
  expect(bytes('auto', 'none')).toBeLessThan(64 * 96 * 1.2);
  expect(bytes('f32', 'none')).toBe(64 * 96 * 4);
});
