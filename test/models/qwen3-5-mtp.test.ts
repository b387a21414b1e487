/** Qwen3.5's head that guesses: its numbers against PyTorch (test/tools/dump_mtp.py), and the same answers whatever it guesses. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { ChatRequest } from '../../engine/api.ts';
import type { EngineConfig } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { decoderFor } from '../../engine/models/registry.ts';
import { hasMatrices } from '../../engine/ops/linear-matrix.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { createRng } from '../../engine/util/rng.ts';
import type { Json } from '../../engine/util/json.ts';
import { openSafetensors } from '../../engine/weights/safetensors.ts';
import { expectClose } from '../support/compare.ts';
import { ggufFile } from '../support/gguf-file.ts';
import type { Stored, StoredTensor } from '../support/gguf-file.ts';
import { HeadHarness } from '../support/head-harness.ts';
import { testDevice } from '../support/device.ts';
import { writeNumberTokenizer } from '../support/random-checkpoint.ts';
import { safetensorsFile } from '../support/safetensors-file.ts';
import type { Tensors } from '../support/safetensors-file.ts';
import { answer, greedyAfter, withChat } from '../support/split-chat.ts';

const FIXTURES = fileURLToPath(new URL('../fixtures/mtp-tiny-random', import.meta.url));
const VOCABULARY = 160;
const HEAD = { speculativeMtp: true } as const;

interface Golden {
  readonly prompt: number[];
  readonly first: number;
}

const u32 = (value: number): Stored => ({ type: 'u32', value });
const f32 = (value: number): Stored => ({ type: 'f32', value });

let device: Device;
beforeAll(async () => {
  device = await testDevice();
});
afterAll(() => device.close());

const readJson = (folder: string, file: string): Json => JSON.parse(readFileSync(join(folder, file), 'utf8')) as Json;

describe.each(['qwen3_5-last', 'qwen3_5_moe'])('the head of %s', (name) => {
  const folder = join(FIXTURES, name);
  const golden = readJson(folder, 'golden.json') as unknown as Golden;

  test('guesses as PyTorch does, behind known tokens and behind its own guesses', async () => {
    const checkpoint = await openSafetensors(createNodePlatform(), folder, 'golden.safetensors');
    const expected = { known: await checkpoint.read('known'), guesses: await checkpoint.read('guesses') };
    await checkpoint.close();
    const harness = await HeadHarness.load(device, folder);
    const { prompt, first } = golden;
    const known: number[] = [];
    // A guess behind each token of the prompt, of which the steps before have left keys and values.
    for (let i = 0; i < prompt.length; i++) {
      if (i > 0) known.push(...(await harness.guess(prompt[i]!, 1))[0]!);
      await harness.step(prompt.slice(i, i + 1));
    }
    expectClose(`${name} behind known tokens`, Float32Array.from(known), expected.known, 1e-6);
    const guesses = await harness.guess(first, 3);
    expectClose(`${name} behind its own guesses`, Float32Array.from(guesses.flatMap((row) => [...row])), expected.guesses, 1e-6);
    // The same after the prompt as one chunk.
    const whole = await HeadHarness.load(device, folder);
    await whole.step(prompt);
    expect(await whole.guess(first, 3)).toEqual(guesses);
  });
});

/** What a converter calls the tensors of a fixture with one key head, whose value heads it has nothing to move of (conversion/qwen.py). */
const GGUF_NAMES: readonly (readonly [RegExp, string])[] = [
  [/^model\.embed_tokens/, 'token_embd'],
  [/^model\.norm/, 'output_norm'],
  [/^lm_head/, 'output'],
  [/^mtp\.fc/, 'blk.3.nextn.eh_proj'],
  [/^mtp\.pre_fc_norm_embedding/, 'blk.3.nextn.enorm'],
  [/^mtp\.pre_fc_norm_hidden/, 'blk.3.nextn.hnorm'],
  [/^mtp\.norm/, 'blk.3.nextn.shared_head_norm'],
  [/^mtp\.layers\.0\./, 'blk.3.'],
  [/^model\.layers\./, 'blk.'],
  [/input_layernorm/, 'attn_norm'],
  [/post_attention_layernorm/, 'post_attention_norm'],
  [/self_attn\.([qkv])_proj/, 'attn_$1'],
  [/self_attn\.o_proj/, 'attn_output'],
  [/self_attn\.([qk])_norm/, 'attn_$1_norm'],
  [/mlp\.(gate|up|down)_proj/, 'ffn_$1'],
  [/linear_attn\.in_proj_qkv/, 'attn_qkv'],
  [/linear_attn\.in_proj_z/, 'attn_gate'],
  [/linear_attn\.in_proj_b/, 'ssm_beta'],
  [/linear_attn\.in_proj_a/, 'ssm_alpha'],
  [/linear_attn\.conv1d/, 'ssm_conv1d'],
  [/linear_attn\.norm/, 'ssm_norm'],
  [/linear_attn\.out_proj/, 'ssm_out'],
  [/linear_attn\.A_log/, 'ssm_a'],
  [/linear_attn\.dt_bias/, 'ssm_dt.bias'],
];

