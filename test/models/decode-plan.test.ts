/**
 * What a step of decoding would dispatch and read, counted from what it records: at most 5 dispatches a layer of a Llama-shaped decoder and 3 for head and sampling,
 * on adapters of either kind, and each weight, key and value once. The models have their published sizes and few layers; none of their weights is made.
 */
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Caps } from '../../engine/gpu/caps.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { Sampler } from '../../engine/runner/sampler.ts';
import { ChatEngine } from '../../engine/tasks/chat-engine.ts';
import { resolveConfig } from '../../engine/config.ts';
import { createDecoderKV } from '../../engine/models/decoder.ts';
import { decoderFor } from '../../engine/models/registry.ts';
import { WeightLoader } from '../../engine/models/weight-loader.ts';
import type { KVType } from '../../engine/ops/kv.ts';
import { SAMPLING_ROW_WORDS } from '../../engine/ops/sampling-row.ts';
import { testDevice } from '../support/device.ts';
import { countWork } from '../support/kernel-work.ts';
import { planOnly, zeroCheckpoint } from '../support/planned-device.ts';

let real: Device;
beforeAll(async () => {
  real = await testDevice();
});
afterAll(() => real.close());

const PAGE = 16;
const POSITIONS = 1000;
const CONTEXT = 1024;

/** Adapters that bind a matrix of these models whole. */
const LARGE = {
  subgroups: true,
  maxBindingBytes: 2 ** 31,
  maxTexels: 2 ** 27,
  maxBufferBytes: 2 ** 32,
  maxWorkgroupBytes: 32768,
  maxStorageBuffers: 10,
};
const GPU: Partial<Caps> = { ...LARGE, subgroupMinSize: 32, subgroupMaxSize: 32, software: false, family: 'generic' };
const LAVAPIPE: Partial<Caps> = { ...LARGE, subgroupMinSize: 8, subgroupMaxSize: 8, software: true, family: 'cpu' };

interface Model {
  readonly type: string;
  readonly hidden: number;
  readonly intermediate: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly vocabulary: number;
  readonly tied?: boolean;
  readonly headNorms?: boolean;
  /** Norms of a layer, by name. */
  readonly norms?: readonly string[];
}

const MODELS: Readonly<Record<string, Model>> = {
  'the bundled chat model': { type: 'llama', hidden: 256, intermediate: 704, heads: 4, kvHeads: 2, headDim: 64, vocabulary: 4096, tied: true }, // prettier-ignore
  'Llama of 0.5 B': { type: 'llama', hidden: 1024, intermediate: 4096, heads: 16, kvHeads: 4, headDim: 64, vocabulary: 32768 },
  'Llama 3.1 8B': { type: 'llama', hidden: 4096, intermediate: 14336, heads: 32, kvHeads: 8, headDim: 128, vocabulary: 128256 },
  'Qwen3 0.6B': { type: 'qwen3', hidden: 1024, intermediate: 3072, heads: 16, kvHeads: 8, headDim: 128, vocabulary: 151936, tied: true, headNorms: true }, // prettier-ignore
  'Gemma 3 4B': {
    ...{ type: 'gemma3_text', hidden: 2560, intermediate: 10240, heads: 8, kvHeads: 4, headDim: 256, vocabulary: 262208, tied: true, headNorms: true }, // prettier-ignore
    norms: ['input_layernorm', 'post_attention_layernorm', 'pre_feedforward_layernorm', 'post_feedforward_layernorm'],
  },
};

function configOf({ type, ...model }: Model, layers: number): Record<string, unknown> {
  return {
    model_type: type,
    hidden_size: model.hidden,
    intermediate_size: model.intermediate,
    num_attention_heads: model.heads,
    num_key_value_heads: model.kvHeads,
    head_dim: model.headDim,
    vocab_size: model.vocabulary,
    num_hidden_layers: layers,
    max_position_embeddings: CONTEXT,
    tie_word_embeddings: model.tied === true,
  };
}

function shapesOf(model: Model, layers: number): Record<string, readonly number[]> {
  const { hidden, intermediate, heads, kvHeads, headDim, vocabulary, norms = ['input_layernorm', 'post_attention_layernorm'] } = model;
  const shapes: Record<string, readonly number[]> = { 'model.embed_tokens.weight': [vocabulary, hidden], 'model.norm.weight': [hidden] };
  if (!model.tied) shapes['lm_head.weight'] = [vocabulary, hidden];
  for (let layer = 0; layer < layers; layer++) {
    const own: Record<string, readonly number[]> = {
      'self_attn.q_proj': [heads * headDim, hidden],
      'self_attn.k_proj': [kvHeads * headDim, hidden],
      'self_attn.v_proj': [kvHeads * headDim, hidden],
      'self_attn.o_proj': [hidden, heads * headDim],
      'mlp.gate_proj': [intermediate, hidden],
      'mlp.up_proj': [intermediate, hidden],
      'mlp.down_proj': [hidden, intermediate],
      ...Object.fromEntries(norms.map((name) => [name, [hidden]])),
      ...(model.headNorms && { 'self_attn.q_norm': [headDim], 'self_attn.k_norm': [headDim] }),
    };
    for (const [name, shape] of Object.entries(own)) shapes[`model.layers.${layer}.${name}.weight`] = shape;
  }
  return shapes;
}

