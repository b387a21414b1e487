/** What is Qwen3.5's own: states in the prefix cache, the text part of a model that sees, fields that are refused. The numbers are in families.test.ts. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { EngineConfig } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { decoderFor } from '../../engine/models/registry.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { createRng } from '../../engine/util/rng.ts';
import type { Json } from '../../engine/util/json.ts';
import type { Checkpoint } from '../../engine/weights/checkpoint.ts';
import { openSafetensors } from '../../engine/weights/safetensors.ts';
import { checkpointBytes, matrixBytes } from '../../engine/weights/storage.ts';
import { DecoderHarness } from '../support/decoder-harness.ts';
import type { Chunk } from '../support/decoder-harness.ts';
import { testDevice } from '../support/device.ts';
import { unlessPassed } from '../support/known-cases.ts';
import { writeNumberTokenizer } from '../support/random-checkpoint.ts';
import { safetensorsFile } from '../support/safetensors-file.ts';
import type { Tensors } from '../support/safetensors-file.ts';
import { answer, greedyAfter, withChat } from '../support/split-chat.ts';

const FIXTURE = fileURLToPath(new URL('../fixtures/llama-tiny-random/qwen3_5-last', import.meta.url));
const VOCABULARY = 160;

let device: Device;
beforeAll(async () => {
  device = await testDevice();
});
afterAll(() => device.close());

const configOf = (folder: string): Json => JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')) as Json;

/** A copy of the fixture with a tokenizer, and with other fields in its config.json. */
function copyOf(fields: Json = {}): string {
  const folder = mkdtempSync(join(tmpdir(), 'parley-qwen35-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  cpSync(FIXTURE, folder, { recursive: true });
  writeNumberTokenizer(folder, VOCABULARY);
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...configOf(FIXTURE), ...fields }));
  return folder;
}

function randomTokens(seed: number, count: number): number[] {
  const rng = createRng(seed);
  return Array.from({ length: count }, () => rng.integer(VOCABULARY));
}

test('a second request with the same 1,500 tokens computes at most one page, with the same answer', async () => {
  const config = { contextLength: 2048, chunkedPrefillSize: 400 };
  await withChat(device, copyOf({ max_position_embeddings: 2048 }), config, async (engine) => {
    const request = greedyAfter(randomTokens(1, 1500), 8);
    const [first, second] = [await answer(engine, request), await answer(engine, request)];
    expect(first.cachedTokens).toBe(0);
    expect(second.cachedTokens).toBeGreaterThanOrEqual(1500 - 16);
    expect(second.text).toBe(first.text);
    expect(engine.info.memory).toMatchObject({ stateSlots: 8 });
  });
});

test('random cuts of prompts and evictions of states and pages never change an answer', async () => {
  const rng = createRng(7);
  const families = [randomTokens(2, 200), randomTokens(3, 200)];
  const requests = Array.from({ length: 24 }, () => {
    const shared = families[rng.integer(families.length)]!.slice(0, rng.integer(180));
    return greedyAfter([...shared, ...randomTokens(rng.integer(1000), 1 + rng.integer(20))], 1 + rng.integer(24));
  });
  // Two sequences at a time: four slots for states.
  const settings: Partial<EngineConfig> = { maxRunningRequests: 2, contextLength: 256, chunkedPrefillSize: 37 };
  const folder = copyOf();
  const ask = (config: Partial<EngineConfig>): Promise<{ readonly texts: string[]; readonly cached: number }> =>
    withChat(device, folder, { ...settings, ...config }, async (engine) => {
      const answers = await Promise.all(requests.map((request) => answer(engine, request)));
      // Asked again, in another order.
      const again = await Promise.all([...requests].reverse().map((request) => answer(engine, request)));
      expect(again.reverse().map(({ text }) => text)).toEqual(answers.map(({ text }) => text));
      return { texts: answers.map(({ text }) => text), cached: engine.status().cachedTokens };
    });
  const alone = await ask({ disableRadixCache: true });
  expect(alone.cached).toBe(0);
  const cached = await ask({});
  expect(cached.texts).toEqual(alone.texts);
  expect(cached.cached).toBeGreaterThan(0);
  // Tokens repeat themselves often enough to be guessed, and not always rightly.
  const guessing = { speculativeNgram: true, speculativeNgramMinMatchWindowSize: 1 };
  expect((await ask(guessing)).texts).toEqual(alone.texts);
  const int8 = { kvCacheDtype: 'int8' } as const;
  expect((await ask(int8)).texts).toEqual((await ask({ ...int8, disableRadixCache: true })).texts);
});

/** That two checkpoints have the same parameters and give the same logits. */
async function expectEqual(one: string, other: string, step: readonly Chunk[]): Promise<void> {
  await unlessPassed(
    device,
    { expected: [] },
    async (on) => {
      const [first, second] = [await DecoderHarness.load(on, one), await DecoderHarness.load(on, other)];
      expect(first.decoder.parameters).toBe(second.decoder.parameters);
      return [await first.step(step), await second.step(step)];
    },
    ([first, second]) => expect(first).toEqual(second),
  );
}

