/** Llama-shaped decoders against PyTorch, and against themselves: the same bits however the work is cut. */
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { resolveConfig } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { parseLlamaConfig } from '../../engine/models/llama/config.ts';
import { LLAMA } from '../../engine/models/llama/llama.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { ChatEngine } from '../../engine/tasks/chat-engine.ts';
import { Tokenizer } from '../../engine/text/tokenizer.ts';
import { withWeights } from '../../engine/weights/model-folder.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import { differing, expectClose } from '../support/compare.ts';
import { DecoderHarness, argmax } from '../support/decoder-harness.ts';
import { testDevice } from '../support/device.ts';
import { safetensorsFile } from '../support/safetensors-file.ts';
import type { Tensors } from '../support/safetensors-file.ts';
import { convertLlama2c } from '../tools/convert-llama2c.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const FIXTURES = join(ROOT, 'test', 'fixtures');
const STORIES = join(ROOT, '..', 'shared', 'models', 'stories260K');

interface Golden {
  readonly prompt: number[];
  readonly greedy: number[];
}
const readGolden = (folder: string): Golden => JSON.parse(readFileSync(join(folder, 'golden.json'), 'utf8')) as Golden;

let device: Device;
beforeAll(async () => {
  device = await testDevice();
});
afterAll(() => device.close());

test('half-precision weights and pages stay close to f32 and have the same bits alone and in a batch', async () => {
  const folder = join(FIXTURES, 'llama-tiny-random', 'llama');
  const { prompt } = readGolden(folder);
  const [full, half] = [await DecoderHarness.load(device, folder), await DecoderHarness.load(device, folder, { dtype: 'f16' })];
  const expected = await full.step([{ sequence: 0, start: 0, tokens: prompt }]);
  const actual = await half.step([{ sequence: 0, start: 0, tokens: prompt }]);
  // Weights are f16 in the file, so only keys and values are rounded.
  actual.forEach((row, i) => expectClose(`row ${i}`, row, expected[i]!, 1e-5));
  const batch = await half.step([0, 1, 2, 3].map((sequence) => ({ sequence, start: 0, tokens: prompt })));
  expect(differing(batch.slice(2 * prompt.length, 3 * prompt.length), actual)).toBe(0);
});

test.each([
  { title: 'an adapter without subgroups', disable: ['subgroups'] },
  { title: 'an adapter that is taken for a GPU', disable: ['software'] },
] as const)('$title gives the tokens of PyTorch and the same bits in chunks', async ({ disable }) => {
  const plain = await testDevice({ disable });
  const folder = join(FIXTURES, 'llama-tiny-random', 'llama');
  const golden = readGolden(folder);
  const harness = await DecoderHarness.load(plain, folder);
  const all = [...golden.prompt, ...golden.greedy.slice(0, -1)];
  const whole = await harness.step([{ sequence: 0, start: 0, tokens: all }]);
  expect(whole.slice(golden.prompt.length - 1).map(argmax)).toEqual(golden.greedy);
  const chunked = [];
  for (const [from, to] of [[0, 1], [1, 34], [34, 35], [35, all.length]] as const) {
    chunked.push(...(await harness.step([{ sequence: 1, start: from, tokens: all.slice(from, to) }])));
  } // prettier-ignore
  expect(differing(chunked, whole)).toBe(0);
  expect(plain.errors).toEqual([]);
  plain.close();
});

/** A folder with the model of another, whose tied table it also has as a head, every value times `scale`. */
async function withHead(from: string, scale: number): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'tied-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  cpSync(from, folder, { recursive: true });
  const tensors: Tensors = {};
  await withWeights(await openModelFolder(createNodePlatform(), from), async (checkpoint) => {
    for (const name of checkpoint.names()) tensors[name] = { shape: checkpoint.tensor(name)!.shape, data: await checkpoint.read(name) };
  });
  const { shape, data } = tensors['model.embed_tokens.weight']!;
  tensors['lm_head.weight'] = { shape, data: data.map((value, i) => (i < data.length / 2 ? value : value * scale)) };
  writeFileSync(join(folder, 'model.safetensors'), safetensorsFile(tensors));
  return folder;
}