test('as GGUF the head is the layer behind the last, and its logits are the same', async () => {
  const source = join(FIXTURES, 'qwen3_5-last');
  const settings: Record<string, Stored> = {
    block_count: u32(4), nextn_predict_layers: u32(1), context_length: u32(512), embedding_length: u32(36), feed_forward_length: u32(44),
    'attention.head_count': u32(7), 'attention.head_count_kv': u32(1), 'attention.key_length': u32(48), 'attention.value_length': u32(48),
    'attention.layer_norm_rms_epsilon': f32(1e-6), 'rope.freq_base': f32(10000), 'rope.dimension_count': u32(24),
    'attention.recurrent_layers': { type: 'bools', value: [false, true, true, false] },
    'ssm.conv_kernel': u32(3), 'ssm.state_size': u32(16), 'ssm.group_count': u32(1), 'ssm.time_step_rank': u32(5), 'ssm.inner_size': u32(60),
  }; // prettier-ignore
  const metadata: Record<string, Stored> = { 'general.architecture': { type: 'string', value: 'qwen35' } };
  for (const [key, value] of Object.entries(settings)) metadata[`qwen35.${key}`] = value;
  const tensors: Record<string, StoredTensor> = {};
  const checkpoint = await openSafetensors(createNodePlatform(), source, 'model.safetensors');
  for (const stored of checkpoint.names()) {
    const name = GGUF_NAMES.reduce((given, [own, other]) => given.replace(own, other), stored);
    const shape = checkpoint.tensor(stored)!.shape.filter((size, i, all) => !(all.length === 3 && i === 1 && size === 1));
    let data = await checkpoint.read(stored);
    if (name.endsWith('ssm_a')) data = data.map((value) => -Math.exp(value));
    if (/norm/.test(name) && !/ssm_norm/.test(name)) data = data.map((value) => value + 1);
    tensors[name] = { dimensions: shape.toReversed(), type: 0, data: new Uint8Array(data.buffer, data.byteOffset, data.byteLength) };
  }
  await checkpoint.close();
  const folder = mkdtempSync(join(tmpdir(), 'parley-mtp-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'model.gguf'), ggufFile({ metadata, tensors }));
  const { prompt, first } = readJson(source, 'golden.json') as unknown as Golden;
  const golden = await openSafetensors(createNodePlatform(), source, 'golden.safetensors');
  const expected = await golden.read('guesses');
  await golden.close();
  const harness = await HeadHarness.load(device, join(folder, 'model.gguf'));
  await harness.step(prompt);
  const guesses = await harness.guess(first, 3);
  expectClose('guesses of a GGUF file', Float32Array.from(guesses.flatMap((row) => [...row])), expected, 1e-6);
});

/** A copy of a fixture with a tokenizer; `change` gives tensors other values. */
async function copyOf(
  name: string,
  change?: (tensor: string, values: Float32Array, shape: readonly number[]) => Float32Array | undefined,
): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'parley-mtp-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  cpSync(join(FIXTURES, name), folder, { recursive: true });
  writeNumberTokenizer(folder, VOCABULARY);
  if (!change) return folder;
  const checkpoint = await openSafetensors(createNodePlatform(), folder);
  const tensors: Record<string, Tensors[string]> = {};
  for (const tensor of checkpoint.names()) {
    const { shape } = checkpoint.tensor(tensor)!;
    const data = change(tensor, await checkpoint.read(tensor), shape);
    if (data) tensors[tensor] = { shape, data };
  }
  await checkpoint.close();
  writeFileSync(join(folder, 'model.safetensors'), safetensorsFile(tensors));
  return folder;
}

/**
 * A checkpoint whose head is often right: what a layer adds to the residual stream is `scale` of what it was, and the head hands the embedding on to the last norm
 * as it is. At 0 the next token hangs on the last one alone, and the head is always right.
 */
function agreeing(scale: number): Promise<string> {
  let last: Float32Array | undefined;
  return copyOf('qwen3_5-last', (tensor, values, [, columns = 1]) => {
    if (tensor === 'model.norm.weight') last = values;
    if (/^mtp\..*(o_proj|down_proj)/.test(tensor)) return values.fill(0);
    if (/(o_proj|out_proj|down_proj)/.test(tensor)) return values.map((value) => scale * value);
    if (tensor === 'mtp.fc.weight') return values.map((_, i) => (i % columns === Math.floor(i / columns) ? 1 : 0));
    if (tensor.startsWith('mtp.pre_fc_norm')) return values.fill(0);
    return tensor === 'mtp.norm.weight' ? last! : values;
  });
}

/** Prompts of 1 to 100 tokens, some of which begin as others do; greedy and with seeds. */
function requestsOf(count: number): ChatRequest[] {
  const rng = createRng(11);
  const tokens = (length: number): number[] => Array.from({ length }, () => rng.integer(VOCABULARY));
  const shared = tokens(70);
  return Array.from({ length: count }, (_, i) => {
    const prompt = [...(i % 3 === 0 ? shared.slice(0, 20 + rng.integer(50)) : []), ...tokens(1 + rng.integer(30))];
    const sampling = i % 2 === 0 ? { temperature: 0 } : { temperature: 0.6, topP: 0.9, seed: 70 + i };
    return { ...greedyAfter(prompt, 1 + rng.integer(40)), sampling, logprobs: 0 };
  });
}

describe('answers are those without guesses', () => {
  const requests = requestsOf(10);

  /** Answers, asked at once and again in the other order; and how often a guess was right. */
  const ask = (folder: string, config: Partial<EngineConfig>, asked = requests) =>
    withChat(device, folder, { maxRunningRequests: 4, contextLength: 256, chunkedPrefillSize: 32, ...config }, async (engine) => {
      const all = async (some: readonly ChatRequest[]) => {
        const answers = await Promise.all(some.map((request) => answer(engine, request)));
        return answers.map(({ text, logprobs }) => ({ text, logprobs }));
      };
      const first = await all(asked);
      expect((await all([...asked].reverse())).reverse()).toEqual(first);
      const { draftedTokens, acceptedTokens, cachedTokens, kvPagesUsed, kvPagesTotal: pages } = engine.status();
      expect(kvPagesUsed).toBe(0);
      const { memory } = engine.info;
      return {
        answers: first,
        drafted: draftedTokens,
        right: acceptedTokens / draftedTokens,
        cached: cachedTokens,
        pages,
        memory: memory!,
      };
    });
  const alone = { disableRadixCache: true, disableOverlapSchedule: true, maxRunningRequests: 1 };

  test.each([
    { name: 'none', folder: () => copyOf('qwen3_5-last'), least: 0, most: 0.1, configs: [{}] },
    {
      name: 'some',
      folder: () => agreeing(0.001),
      least: 0.2,
      most: 0.95,
      configs: [{}, { disableRadixCache: true }, { disableOverlapSchedule: true, speculativeNumDraftTokens: 1 }, { speculativeNumDraftTokens: 6, chunkedPrefillSize: 16 }], // prettier-ignore
    },
    // Draws are not always the likeliest token, and greedy answers are.
    { name: 'all but draws', folder: () => agreeing(0), least: 0.6, most: 0.99, configs: [{ speculativeNumDraftTokens: 5 }] },
    { name: 'none, of experts', folder: () => copyOf('qwen3_5_moe'), least: 0, most: 0.1, configs: [{}] },
  ])('where $name of them are right', async ({ folder, least, most, configs }) => {
    const path = await folder();
    const plain = await ask(path, alone);
    expect(plain.drafted).toBe(0);
    expect(new Set(plain.answers.map(({ text }) => text)).size).toBe(requests.length);
    for (const config of configs) {
      const guessing = await ask(path, { ...HEAD, ...config });
      expect(guessing.answers).toEqual(plain.answers);
      expect(guessing.drafted).toBeGreaterThan(50);
      expect(guessing.right).toBeGreaterThanOrEqual(least);
      expect(guessing.right).toBeLessThanOrEqual(most);
      expect(guessing.cached > 0).toBe(!('disableRadixCache' in config));
    }
  });

  test('also where prompts take subgroup matrices', async (context) => {
    // Such as lavapipe before Mesa 26: this would repeat the tests above.
    if (!hasMatrices(device.caps)) context.skip('this adapter has no subgroup matrices, so that fast is invariant');
    const fast = { numerics: 'fast', dtype: 'f16' } as const;
    const path = await agreeing(0.001);
    const plain = await ask(path, { ...alone, ...fast });
    const guessing = await ask(path, { ...HEAD, ...fast });
    expect(guessing.answers).toEqual(plain.answers);
    expect(guessing.drafted).toBeGreaterThan(50);
  });

  test('with int8 pages', async () => {
    const path = await agreeing(0.001);
    const int8 = { kvCacheDtype: 'int8' } as const;
    const some = requests.slice(0, 5);
    expect((await ask(path, { ...int8, ...HEAD }, some)).answers).toEqual((await ask(path, { ...int8, ...alone }, some)).answers);
  });

  test('where pages are short, so that sequences lose theirs and begin again', async () => {
    const path = await agreeing(0.001);
    const long = requests.slice(0, 5).map((request) => ({ ...request, maxTokens: 110 }));
    const plain = await ask(path, alone, long);
    const { memory } = await ask(path, HEAD, []);
    // A quarter of what is left goes to states, of which there are enough.
    const deviceMemory = device.stats.bufferBytes + memory.weightBytes + memory.activationBytes + 4 * memory.stateBytes!;
    const tight = await ask(path, { ...HEAD, memFractionStatic: 1, deviceMemory }, long);
    // Four of them have 7 pages and more each.
    expect(tight.pages).toBeLessThan(4 * 7);
    expect(tight.answers).toEqual(plain.answers);
    expect(tight.right).toBeGreaterThan(0.2);
  });

  test('a cached prefix has the keys of the head, which is as often right behind it', async () => {
    const rng = createRng(5);
    const prompt = Array.from({ length: 70 }, () => rng.integer(VOCABULARY));
    await withChat(device, await agreeing(0), HEAD, async (engine) => {
      const request = greedyAfter(prompt, 30);
      const first = await answer(engine, request);
      const before = engine.status();
      const second = await answer(engine, request);
      const { draftedTokens, acceptedTokens } = engine.status();
      expect(second.cachedTokens).toBe(64);
      expect(second.text).toBe(first.text);
      expect(draftedTokens - before.draftedTokens).toBe(before.draftedTokens);
      expect(acceptedTokens - before.acceptedTokens).toBe(before.acceptedTokens);
      expect(acceptedTokens).toBe(draftedTokens);
    });
  });
});

describe('a head that is not there', () => {
  test('without the setting its weights are left out, also of the plan', async () => {
    const path = await copyOf('qwen3_5-last');
    const bare = await copyOf('qwen3_5-last', (tensor, values) => (tensor.startsWith('mtp.') ? undefined : values));
    const info = (folder: string, config: Partial<EngineConfig>) => withChat(device, folder, { dtype: 'f32', ...config }, (engine) => Promise.resolve(engine.info)); // prettier-ignore
    const [without, withHead, never] = [await info(path, {}), await info(path, HEAD), await info(bare, {})];
    expect([without.parameters, without.weightBytes, without.memory!.weightBytes]).toEqual([never.parameters, never.weightBytes, never.memory!.weightBytes]); // prettier-ignore
    const head = 36 * 72 + (4 * 7 + 2) * 48 * 36 / 2 + 3 * 44 * 36; // prettier-ignore
    expect(withHead.parameters - without.parameters).toBeGreaterThan(head);
    expect(withHead.memory!.weightBytes - without.memory!.weightBytes).toBeGreaterThan(4 * head);
    expect(withHead.memory!.kvBytes / withHead.memory!.kvPages).toBe((2 * without.memory!.kvBytes) / without.memory!.kvPages);
  });

  test.each([
    ['a checkpoint without one', {}, /parley-mtp-\w+ has no head that guesses: no tensor of it is called mtp/],
    ['guesses from earlier text beside', { speculativeNgram: true }, /guessed from earlier text or by a head, not both/],
    ['a split', { tpSize: 2 }, /the head that guesses is not split over 2 adapters/],
  ])('%s is refused', async (_, config, message) => {
    const bare = await copyOf('qwen3_5-last', (tensor, values) => (tensor.startsWith('mtp.') ? undefined : values));
    await expect(withChat(device, bare, { ...HEAD, ...config }, () => Promise.resolve())).rejects.toThrow(message);
  });

  test('an architecture without one is refused', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'parley-mtp-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    cpSync(join(FIXTURES, '..', 'llama-tiny-random', 'llama'), folder, { recursive: true });
    await expect(withChat(device, folder, HEAD, () => Promise.resolve())).rejects.toThrow(
      /is of an architecture without a head that guesses/,
    );
  });

  test.each([
    [{ mtp_num_hidden_layers: 0 }, /mtp_num_hidden_layers is 0, expected 1/],
    [{ mtp_num_hidden_layers: 2 }, /mtp_num_hidden_layers is 2, expected 1/],
    [{ mtp_use_dedicated_embeddings: true }, /mtp_use_dedicated_embeddings is true, expected false/],
  ])('config.json with %j is refused by name', (fields, message) => {
    const json = { ...readJson(join(FIXTURES, 'qwen3_5-last'), 'config.json'), ...fields };
    expect(() => decoderFor(json).withHead!.parseConfig(json)).toThrow(message);
  });
});
