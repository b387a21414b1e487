/** LoRA adapters in GGUF files, as llama.cpp's converter writes them: the same model as with PEFT's files, and what is refused, by name. */
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import type { LoraAdapter } from '../../engine/weights/lora/lora-adapter.ts';
import { openLora } from '../../engine/weights/lora/open-lora.ts';
import { differing } from '../support/compare.ts';
import { DecoderHarness } from '../support/decoder-harness.ts';
import { testDevice } from '../support/device.ts';
import { ggufFile } from '../support/gguf-file.ts';
import type { Stored, StoredTensor } from '../support/gguf-file.ts';
import { roundToF16 } from '../support/kernel-case.ts';

const FIXTURES = join(fileURLToPath(new URL('../..', import.meta.url)), 'test', 'fixtures');
const platform = createNodePlatform();
const base = (name: string): string => join(FIXTURES, 'llama-tiny-random', name);
const peft = (name: string) => ({ id: 'mine', path: join(FIXTURES, 'lora-tiny-random', name) });
const gguf = (name: string) => ({ id: 'mine', path: join(FIXTURES, 'lora-gguf', `${name}.gguf`) });
const PROMPT = [[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4]];

let device: Device;
beforeAll(async () => {
  device = await testDevice();
});
afterAll(() => device.close());

/** Logits of a prompt by the base model with an adapter. */
async function logitsWith(of: string, source: { readonly id: string; readonly path: string }): Promise<Float32Array[]> {
  const harness = await DecoderHarness.load(device, base(of), { loras: [source] });
  return harness.step([{ sequence: 0, start: 0, tokens: PROMPT[0]!, lora: 1 }]);
}

// Of Llama, llama.cpp permutes the rows of queries and keys; Phi-3 stacks its projections.
test.each([
  ['queries-values', 'llama'],
  ['one-layer', 'llama'],
  ['qwen3', 'qwen3'],
  ['phi3', 'phi3'],
])('%s: logits have the bits that they have with the files of PEFT', async (name, of) => {
  expect(differing(await logitsWith(of, gguf(`${name}-F32`)), await logitsWith(of, peft(name)))).toBe(0);
});

/** All values of an adapter, by tensor. */
async function valuesOf(name: string): Promise<ReadonlyMap<string, Float32Array>> {
  const adapter = await openLora(platform, gguf(name), LLAMA);
  const found = new Map<string, Float32Array>();
  for (const { a, b } of adapter.modules.values()) for (const tensor of [a, b]) found.set(tensor.name, await adapter.read(tensor));
  await adapter.close();
  return found;
}

test('matrices in F16 and Q8_0 are those in F32, rounded', async () => {
  const [exact, halves, bytes] = [await valuesOf('queries-values-F32'), await valuesOf('queries-values-F16'), await valuesOf('queries-values-Q8_0')]; // prettier-ignore
  expect([...halves.keys()]).toEqual([...exact.keys()]);
  for (const [name, values] of exact) {
    expect(halves.get(name), name).toEqual(roundToF16(values));
    // A block of 32 has its largest value as 127 times a scale in F16, which is rounded as well; columns of B are too few for blocks, and stay in F32 or F16.
    const largest = (i: number): number => Math.max(...values.subarray(i - (i % 32), i - (i % 32) + 32).map(Math.abs));
    const far = bytes.get(name)!.findIndex((value, i) => !(Math.abs(value - values[i]!) <= (largest(i) / 127) * (0.5 + 127 / 2048)));
    expect(far, name).toBe(-1);
  }
  expect(bytes).not.toEqual(exact);
});

test('a folder with one GGUF file is that file', async () => {
  const folder = emptyFolder();
  copyFileSync(gguf('one-layer-F32').path, join(folder, 'adapter-f32.gguf'));
  expect([...(await opened(folder)).modules.keys()]).toEqual([...(await opened(gguf('one-layer-F32').path)).modules.keys()]);
});

function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'lora-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

const LLAMA = { model_type: 'llama', num_attention_heads: 4, num_key_value_heads: 2 };

async function opened(path: string, config: Readonly<Record<string, unknown>> = LLAMA): Promise<LoraAdapter> {
  const adapter = await openLora(platform, { id: 'mine', path }, config);
  await adapter.close();
  return adapter;
}

const text = (value: string): Stored => ({ type: 'string', value });
const METADATA = {
  'general.type': text('adapter'),
  'general.architecture': text('llama'),
  'adapter.type': text('lora'),
  'adapter.lora.alpha': { type: 'f32', value: 8 },
} as const satisfies Readonly<Record<string, Stored>>;

/** A matrix [rows, columns] of f32 values. */
const matrix = (rows: number, columns: number): StoredTensor => ({
  dimensions: [columns, rows],
  type: 0,
  data: new Uint8Array(new Float32Array(rows * columns).fill(1).buffer),
});
const Q = 'blk.0.attn_q.weight';
const PAIR = { [`${Q}.lora_a`]: matrix(4, 64), [`${Q}.lora_b`]: matrix(64, 4) };