interface Asked {
  readonly model: Model;
  readonly type: 'F16' | 'Q8_0' | 'Q4_K';
  readonly caps: Partial<Caps>;
  readonly rows?: number;
  readonly pages?: KVType;
  /** Workgroups that a sequence's positions are spread over. */
  readonly parts?: number;
  readonly greedy?: boolean;
}

interface Counted {
  /** Kernels of a layer, and of head and sampling. */
  readonly layer: readonly string[];
  readonly after: readonly string[];
  /** Bytes read over bytes of weights, keys and values. */
  readonly ratio: number;
}

/** What comes before the first layer. */
const BEFORE = ['resolve_tokens', 'embedding'];

/** Counts a step of a model of two layers and the same of one of three, whose difference is a layer. */
async function count(asked: Asked): Promise<Counted> {
  const [two, three] = [await record(asked, 2), await record(asked, 3)];
  const layer = three.kernels.length - two.kernels.length;
  const first = BEFORE.length;
  expect(two.kernels.slice(0, first)).toEqual(BEFORE);
  return { layer: two.kernels.slice(first, first + layer), after: two.kernels.slice(first + 2 * layer), ratio: three.ratio };
}

async function record(asked: Asked, layers: number): Promise<{ readonly kernels: readonly string[]; readonly ratio: number }> {
  const { model, type, caps, rows = 1, pages = 'f16', parts, greedy = true } = asked;
  const kernels: string[] = [];
  const device = planOnly(real, caps, kernels);
  const json = configOf(model, layers);
  const storage = { float: 'f16', keepBlocks: true, quantization: 'none' } as const;
  const loader = new WeightLoader(device, zeroCheckpoint(shapesOf(model, layers), type), storage);
  const decoder = await decoderFor(json).load(loader, json, CONTEXT);
  const shape = { layers: decoder.shape.pages, pageSize: PAGE, dtype: pages };
  const kv = await createDecoderKV(device, decoder, shape, { limit: (rows * CONTEXT) / PAGE }, { limit: rows });
  const workspace = decoder.createWorkspace(device, rows, rows);
  const words = (name: string, ...sizes: number[]) => device.tensor(name, 'u32', sizes);
  const positions = words('positions', rows);
  kernels.length = 0;
  const read = countWork(device, () => POSITIONS);
  const rec = device.record('step');
  const sampler = new Sampler(device, model.vocabulary, rows, rows);
  const [given, tokens] = [words('given tokens', rows), words('tokens', rows)];
  sampler.resolve(rec, given, tokens, rows);
  const logits = workspace.forward(
    rec,
    {
      rows,
      tokens,
      positions,
      slots: words('slots', rows),
      windowSlots: words('window slots', rows),
      blockTable: words('table', rows, CONTEXT / PAGE),
      windowTable: words('window table', rows, CONTEXT / PAGE),
      tiles: words('tiles', rows, 4),
      decodeTiles: rows,
      prefillTiles: 0,
      prefillTileRows: 1,
      spans: { words: words('spans', rows, 4), count: rows },
      split: parts === undefined ? undefined : { partials: device.tensor('partials', 'f32', [rows * model.heads * parts, model.headDim + 4]), positions, parts, rows }, // prettier-ignore
      logitIndices: undefined,
      logitRows: rows,
    },
    kv,
  );
  const ratio = ratioOf(asked, layers, read.matrices + read.pages + read.rest);
  sampler.record(rec, { logits, settings: words('settings', rows, SAMPLING_ROW_WORDS), rows, greedy });
  read.stop();
  return { kernels, ratio };
}

/** Bytes on the device that stand for 32 values. */
const PER_BLOCK = { F16: 64, Q8_0: 34, Q4_K: 18.5 } as const;

function ratioOf({ model, type, rows = 1 }: Asked, layers: number, read: number): number {
  const { hidden, intermediate, heads, kvHeads, headDim, vocabulary } = model;
  const perLayer = hidden * headDim * (2 * heads + 2 * kvHeads) + 3 * hidden * intermediate;
  const weights = ((layers * perLayer + hidden * vocabulary) / 32) * PER_BLOCK[type];
  return read / (weights + rows * layers * 2 * kvHeads * headDim * 2 * POSITIONS);
}

const LAYER = ['project_heads', 'ATTENTION', 'LINEAR', 'linear_fused', 'LINEAR'];
const HEAD = ['linear_fused', 'argmax_blocks', 'argmax_reduce'];

