/** Fixtures of test/fixtures/llama-tiny-random as GGUF files, under the names that llama.cpp's converter gives them. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { openSafetensors } from '../../engine/weights/safetensors.ts';
import { expectClose } from './compare.ts';
import { DecoderHarness } from './decoder-harness.ts';
import type { Stored, StoredTensor } from './gguf-file.ts';
import { unlessPassed } from './known-cases.ts';

export const FIXTURES = fileURLToPath(new URL('../fixtures/llama-tiny-random', import.meta.url));
export const platform = createNodePlatform({ log: () => undefined });

export const TOP: Readonly<Record<string, string>> = { 'model.embed_tokens': 'token_embd', 'model.norm': 'output_norm', lm_head: 'output' };

export const PARTS: Readonly<Record<string, string>> = {
  'self_attn.q_proj': 'attn_q',
  'self_attn.k_proj': 'attn_k',
  'self_attn.v_proj': 'attn_v',
  'self_attn.o_proj': 'attn_output',
  'mlp.gate_proj': 'ffn_gate',
  'mlp.up_proj': 'ffn_up',
  'mlp.down_proj': 'ffn_down',
};

export const LLAMA = { input_layernorm: 'attn_norm', post_attention_layernorm: 'ffn_norm' };

export const u32 = (value: number): Stored => ({ type: 'u32', value });
export const f32 = (value: number): Stored => ({ type: 'f32', value });
export const i32s = (...value: readonly number[]): Stored => ({ type: 'i32s', value });

export const floats = (values: Float32Array, dimensions: readonly number[]): StoredTensor => ({ dimensions, type: 0, data: new Uint8Array(values.buffer, values.byteOffset, values.byteLength) }); // prettier-ignore

/** Rows of a head with the channels of a pair beside each other, as llama.cpp's rotation of Llama wants them (conversion/llama.py, permute). */
export function paired(values: Float32Array, columns: number, headDim: number): Float32Array {
  const out = new Float32Array(values.length);
  for (let row = 0; row < values.length / columns; row++) {
    const d = row % headDim;
    const to = row - d + (d < headDim / 2 ? 2 * d : 2 * d - headDim + 1);
    out.set(values.subarray(row * columns, (row + 1) * columns), to * columns);
  }
  return out;
}

export interface Naming {
  readonly top: Readonly<Record<string, string>>;
  /** Names of a layer's tensors without `.weight`; of an expert without its number. */
  readonly parts: Readonly<Record<string, string>>;
  readonly value?: (own: string, values: Float32Array) => Float32Array;
}

/** A fixture's tensors as a converter writes them, the experts of a layer as one tensor each part. */
export async function converted(
  fixture: string,
  { top, parts, value = (_, values) => values }: Naming,
): Promise<Record<string, StoredTensor>> {
  const tensors: Record<string, StoredTensor> = {};
  const experts = new Map<string, { readonly shape: readonly number[]; readonly all: Float32Array[] }>();
  const checkpoint = await openSafetensors(platform, join(FIXTURES, fixture), 'model.safetensors');
  for (const stored of checkpoint.names()) {
    const [, layer, part = ''] = /^(?:model|backbone|gpt_neox|transformer)\.(?:layers|h)\.(\d+)\.(.*?)(?:\.weight)?$/.exec(stored) ?? [];
    const [, expert, ofExpert] = /experts\.(\d+)\.(\w+)$/.exec(part) ?? [];
    const own = layer === undefined ? top[stored.replace('.weight', '')]! : parts[ofExpert ?? part]!;
    const name = `${layer === undefined ? '' : `blk.${layer}.`}${/\.(bias|scale)$|^ssm_[ad]$/.test(own) ? own : `${own}.weight`}`;
    const shape = checkpoint
      .tensor(stored)!
      .shape.filter((size, i, all) => !(size === 1 && all.length === 3) && !(size === 1 && i === 0 && all.length > 1));
    const values = value(own, await checkpoint.read(stored));
    if (expert === undefined) tensors[name] = floats(values, shape.toReversed());
    else if (experts.has(name)) experts.get(name)!.all[Number(expert)] = values;
    else experts.set(name, { shape, all: Object.assign([], { [Number(expert)]: values }) });
  }
  await checkpoint.close();
  for (const [name, { shape, all }] of experts)
    tensors[name] = floats(Float32Array.from(all.flatMap((values) => [...values])), [...shape.toReversed(), all.length]);
  return tensors;
}

/** Tensors of Mamba 2 layers in the shapes that the converter gives them (conversion/mamba.py). */
export function mambaShaped(tensors: Readonly<Record<string, StoredTensor>>, groups: number): Record<string, StoredTensor> {
  const shaped = Object.entries(tensors).map(([name, tensor]) => {
    const [size = 0] = tensor.dimensions;
    if (/\.ssm_[ad]$/.test(name)) return [name, { ...tensor, dimensions: [1, size] }] as const;
    return [name, name.endsWith('ssm_norm.weight') ? { ...tensor, dimensions: [size / groups, groups] } : tensor] as const;
  });
  return Object.fromEntries(shaped);
}

export function metadataOf(architecture: string, settings: Readonly<Record<string, Stored>>): Record<string, Stored> {
  const own = Object.entries(settings).map(([key, value]) => [`${architecture}.${key}`, value] as const);
  return { 'general.architecture': { type: 'string', value: architecture }, ...Object.fromEntries(own) };
}

/** That a file gives the logits that transformers has of a fixture. */
export async function expectFixtureLogits(device: Device, name: string, file: Uint8Array): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'parley-gguf-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, `${name}.gguf`);
  writeFileSync(path, file);
  const { prompt } = JSON.parse(readFileSync(join(FIXTURES, name, 'golden.json'), 'utf8')) as { prompt: number[] };
  const golden = await openSafetensors(platform, join(FIXTURES, name), 'golden.safetensors');
  const logits = await golden.read('logits');
  await golden.close();
  await unlessPassed(
    device,
    { expected: [logits] },
    async (on) => (await DecoderHarness.load(on, path)).step([{ sequence: 0, start: 0, tokens: prompt }]),
    (rows) => expectClose(name, Float32Array.from(rows.flatMap((row) => [...row])), logits, 1e-6),
  );
  expect(device.errors).toEqual([]);
}