test('a head beside a tied table counts where it is another matrix, and takes nothing where it is the table', async () => {
  const folder = join(FIXTURES, 'llama-tiny-random', 'llama');
  const { prompt } = readGolden(folder);
  const load = async (scale?: number): Promise<{ logits: Float32Array; bytes: number }> => {
    const harness = await DecoderHarness.load(device, scale === undefined ? folder : await withHead(folder, scale));
    return { logits: (await harness.step([{ sequence: 0, start: 0, tokens: prompt }])).at(-1)!, bytes: harness.weightBytes };
  };
  // A device's first load makes what the next ones share.
  await load();
  const [alone, twice, other] = [await load(), await load(1), await load(2)];
  expect(twice).toEqual(alone);
  expect(other.logits).toEqual(alone.logits.map((value, i) => (i < alone.logits.length / 2 ? value : 2 * value)));
});

describe('the bundled chat model', () => {
  const folder = join(ROOT, 'models', 'parley-chat');
  const golden = JSON.parse(readFileSync(join(FIXTURES, 'parley-chat', 'golden.json'), 'utf8')) as {
    prompt_ids: number[];
    logits_last: number[];
    greedy_ids: number[];
  };

  test('gives the logits and the 40 greedy tokens of PyTorch', async () => {
    const harness = await DecoderHarness.load(device, folder);
    const rows = await harness.step([{ sequence: 0, start: 0, tokens: golden.prompt_ids }]);
    expectClose('logits', rows.at(-1)!, golden.logits_last, 1e-6);
    const tokens = [argmax(rows.at(-1)!)];
    while (tokens.length < golden.greedy_ids.length) {
      const start = golden.prompt_ids.length + tokens.length - 1;
      const [logits] = await harness.step([{ sequence: 0, start, tokens: [tokens.at(-1)!] }]);
      tokens.push(argmax(logits!));
    }
    expect(tokens).toEqual(golden.greedy_ids);
  });
});

describe.skipIf(!existsSync(STORIES))('stories260K (skipped where ../shared is absent: the checkpoint is not ours to bundle)', () => {
  test('continues "Once upon a time" like PyTorch', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'stories260K-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    convertLlama2c(join(STORIES, 'stories260K.bin'), join(STORIES, 'tok512.bin'), folder);
    const platform = createNodePlatform({ log: () => undefined });
    const golden = readGolden(join(FIXTURES, 'stories260K'));
    const tokenizer = await Tokenizer.load(await openModelFolder(platform, folder));
    expect(tokenizer.encode('Once upon a time', { addSpecialTokens: true })).toEqual(golden.prompt);
    const engine = await ChatEngine.load(device, platform, { path: folder }, resolveConfig({ dtype: 'f32', kvCacheDtype: 'f32', maxRunningRequests: 4 })); // prettier-ignore
    let text = '';
    const messages = [{ role: 'user', content: 'Once upon a time' }] as const;
    for await (const event of engine.chat(
      { messages, sampling: { temperature: 0 }, maxTokens: golden.greedy.length },
      new AbortController().signal,
    )) {
      // prettier-ignore
      if (event.type === 'delta') text += event.text;
    }
    await engine.close();
    const whole = tokenizer.decode([...golden.prompt, ...golden.greedy]);
    expect(`Once upon a time${text}`).toBe(whole);
    expect(whole).toMatch(/little girl|little boy/);
  });
});

