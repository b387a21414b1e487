/** What is gpt-oss's own: experts in MXFP4, from safetensors and GGUF, and fields that are refused. The numbers are in families.test.ts. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { floatStorage } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { parseGptOssConfig } from '../../engine/models/gpt-oss/config.ts';
import { decoderFor } from '../../engine/models/registry.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import type { Json } from '../../engine/util/json.ts';
import { product } from '../../engine/util/math.ts';
import type { Checkpoint } from '../../engine/weights/checkpoint.ts';
import { openSafetensors } from '../../engine/weights/safetensors.ts';
import { checkpointBytes, matrixBytes } from '../../engine/weights/storage.ts';
import { expectClose } from '../support/compare.ts';
import { DecoderHarness } from '../support/decoder-harness.ts';
import { testDevice } from '../support/device.ts';
import { ggufFile } from '../support/gguf-file.ts';
import type { StoredTensor } from '../support/gguf-file.ts';
import { unlessPassed } from '../support/known-cases.ts';
import { f32, text, u32 } from '../support/tiny-gguf.ts';

const FIXTURE = fileURLToPath(new URL('../fixtures/llama-tiny-random/gpt_oss-mxfp4', import.meta.url));
const { prompt } = JSON.parse(readFileSync(join(FIXTURE, 'golden.json'), 'utf8')) as { prompt: number[] };
const STEP = [{ sequence: 0, start: 0, tokens: prompt }];
const BLOCKS = { float: 'f32', keepBlocks: true, quantization: 'none' } as const;
const GGML = { F32: 0, MXFP4: 39 } as const;
const [EXPERTS, HIDDEN, COLUMNS] = [4, 64, 32];

const platform = createNodePlatform({ log: () => undefined });
let device: Device;
beforeAll(async () => {
  device = await testDevice();
});
afterAll(() => device.close());

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'parley-gpt-oss-'));
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
}

test('positions are scaled as is usual where a file says nothing of it, or null', () => {
  const { rope_parameters: _, ...config } = JSON.parse(readFileSync(join(FIXTURE, 'config.json'), 'utf8')) as Json;
  const ropeOf = (more: Json): unknown => parseGptOssConfig({ ...config, ...more }).rope;
  expect(ropeOf({})).toMatchObject({ theta: 150_000, scaling: { kind: 'yarn', factor: 32, originalContext: 4096, truncate: false } });
  for (const field of ['rope_scaling', 'rope_parameters']) expect(ropeOf({ [field]: null })).toEqual(ropeOf({}));
  expect(ropeOf({ rope_scaling: { rope_type: 'linear', factor: 2 } })).toMatchObject({ scaling: { kind: 'linear', factor: 2 } });
});

test('experts stay in the blocks of the file, and give the bits that their values give', async () => {
  // Of two layers of experts.
  const saved = (rows: number, width: number): number => matrixBytes('f32', rows, width) - matrixBytes('MXFP4', rows, width);
  const least = 2 * (saved(EXPERTS * 2 * COLUMNS, HIDDEN) + saved(EXPERTS * HIDDEN, COLUMNS));
  await unlessPassed(
    device,
    { expected: [] },
    async (on) => {
      const [unpacked, packed] = [await DecoderHarness.load(on, FIXTURE), await DecoderHarness.load(on, FIXTURE, { storage: BLOCKS })];
      expect(unpacked.weightBytes - packed.weightBytes).toBeGreaterThanOrEqual(least);
      return [await packed.step(STEP), await unpacked.step(STEP)];
    },
    ([packed, unpacked]) => expect(packed).toEqual(unpacked),
  );
  const weights = await openSafetensors(platform, FIXTURE);
  expect(checkpointBytes(weights, floatStorage('f32')) - checkpointBytes(weights, BLOCKS)).toBe(least);
  await weights.close();
  expect(device.errors).toEqual([]);
});

test('any part of an MXFP4 tensor is that of the whole', async () => {
  const weights = await openSafetensors(platform, FIXTURE);
  const name = 'model.layers.0.mlp.experts.down_proj';
  expect(weights.tensor(name)).toMatchObject({ shape: [EXPERTS, HIDDEN, COLUMNS], blocks: 'MXFP4' });
  const whole = await weights.read(name);
  for (const part of [
    { from: 0, to: 1 },
    { from: 31, to: 33 },
    { from: 100, to: 333 },
    { from: whole.length - 3, to: whole.length },
  ])
    // prettier-ignore
    expect(await weights.read(name, part)).toEqual(whole.subarray(part.from, part.to));
  expect([...(await weights.blocks!(name, { from: 3, to: 5 }))]).toEqual([
    ...(await weights.blocks!(name, { from: 0, to: 9 })).subarray(3 * 17, 5 * 17),
  ]);
  await weights.close();
});

test('experts in floats lie with their columns first, and any part of them is that of the whole', async () => {
  const { withRowsFirst } = await import('../../engine/models/gpt-oss/rows-first.ts');
  const stored = await openSafetensors(platform, FIXTURE.replace('-mxfp4', ''));
  const turned = withRowsFirst(stored);
  const name = 'model.layers.1.mlp.experts.gate_up_proj';
  const [experts, columns, rows] = stored.tensor(name)!.shape as [number, number, number];
  expect(turned.tensor(name)!.shape).toEqual([experts, rows, columns]);
  const [source, whole] = [await stored.read(name), await turned.read(name)];
  const at = (expert: number, row: number, column: number): number => source[(expert * columns + column) * rows + row]!;
  const expected = whole.map((_, i) => at(Math.floor(i / (rows * columns)), Math.floor(i / columns) % rows, i % columns));
  expect(whole).toEqual(expected);
  for (const part of [
    { from: 0, to: 7 },
    { from: 41, to: 3 * rows * columns + 5 },
  ])
    // prettier-ignore
    expect(await turned.read(name, part)).toEqual(whole.subarray(part.from, part.to));
  await stored.close();
});

test('blocks without scales, or with some that do not fit, are refused by name', async () => {
  const copy = folder();
  cpSync(FIXTURE, copy, { recursive: true });
  const path = join(copy, 'model.safetensors');
  const bytes = readFileSync(path);
  const change = (from: string, to: string): void => {
    const changed = Buffer.from(bytes);
    changed.write(to, bytes.indexOf(from), 'latin1');
    writeFileSync(path, changed);
  };
  change('layers.0.mlp.experts.down_proj_scales', 'layers.0.mlp.experts.down_proj_skales');
  await expect(openSafetensors(platform, copy)).rejects.toThrow(/tensor model\.layers\.0\.mlp\.experts\.down_proj_blocks is U8 \[4, 64, 1, 16\], and .*down_proj_scales is missing beside it/); // prettier-ignore
  change('[4,64,1,16]', '[4,32,2,16]');
  await expect(openSafetensors(platform, copy)).rejects.toThrow(/_scales beside it is U8 \[4, 64, 1\]; expected blocks of 16 bytes and a U8 scale of each/); // prettier-ignore
});

/** Names of a layer's tensors in GGUF (llama.cpp: gguf-py/gguf/constants.py). */
const NAMES: Readonly<Record<string, string>> = {
  input_layernorm: 'attn_norm', post_attention_layernorm: 'post_attention_norm', 'self_attn.q_proj': 'attn_q', 'self_attn.k_proj': 'attn_k',
  'self_attn.v_proj': 'attn_v', 'self_attn.o_proj': 'attn_output', 'mlp.router': 'ffn_gate_inp',
}; // prettier-ignore

