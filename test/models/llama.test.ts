/** Llama-shaped decoders against PyTorch, and against themselves: the same bits however the work is cut. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
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
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import { openSafetensors } from '../../engine/weights/safetensors.ts';
import { expectClose } from '../support/compare.ts';
import { DecoderHarness, argmax } from '../support/decoder-harness.ts';
import { testDevice } from '../support/device.ts';
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

describe.each(['llama', 'llama-odd', 'qwen2', 'qwen3', 'arcee'])('tiny random %s', (name) => {
  const folder = join(FIXTURES, 'llama-tiny-random', name);
  const golden = readGolden(folder);
  let harness: DecoderHarness;
  beforeAll(async () => {
    harness = await DecoderHarness.load(device, folder);
  });

  test('every stage of a prompt agrees with PyTorch', async () => {
    const checkpoint = await openSafetensors(createNodePlatform(), folder, 'golden.safetensors');
    const stages: Record<string, Float32Array> = {};
    await harness.step([{ sequence: 0, start: 0, tokens: golden.prompt }], (stage, values) => (stages[stage] = values));
    expect(Object.keys(stages).sort()).toEqual([...checkpoint.names()].sort());
    for (const stage of checkpoint.names()) expectClose(`${name} ${stage}`, stages[stage]!, await checkpoint.read(stage), 1e-6);
    await checkpoint.close();
    expect(device.errors).toEqual([]);
  });

  test('64 greedy tokens equal PyTorch, and logits have the same bits as a prefill, in chunks and beside other sequences', async () => {
    let logits = (await harness.step([{ sequence: 0, start: 0, tokens: golden.prompt }])).at(-1)!;
    const stepwise: Float32Array[] = [];
    const tokens: number[] = [];
    for (let i = 0; i < golden.greedy.length; i++) {
      stepwise.push(logits);
      tokens.push(argmax(logits));
      [logits] = (await harness.step([{ sequence: 0, start: golden.prompt.length + i, tokens: [tokens[i]!] }])) as [Float32Array];
    }
    expect(tokens).toEqual(golden.greedy);

    const all = [...golden.prompt, ...tokens];
    const last = golden.prompt.length - 1;
    const whole = await harness.step([{ sequence: 1, start: 0, tokens: all.slice(0, -1) }]);
    expect(differing(whole.slice(last), stepwise)).toBe(0);

    // Chunks of odd sizes, each in a step with a decode and a chunk of another sequence.
    const chunked: Float32Array[] = [];
    const other = Array.from({ length: 200 }, (_, i) => (i * 7) % 150);
    let at = 0;
    for (const size of [5, 17, 1, 30, 40, 7]) {
      const chunk = all.slice(at, Math.min(at + size, all.length - 1));
      const mine = { sequence: 2, start: at, tokens: chunk };
      const decode = { sequence: 3, start: 100 + at, tokens: [9] };
      const prefill = { sequence: 0, start: 2 * at, tokens: other.slice(0, 13) };
      const rows = await harness.step(chunk.length === 1 ? [decode, mine, prefill] : [decode, prefill, mine]);
      chunked.push(...(chunk.length === 1 ? rows.slice(1, 2) : rows.slice(-chunk.length)));
      at += chunk.length;
    }
    expect(at).toBe(all.length - 1);
    expect(differing(chunked.slice(last), stepwise)).toBe(0);
    expect(device.errors).toEqual([]);
  });
});

/** Number of logits whose bits differ. */
function differing(actual: readonly Float32Array[], expected: readonly Float32Array[]): number {
  expect(actual).toHaveLength(expected.length);
  return actual.reduce((sum, row, i) => sum + row.reduce((count, value, j) => count + (Object.is(value, expected[i]![j]!) ? 0 : 1), 0), 0);
}

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

test('an adapter without subgroups gives the tokens of PyTorch and the same bits in chunks', async () => {
  const plain = await testDevice({ disable: ['subgroups'] });
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
    ['mistral', {}, 100],
    ['qwen2', {}, 1000],
    ['qwen2', { use_sliding_window: false }, 1000],
    ['qwen2', { use_sliding_window: true, max_window_layers: 1 }, 1000],
    ['qwen2', { use_sliding_window: true, max_window_layers: 0 }, 100],
    ['qwen2', { use_sliding_window: true }, 1000],
    ['qwen3', { use_sliding_window: true, max_window_layers: 0, layer_types: ['full_attention'] }, 1000],
    ['qwen3', { use_sliding_window: true, max_window_layers: 5, layer_types: ['sliding_attention'] }, 100],
    ['mistral', { layer_types: ['full_attention', 'sliding_attention'] }, 1000],
  ])('a window caps the context only where a layer uses it: %s %o', (model_type, change, positions) => {
    const config = { ...base, model_type, max_position_embeddings: 1000, sliding_window: 100, ...change };
    expect(parseLlamaConfig(config).maxPositions).toBe(positions);
  });
  test.each([
    [{ hidden_size: undefined }, /hidden_size is undefined/],
    [{ hidden_act: 'gelu' }, /hidden_act is "gelu"/],
    [{ rope_scaling: { rope_type: 'yarn', factor: 2 } }, /rope type "yarn"/],
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
    [{ sliding_window: 'x' }, /sliding_window is "x", expected a number/],
  ])('%o is refused with the field in the message', (change, message) => {
    expect(() => LLAMA.parseConfig({ ...base, ...change })).toThrow(message);
  });
});
