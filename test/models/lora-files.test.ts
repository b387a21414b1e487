/** Files of LoRA adapters: what is read in more than one form, and what is refused, by name. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { openPeft } from '../../engine/weights/lora/peft.ts';
import { openSafetensors } from '../../engine/weights/safetensors.ts';
import { DecoderHarness } from '../support/decoder-harness.ts';
import { testDevice } from '../support/device.ts';
import { safetensorsFile } from '../support/safetensors-file.ts';
import type { Tensors } from '../support/safetensors-file.ts';

const FIXTURES = join(fileURLToPath(new URL('../..', import.meta.url)), 'test', 'fixtures');
const ADAPTER = join(FIXTURES, 'lora-tiny-random', 'queries-values');
const platform = createNodePlatform();
const Q = 'base_model.model.model.layers.0.self_attn.q_proj';

let device: Device;
let tensors: Tensors;
beforeAll(async () => {
  device = await testDevice();
  const checkpoint = await openSafetensors(platform, ADAPTER, 'adapter_model.safetensors');
  tensors = {};
  for (const name of checkpoint.names()) tensors[name] = { shape: checkpoint.tensor(name)!.shape, data: await checkpoint.read(name) };
  await checkpoint.close();
});
afterAll(() => device.close());

/** An adapter like the fixture, with other fields and tensors; undefined takes one away. */
function changed(fields: Readonly<Record<string, unknown>>, others: Readonly<Record<string, Tensors[string] | undefined>> = {}): string {
  const folder = mkdtempSync(join(tmpdir(), 'lora-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const config = JSON.parse(readFileSync(join(ADAPTER, 'adapter_config.json'), 'utf8')) as object;
  writeFileSync(join(folder, 'adapter_config.json'), JSON.stringify({ ...config, ...fields }));
  const all = Object.entries({ ...tensors, ...others }).flatMap(([name, tensor]) => (tensor ? [[name, tensor] as const] : []));
  writeFileSync(join(folder, 'adapter_model.safetensors'), safetensorsFile(Object.fromEntries(all)));
  return folder;
}

const zeros = (shape: readonly number[]): Tensors[string] => ({ shape, data: new Float32Array(shape.reduce((a, b) => a * b, 1)) });

async function numbersOf(folder: string, module: string) {
  const adapter = await openPeft(platform, { id: 'a', path: folder });
  await adapter.close();
  const { rank, scale } = adapter.modules.get(module)!;
  return { rank, scale };
}

test('ranks and scales are those of the config, by the first pattern that a module matches', async () => {
  const module = 'model.layers.0.self_attn.q_proj';
  expect(await numbersOf(changed({}), module)).toEqual({ rank: 4, scale: 2 });
  expect(await numbersOf(changed({ lora_alpha: 3 }), module)).toEqual({ rank: 4, scale: 0.75 });
  expect(await numbersOf(changed({ use_rslora: true }), module)).toEqual({ rank: 4, scale: 4 });
  expect(await numbersOf(changed({ r: 64, rank_pattern: { 'q_proj|v_proj': 4 } }), module)).toEqual({ rank: 4, scale: 2 });
  expect(await numbersOf(changed({ alpha_pattern: { 'layers.1.self_attn.q_proj': 9, 'q_proj': 12, '.*': 20 } }), module)).toEqual({ rank: 4, scale: 3 }); // prettier-ignore
  // The beginning of a name is no name.
  expect(await numbersOf(changed({ alpha_pattern: { _proj: 9, q: 9 } }), module)).toEqual({ rank: 4, scale: 2 });
});

test('names of tensors may have the name of the adapter in them', async () => {
  const renamed = Object.entries(tensors).flatMap(([name, tensor]) => [[name, undefined], [name.replace('.weight', '.default.weight'), tensor]] as const); // prettier-ignore
  const folder = changed({}, Object.fromEntries(renamed));
  expect(await numbersOf(folder, 'model.layers.1.self_attn.v_proj')).toEqual({ rank: 4, scale: 2 });
});

const load = (path: string, base = 'llama') =>
  DecoderHarness.load(device, join(FIXTURES, 'llama-tiny-random', base), { loras: [{ id: 'mine', path }] });

test.each<{ readonly title: string; readonly make: () => string; readonly message: string; readonly base?: string }>([
  { title: 'DoRA', make: () => changed({ use_dora: true }), message: 'adapter_config.json: use_dora is true, expected false: DoRA adapters are not served' },
  { title: 'LoHa', make: () => changed({ peft_type: 'LOHA' }), message: 'adapter_config.json: peft_type is "LOHA", expected "LORA"' },
  { title: 'biases', make: () => changed({ bias: 'lora_only' }), message: 'adapter_config.json: bias is "lora_only", expected "none": adapters that train biases are not served' },
  { title: 'whole modules', make: () => changed({ modules_to_save: ['lm_head'] }), message: 'adapter_config.json: modules_to_save is ["lm_head"], expected none: an adapter has LoRA matrices only' },
  { title: 'experts', make: () => changed({ target_parameters: ['mlp.experts.gate_up_proj'] }), message: 'adapter_config.json: target_parameters is ["mlp.experts.gate_up_proj"], expected none: an adapter has LoRA matrices only' },
  { title: 'a base that PEFT changes', make: () => changed({ init_lora_weights: 'pissa' }), message: 'adapter_config.json: init_lora_weights is "pissa", expected true' },
  { title: 'no rank', make: () => changed({ r: 0 }), message: 'adapter_config.json: r is 0, expected a positive integer' },
  { title: 'a pattern that is none', make: () => changed({ rank_pattern: { '(': 4 } }), message: 'adapter_config.json: rank_pattern has "(", expected a regular expression' },
  { title: 'embeddings', make: () => changed({}, { 'base_model.model.model.embed_tokens.lora_embedding_A': zeros([4, 160]) }), message: 'adapter_model.safetensors has 1 tensors that are no LoRA matrices of linear layers: base_model.model.model.embed_tokens.lora_embedding_A' },
  { title: 'half of a pair', make: () => changed({}, { [`${Q}.lora_B.weight`]: undefined }), message: 'model.layers.0.self_attn.q_proj has a matrix lora_A without lora_B' },
  { title: 'another rank', make: () => changed({ r: 8 }), message: `tensor ${Q}.lora_A.weight has shape [4, 64], expected [8, inputs]: adapter_config.json gives it rank 8` },
  { title: 'a larger base', make: () => changed({}, { [`${Q}.lora_A.weight`]: zeros([4, 128]) }), message: `tensor ${Q}.lora_A.weight has shape [4, 128], expected [4, 64]: it was made for another model` },
  { title: 'another base', make: () => ADAPTER, base: 'qwen3', message: 'has shape [4, 64], expected [4, 48]: it was made for another model' },
  {
    title: 'the vocabulary head',
    make: () => changed({}, { 'base_model.model.lm_head.lora_A.weight': zeros([4, 64]), 'base_model.model.lm_head.lora_B.weight': zeros([160, 4]) }),
    message: 'of its 5 modules 1 cannot be served in a model of type llama: lm_head; adapters go with the projections of attention and of MLPs without experts',
  },
  {
    title: 'more layers than the base',
    make: () => changed({}, { [`${Q.replace('.0.', '.7.')}.lora_A.weight`]: zeros([4, 64]), [`${Q.replace('.0.', '.7.')}.lora_B.weight`]: zeros([64, 4]) }),
    message: 'of its 5 modules 1 cannot be served in a model of type llama: model.layers.7.self_attn.q_proj',
  },
])('an adapter with $title is refused', async ({ make, base, message }) => {
  const path = make();
  await expect(load(path, base)).rejects.toThrow(`LoRA adapter mine (${path}): `);
  await expect(load(path, base)).rejects.toThrow(message);
}); // prettier-ignore

test.each(['cohere', 'glm', 'gpt2', 'gemma3n', 'qwen3_5', 'deepseek_v2'])('no matrix is taken where projections are not as published: %s', async (base) => {
  await expect(load(ADAPTER, base)).rejects.toThrow(/cannot be served in a model of type|was made for another model/);
}); // prettier-ignore

test('a folder without an adapter is refused with what is missing', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'lora-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  await expect(load(folder)).rejects.toThrow(`file not found: ${join(folder, 'adapter_config.json')}; expected a folder with adapter_config.json and adapter_model.safetensors, as PEFT saves it`); // prettier-ignore
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'adapter_config.json'), '{"peft_type": "LORA"}');
  writeFileSync(join(folder, 'adapter_model.bin'), '');
  await expect(load(folder)).rejects.toThrow(
    'adapter_model.safetensors, which holds adapter_model.bin: save it with safe_serialization=True',
  );
});