/** The fixture as llama.cpp's converter writes it (conversion/gpt_oss.py): gates and ups apart. */
async function asGguf(): Promise<Uint8Array> {
  const tensors: Record<string, StoredTensor> = {};
  const stored = (data: Uint8Array, shape: readonly number[], type: number): StoredTensor => ({
    dimensions: shape.toReversed(),
    type,
    data,
  });
  const floats = (values: Float32Array, shape: readonly number[]) => stored(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), shape, GGML.F32); // prettier-ignore
  const weights = await openSafetensors(platform, FIXTURE);
  for (const name of weights.names()) {
    const { shape } = weights.tensor(name)!;
    const [, layer, part = '', kind = ''] = /^model\.layers\.(\d+)\.(.*?)(?:\.(weight|bias))?$/.exec(name) ?? [];
    const top: Readonly<Record<string, string>> = { 'model.embed_tokens.weight': 'token_embd.weight', 'model.norm.weight': 'output_norm.weight', 'lm_head.weight': 'output.weight' }; // prettier-ignore
    const at = `blk.${layer}`;
    if (layer === undefined) tensors[top[name]!] = floats(await weights.read(name), shape);
    else if (part === 'self_attn.sinks') tensors[`${at}.attn_sinks.weight`] = floats(await weights.read(name), shape);
    else if (!part.startsWith('mlp.experts')) tensors[`${at}.${NAMES[part]}.${kind}`] = floats(await weights.read(name), shape);
    else await addExperts(weights, name, part, (own, tensor) => (tensors[`${at}.${own}`] = tensor), stored, floats);
  }
  await weights.close();
  const settings = {
    block_count: u32(2), context_length: u32(512), embedding_length: u32(HIDDEN), feed_forward_length: u32(COLUMNS),
    'attention.head_count': u32(4), 'attention.head_count_kv': u32(2), 'attention.key_length': u32(24), 'attention.value_length': u32(24),
    'attention.layer_norm_rms_epsilon': f32(1e-5), 'attention.sliding_window': u32(12), expert_count: u32(EXPERTS), expert_used_count: u32(3),
    expert_feed_forward_length: u32(COLUMNS), 'rope.freq_base': f32(150000), 'rope.scaling.type': text('yarn'), 'rope.scaling.factor': f32(4),
    'rope.scaling.original_context_length': u32(16), 'rope.scaling.yarn_beta_fast': f32(32), 'rope.scaling.yarn_beta_slow': f32(1),
  }; // prettier-ignore
  const own = Object.entries(settings).map(([key, value]) => [`gpt-oss.${key}`, value] as const);
  return ggufFile({ metadata: { 'general.architecture': text('gpt-oss'), ...Object.fromEntries(own) }, tensors });
}