describe.each([
  { adapter: 'a GPU', caps: GPU, attention: 'paged_attention_wide', linear: 'linear_split', cuts: ['sort_slices', 'slice_threshold'] },
  { adapter: 'lavapipe', caps: LAVAPIPE, attention: 'paged_attention', linear: 'linear_rows', cuts: ['sample_threshold'] },
])('on $adapter', ({ caps, attention, linear, cuts }) => {
  const layer = LAYER.map((name) => (name === 'LINEAR' ? linear : name === 'ATTENTION' ? attention : name));

  test.each(
    ['Llama of 0.5 B', 'Llama 3.1 8B', 'Qwen3 0.6B'].flatMap((name) => (['F16', 'Q8_0', 'Q4_K'] as const).map((type) => ({ name, type }))),
  )('$name in $type: 5 dispatches a layer, 3 for the head and the next token, every byte once', async ({ name, type }) => {
    const counted = await count({ model: MODELS[name]!, type, caps });
    expect(counted.layer).toEqual(layer);
    expect(counted.after).toEqual(HEAD);
    expect(counted.ratio).toBeGreaterThanOrEqual(0.99);
    expect(counted.ratio).toBeLessThan(1.05);
  });

  // The sum of residual stream and half stands behind a norm, which needs all of the half.
  test.each(['F16', 'Q8_0', 'Q4_K'] as const)('Gemma 3 4B in %s: 7 dispatches a layer, with a norm behind each half', async (type) => {
    const counted = await count({ model: MODELS['Gemma 3 4B']!, type, caps });
    expect(counted.layer).toEqual(['project_heads', attention, linear, 'rms_norm', 'linear_fused', linear, 'rms_norm']);
    expect(counted.after).toEqual(HEAD);
    expect(counted.ratio).toBeLessThan(1.05);
  });

  test('two rows go the same way', async () => {
    const counted = await count({ model: MODELS['Llama 3.1 8B']!, type: 'Q4_K', caps, rows: 2 });
    expect(counted.layer).toEqual(layer);
    expect(counted.after).toEqual(HEAD);
  });

  test('a draw cut by top-p takes what the cut takes', async () => {
    const { after } = await count({ model: MODELS['Llama 3.1 8B']!, type: 'Q4_K', caps, greedy: false });
    expect(after).toEqual([HEAD[0], ...cuts, ...HEAD.slice(1)]);
  });

  test('a sequence that is spread over workgroups takes one more', async () => {
    const counted = await count({ model: MODELS['Llama of 0.5 B']!, type: 'F16', caps, parts: 4 });
    expect(counted.layer).toEqual([layer[0], attention, 'paged_attention_reduce', ...layer.slice(2)]);
  });

  // The scale of a key needs all channels of its turned head, so queries and keys are turned and stored by a dispatch of their own.
  test('int8 pages take one more', async () => {
    const counted = await count({ model: MODELS['Llama of 0.5 B']!, type: 'F16', caps, pages: 'int8' });
    expect(counted.layer).toEqual(['linear_fused', 'rope_kv_store_int8', ...layer.slice(1)]);
  });
});

test('many rows take the kernels for many rows', async () => {
  const counted = await count({ model: MODELS['Llama of 0.5 B']!, type: 'F16', caps: GPU, rows: 32 });
  expect(counted.layer).toHaveLength(9);
  expect(counted.layer).not.toContain('linear_fused');
});

test('many rows of few inputs have norms, gates, rotation and pages within their products on lavapipe', async () => {
  const counted = await count({ model: MODELS['the bundled chat model']!, type: 'F16', caps: LAVAPIPE, rows: 32 });
  expect(counted.layer).toEqual(['project_heads_many', 'paged_attention', 'linear_broadcast', 'linear_normed', 'linear_broadcast']);
  expect(counted.after).toEqual(['linear_normed', ...HEAD.slice(1)]);
});

test('a token of the bundled chat model is one submission that makes nothing, and one upload of a few bytes', async () => {
  const device = await testDevice();
  const folder = fileURLToPath(new URL('../../models/parley-chat', import.meta.url));
  const engine = await ChatEngine.load(device, createNodePlatform({ log: () => undefined }), { path: folder }, resolveConfig({}));
  const seen: (readonly [tokens: number, stats: Device['stats']])[] = [];
  const request = { messages: [{ role: 'user', content: 'Hello' }], sampling: { temperature: 0 }, maxTokens: 40, ignoreEos: true } as const;
  for await (const event of engine.chat(request, new AbortController().signal)) {
    if (event.type === 'delta') seen.push([event.tokens, { ...device.stats }]);
  }
  // Beyond the prompt and the first plan, and before the end, where no step is looked ahead to.
  const steps = seen.slice(4, -4);
  const [before, after] = [steps[0]![1], steps.at(-1)![1]];
  const submits = after.submits - before.submits;
  expect(submits).toBe(steps.slice(1).reduce((sum, [tokens]) => sum + tokens, 0));
  // One more where a page begins, which is entered in the block table.
  const pages = Math.ceil(submits / PAGE);
  expect(after.uploads - before.uploads).toBeGreaterThanOrEqual(submits);
  expect(after.uploads - before.uploads).toBeLessThanOrEqual(submits + pages);
  expect(after.bytesWritten - before.bytesWritten).toBeLessThan(submits * 20_000);
  expect({ buffers: after.buffers, bindGroups: after.bindGroups }).toEqual({ buffers: before.buffers, bindGroups: before.bindGroups });
  await engine.close();
  device.close();
});
