/** GPT-2, GPT-NeoX, OPT and Phi: what their tiny checkpoints (families.test.ts) do not have. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import type { DecoderStackConfig } from '../../engine/models/layers/stack-config.ts';
import { decoderFor } from '../../engine/models/registry.ts';
import type { Json } from '../../engine/util/json.ts';
import { openSafetensors } from '../../engine/weights/safetensors.ts';
import { differing } from '../support/compare.ts';
import { DecoderHarness } from '../support/decoder-harness.ts';
import { testDevice } from '../support/device.ts';
import { FIXTURES, platform } from '../support/gguf-fixtures.ts';
import { safetensorsFile } from '../support/safetensors-file.ts';
import type { Tensors } from '../support/safetensors-file.ts';

let device: Device;
beforeAll(async () => {
  device = await testDevice();
});
afterAll(() => device.close());

const configOf = (name: string): Json => JSON.parse(readFileSync(join(FIXTURES, name, 'config.json'), 'utf8')) as Json;
const parsed = (config: Json): DecoderStackConfig => decoderFor(config).parseConfig(config) as unknown as DecoderStackConfig;

/** Logits of a fixture's prompt, of its tensors and others beside them, or under other names. */
async function logitsOf(name: string, change: (tensors: Tensors) => Tensors): Promise<readonly Float32Array[]> {
  const folder = mkdtempSync(join(tmpdir(), 'parley-gpt-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  cpSync(join(FIXTURES, name), folder, { recursive: true });
  const checkpoint = await openSafetensors(platform, folder, 'model.safetensors');
  const tensors: Tensors = {};
  for (const stored of checkpoint.names())
    tensors[stored] = { shape: checkpoint.tensor(stored)!.shape, data: await checkpoint.read(stored) };
  await checkpoint.close();
  writeFileSync(join(folder, 'model.safetensors'), safetensorsFile(change(tensors)));
  const { prompt } = JSON.parse(readFileSync(join(folder, 'golden.json'), 'utf8')) as { prompt: number[] };
  const harness = await DecoderHarness.load(device, folder);
  return harness.step([{ sequence: 0, start: 0, tokens: prompt }]);
}

const ones = (...shape: readonly number[]) => ({ shape, data: new Float32Array(shape.reduce((a, b) => a * b, 1)).fill(1) });

test('gpt_neox: the masks and frequencies of old checkpoints change nothing', async () => {
  const at = 'gpt_neox.layers.1.attention';
  const old = { [`${at}.bias`]: ones(1, 1, 8, 8), [`${at}.masked_bias`]: ones(1), [`${at}.rotary_emb.inv_freq`]: ones(2) };
  const plain = await logitsOf('gpt_neox', (tensors) => tensors);
  expect(differing(await logitsOf('gpt_neox', (tensors) => ({ ...tensors, ...old })), plain)).toBe(0);
});

test('gpt2: a checkpoint without the first part of names, with masks, is the same', async () => {
  const plain = await logitsOf('gpt2', (tensors) => tensors);
  const bare = (tensors: Tensors): Tensors => ({
    ...Object.fromEntries(Object.entries(tensors).map(([name, tensor]) => [name.replace('transformer.', ''), tensor])),
    'h.0.attn.bias': ones(1, 1, 8, 8),
  });
  expect(differing(await logitsOf('gpt2', bare), plain)).toBe(0);
});

test.each([
  ['gpt_neox', 'hidden_act', 'gelu'],
  ['gpt2', 'activation_function', 'gelu_tanh'],
  ['opt', 'activation_function', 'relu'],
  ['phi', 'hidden_act', 'gelu_tanh'],
])('%s: the file chooses the activation', (name, field, usual) => {
  const config = configOf(name);
  const { [field]: _, ...without } = config;
  const found = ['gelu', 'gelu_new', 'gelu_fast', 'relu'].map((act) => parsed({ ...config, [field]: act }).activation);
  expect(found).toEqual(['gelu', 'gelu_tanh', 'gelu_tanh', 'relu']);
  expect(parsed(without).activation).toBe(usual);
  expect(() => parsed({ ...config, [field]: 'silu' })).toThrow(new RegExp(`${field} is "silu", expected`));
});

test.each([
  ['gpt_neox', { rope_theta: 7000 }, /rope_theta is 7000, expected 10000/],
  ['gpt_neox', { partial_rotary_factor: 0.5 }, /partial_rotary_factor is 0.5, expected 0.25/],
  ['phi', { qk_layernorm: true }, /qk_layernorm is true, expected false/],
  ['gpt2', { scale_attn_by_inverse_layer_idx: true }, /scale_attn_by_inverse_layer_idx is true, expected false/],
  ['gpt2', { add_cross_attention: true }, /add_cross_attention is true, expected false/],
  ['opt', { do_layer_norm_before: false }, /do_layer_norm_before is false, expected true/],
  ['opt', { word_embed_proj_dim: 16 }, /word_embed_proj_dim is 16, expected 32/],
  ['opt', { layer_norm_elementwise_affine: false }, /layer_norm_elementwise_affine is false, expected true/],
])('%s with %o is refused', (name, change, why) => {
  expect(() => parsed({ ...configOf(name), ...change })).toThrow(why);
});