test('of a model that sees the text part is read, and its eyes and its guessing head are left out', async () => {
  const checkpoint = await openSafetensors(createNodePlatform(), FIXTURE);
  const tensors: Record<string, Tensors[string]> = {
    'model.visual.blocks.0.norm1.weight': { shape: [3], data: new Float32Array(3) },
    'mtp.fc.weight': { shape: [2, 2], data: new Float32Array(4) },
  };
  for (const name of checkpoint.names()) {
    tensors[name.replace(/^model\./, 'model.language_model.')] = {
      shape: checkpoint.tensor(name)!.shape,
      data: await checkpoint.read(name),
    };
  }
  await checkpoint.close();
  const folder = mkdtempSync(join(tmpdir(), 'parley-qwen35-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'model.safetensors'), safetensorsFile(tensors));
  writeFileSync(
    join(folder, 'config.json'),
    JSON.stringify({ model_type: 'qwen3_5', text_config: configOf(FIXTURE), vision_config: { depth: 1 } }),
  );
  const step = [{ sequence: 0, start: 0, tokens: randomTokens(4, 20) }];
  await expectEqual(folder, FIXTURE, step);
});

test('experts as one tensor, as they are published, give the bits that they give one by one, and are counted as matrices', async () => {
  const source = fileURLToPath(new URL('../fixtures/llama-tiny-random/qwen3_5_moe', import.meta.url));
  const checkpoint = await openSafetensors(createNodePlatform(), source);
  const tensors: Record<string, Tensors[string]> = {};
  const read = async (name: string): Promise<number[]> => [...(await checkpoint.read(name))];
  for (const name of checkpoint.names()) {
    const [, at = '', expert] = /^(.*\.experts)\.(\d+)\.\w+\.weight$/.exec(name) ?? [];
    if (expert === undefined) tensors[name] = { shape: checkpoint.tensor(name)!.shape, data: await checkpoint.read(name) };
    if (expert !== '0' || `${at}.down_proj` in tensors) continue;
    const [gateUp, down]: number[][] = [[], []];
    for (let e = 0; e < 5; e++) {
      gateUp!.push(...(await read(`${at}.${e}.gate_proj.weight`)), ...(await read(`${at}.${e}.up_proj.weight`)));
      down!.push(...(await read(`${at}.${e}.down_proj.weight`)));
    }
    tensors[`${at}.gate_up_proj`] = { shape: [5, 40, 36], data: Float32Array.from(gateUp!) };
    tensors[`${at}.down_proj`] = { shape: [5, 36, 20], data: Float32Array.from(down!) };
  }
  await checkpoint.close();
  const folder = mkdtempSync(join(tmpdir(), 'parley-qwen35-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'model.safetensors'), safetensorsFile(tensors));
  cpSync(join(source, 'config.json'), join(folder, 'config.json'));
  const step = [{ sequence: 0, start: 0, tokens: randomTokens(4, 20) }];
  await expectEqual(folder, source, step);

  const stacked = (shape: readonly number[]): Checkpoint => ({
    names: () => ['model.layers.0.mlp.experts.gate_up_proj'],
    tensor: () => ({ dtype: 'BF16', shape }),
    read: () => Promise.reject(new Error('only the header counts')),
    readIds: () => Promise.reject(new Error('only the header counts')),
    close: () => Promise.resolve(),
  });
  const packed = { float: 'f16', keepBlocks: true, quantization: 'q4_0' } as const;
  expect(checkpointBytes(stacked([5, 64, 96]), packed)).toBe(matrixBytes('Q4_0', 5 * 64, 96));
});

test.each([
  [
    { layer_types: ['full_attention', 'linear_attention', 'mamba'] },
    /layer_types has "mamba"; known are full_attention and linear_attention/,
  ],
  [{ layer_types: ['linear_attention', 'linear_attention', 'linear_attention'] }, /no layer has attention/],
  [{ linear_num_value_heads: 5, linear_num_key_heads: 2 }, /linear_num_value_heads is 5, expected a multiple of linear_num_key_heads, 2/],
  [{ linear_key_head_dim: 18 }, /linear_key_head_dim is 18 and linear_value_head_dim 12, expected multiples of 4/],
  [{ linear_conv_kernel_dim: 1 }, /linear_conv_kernel_dim is 1, expected 2 to 16/],
  [{ attn_output_gate: false }, /attn_output_gate is false, expected true/],
  [{ attention_bias: true }, /attention_bias is true, expected false/],
  [{ hidden_act: 'gelu' }, /hidden_act is "gelu", expected "silu"/],
])('config.json with %j is refused by name', (fields, message) => {
  const json = { ...configOf(FIXTURE), ...fields };
  expect(() => decoderFor(json).parseConfig(json)).toThrow(message);
});

test('layers without layer_types: every fourth has attention, or every so many', () => {
  const { layer_types: _, ...json } = configOf(FIXTURE);
  const counts = (fields: Json) => {
    const { pages, state } = decoderFor(json).parseConfig({ ...json, num_hidden_layers: 24, ...fields });
    return [pages.length, state?.layers];
  };
  expect(counts({})).toEqual([6, 18]);
  expect(counts({ full_attention_interval: 3 })).toEqual([8, 16]);
});