describe('config.json', () => {
  const base = {
    model_type: 'llama',
    hidden_size: 64,
    num_attention_heads: 4,
    intermediate_size: 128,
    num_hidden_layers: 1,
    vocab_size: 10,
  };
  test('defaults and old field names', () => {
    const config = parseLlamaConfig({ ...base, rope_theta: 5, rope_scaling: { type: 'linear', factor: 4 }, eos_token_id: [3, 4] });
    expect(config).toMatchObject({
      kvHeads: 4,
      headDim: 16,
      rope: { theta: 5, scaling: { kind: 'linear', factor: 4 } },
      eosTokenIds: [3, 4],
    });
  });
  test('rope_parameters and rope_scaling may stand side by side where they say the same', () => {
    const rope = { rope_parameters: { rope_type: 'linear', factor: 4, rope_theta: 5 }, rope_scaling: { type: 'linear', factor: 4 } };
    for (const theta of [{}, { rope_theta: 5 }, { rope_theta: null }]) {
      expect(parseLlamaConfig({ ...base, ...rope, ...theta }).rope).toEqual({
        theta: 5,
        headDim: 16,
        scaling: { kind: 'linear', factor: 4 },
      });
    }
  });
  // What transformers' Qwen2Config and MistralConfig make of them.
  test.each([
    ['mistral', {}, [true, true]],
    ['qwen2', {}, undefined],
    ['qwen2', { use_sliding_window: false }, undefined],
    ['qwen2', { use_sliding_window: true, max_window_layers: 2 }, undefined],
    ['qwen2', { use_sliding_window: true, max_window_layers: 1 }, [false, true]],
    ['qwen2', { use_sliding_window: true, max_window_layers: 0 }, [true, true]],
    ['qwen2', { use_sliding_window: true }, undefined],
    ['qwen3', { use_sliding_window: true, max_window_layers: 0, layer_types: ['full_attention', 'full_attention'] }, undefined],
    ['qwen3', { use_sliding_window: true, max_window_layers: 5, layer_types: ['sliding_attention', 'full_attention'] }, [true, false]],
    ['mistral', { layer_types: ['full_attention', 'full_attention', 'sliding_attention'] }, undefined],
    ['mistral', { sliding_window: null }, undefined],
    // Only Qwen and SmolLM3 ask that.
    ['mistral', { use_sliding_window: false }, [true, true]],
    ['phi3', { use_sliding_window: false }, [true, true]],
    ['llama', { use_sliding_window: false }, undefined],
  ])('a window is of the layers that use it: %s %o', (model_type, change, slides) => {
    const config = { ...base, num_key_value_heads: 4, num_hidden_layers: 2, model_type, max_position_embeddings: 1000, sliding_window: 100, ...change }; // prettier-ignore
    expect(parseLlamaConfig(config)).toMatchObject({
      maxPositions: 1000,
      kinds: slides?.map((slides) => ({ window: slides ? 100 : undefined })),
    });
  });
  test.each([
    [{ hidden_size: undefined }, /hidden_size is undefined/],
    [{ hidden_act: 'gelu' }, /hidden_act is "gelu"/],
    [
      { rope_scaling: { rope_type: 'wide' } },
      /rope type "wide"; known are default, linear, dynamic, llama3, yarn, longrope and proportional/,
    ],
    [{ rope_scaling: { rope_type: 'dynamic', factor: 0 } }, /factor of the rotary embedding is 0, expected a positive number/],
    [{ partial_rotary_factor: 0.5 }, /partial_rotary_factor 0.5/],
    [
      { rope_scaling: { rope_type: 'longrope', short_factor: [1] } },
      /short_factor of the rotary embedding is a list of 1, expected 8 positive numbers/,
    ],
    [{ rope_scaling: { rope_type: 'yarn', factor: 2 } }, /max_position_embeddings is undefined, expected a number/],
    [{ model_type: 'smollm3', no_rope_layers: 3 }, /no_rope_layers is 3, expected a list of 1/],
    [{ model_type: 'granite', residual_multiplier: 0 }, /residual_multiplier is 0, expected a positive number/],
    [{ num_key_value_heads: 3 }, /4 heads over 3/],
    [{ num_hidden_layers: 1.5 }, /num_hidden_layers is 1.5/],
    [{ rope_scaling: 5 }, /rope_scaling is 5, expected an object/],
    [{ rope_theta: -1 }, /rope_theta is -1, expected a positive number/],
    [
      { rope_parameters: { rope_type: 'default', rope_theta: 10000 }, rope_scaling: { type: 'linear', factor: 4 } },
      /rope_parameters \{"rope_type":"default","rope_theta":10000\} and rope_scaling \{"type":"linear","factor":4\} differ/,
    ],
    [{ rope_parameters: { rope_theta: 500000 }, rope_theta: 10000 }, /rope_parameters .* and rope_theta 10000 differ/],
    [{ layer_types: ['chunked_attention'] }, /layer_types has "chunked_attention"/],
    [{ layer_types: [] }, /layer_types is a list of 0, expected a list of 1/],
    [{ model_type: 'phi3', sliding_window: 'x' }, /sliding_window is "x", expected a number/],
    [{ sliding_window: 100 }, /sliding_window is 100, expected null/],
    [{ is_causal: false }, /is_causal is false, expected true/],
    [{ per_layer_config: { 0: { intermediate_size: 64 } } }, /per_layer_config is an object, expected null/],
  ])('%o is refused with the field in the message', (change, message) => {
    expect(() => LLAMA.parseConfig({ ...base, ...change })).toThrow(message);
  });
});