/** A file like those of the converter, with other metadata and tensors; undefined takes one away. */
function written(
  metadata: Readonly<Record<string, Stored | undefined>> = {},
  tensors: Readonly<Record<string, StoredTensor | undefined>> = {},
): string {
  const path = join(emptyFolder(), 'adapter.gguf');
  const there = <T>(all: Readonly<Record<string, T | undefined>>) => Object.fromEntries(Object.entries(all).flatMap(([key, value]) => (value ? [[key, value] as const] : []))); // prettier-ignore
  writeFileSync(path, ggufFile({ metadata: there({ ...METADATA, ...metadata }), tensors: there({ ...PAIR, ...tensors }) }));
  return path;
}

test('the scale is that of llama.cpp, which without an alpha has none', async () => {
  const scale = async (path: string) => (await opened(path)).modules.get('model.layers.0.self_attn.q_proj')?.scale;
  expect(await scale(written())).toBe(2);
  expect(await scale(written({ 'adapter.lora.alpha': { type: 'f32', value: 0 } }))).toBe(1);
  expect(await scale(written({ 'adapter.lora.alpha': undefined }))).toBe(1);
});

test('the base may be any type of model that files of the architecture have', async () => {
  expect((await opened(written(), { ...LLAMA, model_type: 'mistral' })).modules.size).toBe(1);
  const inside = { model_type: 'gemma3', text_config: { num_attention_heads: 4, num_key_value_heads: 2 } };
  expect((await opened(written({ 'general.architecture': text('gemma3') }), inside)).modules.size).toBe(1);
});

test.each([
  { title: 'a model', make: () => written({ 'general.type': text('model') }), message: 'general.type is "model", expected "adapter": it is a model' },
  { title: 'a file that does not say what it is', make: () => written({ 'general.type': undefined }), message: 'general.type is missing, expected "adapter": it is a model' },
  { title: 'a control vector', make: () => written({ 'adapter.type': text('control_vector') }), message: 'adapter.type is "control_vector", expected "lora"' },
  { title: 'activated LoRA', make: () => written({ 'adapter.alora.invocation_tokens': { type: 'i32s', value: [1] } }), message: 'activated LoRA (aLoRA) is not served' },
  { title: 'another architecture', make: () => written({ 'general.architecture': text('qwen3') }), message: 'its architecture is "qwen3" (qwen3), and the base model is of type llama: it was made for another model' },
  { title: 'an architecture that is not known', make: () => written({ 'general.architecture': text('mamba9') }), message: 'its architecture is "mamba9", whose tensors are not known' },
  { title: 'half of a pair', make: () => written({}, { [`${Q}.lora_b`]: undefined }), message: `${Q} has a matrix lora_a without lora_b` },
  { title: 'ranks that differ', make: () => written({}, { [`${Q}.lora_b`]: matrix(64, 5) }), message: `tensor ${Q}.lora_b has shape [64, 5], expected [outputs, 4]: ${Q}.lora_a has [4, 64]` },
  { title: 'a tensor of the model', make: () => written({}, { [Q]: matrix(64, 64) }), message: `it has 1 tensors that are no LoRA matrices of linear layers: ${Q}` },
  { title: 'heads of another model', make: () => written({}, { [`${Q}.lora_b`]: matrix(66, 4) }), message: `tensor ${Q} has shape [66, 4], expected rows for 4 heads of an even size` },
])('$title is refused', async ({ make, message }) => {
  const path = make();
  await expect(opened(path)).rejects.toThrow(`LoRA adapter mine (${path}): `);
  await expect(opened(path)).rejects.toThrow(message);
}); // prettier-ignore

test.each([
  { title: 'a base of another size', make: () => written({}, { [`${Q}.lora_a`]: matrix(4, 128) }), message: `tensor ${Q}.lora_a has shape [4, 128], expected [4, 64]: it was made for another model` },
  { title: 'experts', make: () => written({}, { 'blk.0.ffn_up_exps.weight.lora_a': matrix(4, 64), 'blk.0.ffn_up_exps.weight.lora_b': matrix(64, 4) }), message: 'of its 2 modules 1 cannot be served in a model of type llama: model.layers.0.mlp.experts.up_proj' },
  { title: 'a tensor that no model has', make: () => written({}, { 'blk.0.odd.weight.lora_a': matrix(4, 64), 'blk.0.odd.weight.lora_b': matrix(64, 4) }), message: 'of its 2 modules 1 cannot be served in a model of type llama: blk.0.odd' },
])('$title is refused by the model', async ({ make, message }) => {
  const path = make();
  await expect(logitsWith('llama', { id: 'mine', path })).rejects.toThrow(message);
}); // prettier-ignore