async function addExperts(
  weights: Checkpoint,
  name: string,
  part: string,
  add: (own: string, tensor: StoredTensor) => void,
  stored: (data: Uint8Array, shape: readonly number[], type: number) => StoredTensor,
  floats: (values: Float32Array, shape: readonly number[]) => StoredTensor,
): Promise<void> {
  const { shape, blocks } = weights.tensor(name)!;
  const isBias = part.endsWith('_bias');
  const rows = isBias ? product(shape) : shape[0]! * shape[1]!;
  const bytes = blocks ? await weights.blocks!(name, { from: 0, to: rows }) : new Uint8Array((await weights.read(name)).buffer);
  const width = bytes.length / rows;
  const rowsOf = (from: number, step: number): Uint8Array => {
    const out = new Uint8Array((rows / step) * width);
    for (let row = 0; row * step < rows; row++)
      out.set(bytes.subarray((row * step + from) * width, (row * step + from + 1) * width), row * width);
    return out;
  };
  const kind = isBias ? 'bias' : 'weight';
  const tensor = (data: Uint8Array, step: number): StoredTensor => {
    const own = shape.map((size, i) => (i === 1 ? size / step : size));
    return blocks ? stored(data, own, GGML.MXFP4) : floats(new Float32Array(data.buffer), own);
  };
  if (part.includes('down')) add(`ffn_down_exps.${kind}`, tensor(bytes, 1));
  else ['gate', 'up'].forEach((half, i) => add(`ffn_${half}_exps.${kind}`, tensor(rowsOf(i, 2), 2)));
}

test('gpt-oss: a GGUF file gives the logits of transformers, in its blocks and unpacked', async () => {
  const path = join(folder(), 'gpt-oss-MXFP4.gguf');
  writeFileSync(path, await asGguf());
  const golden = await openSafetensors(platform, FIXTURE, 'golden.safetensors');
  const flat = (rows: readonly Float32Array[]): Float32Array => Float32Array.from(rows.flatMap((row) => [...row]));
  const logits = await golden.read('logits');
  await golden.close();
  await unlessPassed(
    device,
    { expected: [logits] },
    async (on) => [
      await (await DecoderHarness.load(on, path, { storage: BLOCKS })).step(STEP),
      await (await DecoderHarness.load(on, path)).step(STEP),
    ],
    ([packed, unpacked]) => {
      expectClose('gpt-oss GGUF', flat(packed!), logits, 1e-6);
      expect(unpacked).toEqual(packed);
    },
  );
  expect(device.errors).toEqual([]);
});

test('what a config.json says nothing of is what the first files mean', () => {
  const config = parseGptOssConfig({ model_type: 'gpt_oss', num_hidden_layers: 3, vocab_size: 201_088, num_local_experts: 32 });
  expect(config.kinds!.map(({ window }) => window)).toEqual([128, undefined, 128]);
  expect(config.rope).toMatchObject({ theta: 150_000, scaling: { kind: 'yarn', factor: 32, originalContext: 4096, truncate: false } });
  expect(config).toMatchObject({ heads: 64, kvHeads: 8, qkvBias: true, outputBias: true, hasSinks: true });
  expect(config.experts).toMatchObject({ count: 32, perRow: 4, intermediate: 2880, clamp: { alpha: 1.702, limit: 7 } });
});

test.each([
  [{ attention_bias: false }, /attention_bias is false, expected true/],
  [{ hidden_act: 'gelu' }, /hidden_act is "gelu", expected "silu"/],
  [{ layer_types: ['full_attention', 'chunked_attention'] }, /layer_types has "chunked_attention"/],
  [{ intermediate_size: 30 }, /intermediate_size is 30, expected a multiple of 4|intermediate 30 \(multiples of 4\)/],
])('config.json with %j is refused by name', (fields, message) => {
  const json: Json = { ...(JSON.parse(readFileSync(join(FIXTURE, 'config.json'), 'utf8')) as Json), ...fields };
  expect(() => decoderFor(json).parseConfig(json)).toThrow(message);
});
