/** What storing keys and values in fewer bits costs, on the bundled chat model: logits, perplexity, and how long greedy answers stay the same. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import type { KVType } from '../../engine/ops/kv.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { Tokenizer } from '../../engine/text/tokenizer.ts';
import { createRng } from '../../engine/util/rng.ts';
import { withWeights } from '../../engine/weights/model-folder.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import { nmse } from '../support/compare.ts';
import { DecoderHarness, argmax } from '../support/decoder-harness.ts';
import { testDevice } from '../support/device.ts';
import { writeRandomCheckpoint } from '../support/random-checkpoint.ts';
import { safetensorsFile } from '../support/safetensors-file.ts';
import { firstOf } from '../support/thorough.ts';

const FOLDER = join(fileURLToPath(new URL('../..', import.meta.url)), 'models', 'parley-chat');
const HEAD_DIM = 64;
const CONTEXT = 512;
const ANSWER = 64;

/** Turns of a chat, as the model's template writes them. */
const turn = (role: 'user' | 'assistant', text: string): string => `<|im_start|>${role}\n${text}<|im_end|>\n`;
const QUESTIONS = [
  'What is the capital of France?',
  'Tell me a short story about a dog.',
  'What is two plus three?',
  'How are you today?',
  'What do bees make?',
  'Can you help me plan a trip to the sea?',
];
const TEXT = [
  turn('user', 'Hello, my name is Anna and I live in a small town near the sea.'),
  turn('assistant', 'Hello Anna! It is nice to meet you. What do you like to do in your town?'),
  turn('user', 'In the morning I walk along the beach with my dog. Then I work in a library until four.'),
  turn('assistant', 'That sounds like a good day. Which books do you like to read?'),
  turn('user', 'I like old stories about ships and storms. What is the capital of Italy?'),
  turn('assistant', 'The capital of Italy is Rome.'),
  turn('user', 'Please tell me what the weather will be like tomorrow, and what I should wear when it rains.'),
  turn('assistant', 'I do not know the weather tomorrow. When it rains, wear a coat and warm shoes, and take an umbrella with you.'),
].join('');

let device: Device;
let tokenizer: Tokenizer;
const harnesses = new Map<KVType, DecoderHarness>();

beforeAll(async () => {
  device = await testDevice();
  tokenizer = await Tokenizer.load(await openModelFolder(createNodePlatform(), FOLDER));
  const exact = await DecoderHarness.load(device, FOLDER, { kvType: 'f32', sequences: QUESTIONS.length, context: CONTEXT });
  harnesses.set('f32', exact);
  for (const kvType of ['f16', 'int8'] as const) harnesses.set(kvType, await exact.over(kvType, QUESTIONS.length));
});
afterAll(() => device.close());

/** Logits of every token of the text after those before it: the first half at once, the second token by token, as a server has them. */
async function logitsOf(kvType: KVType, tokens: readonly number[]): Promise<Float32Array[]> {
  const harness = harnesses.get(kvType)!;
  const half = tokens.length >> 1;
  const rows = await harness.step([{ sequence: 0, start: 0, tokens: tokens.slice(0, half) }]);
  for (let i = half; i < tokens.length - 1; i++) rows.push(...(await harness.step([{ sequence: 0, start: i, tokens: [tokens[i]!] }])));
  return rows;
}

function perplexity(rows: readonly Float32Array[], tokens: readonly number[]): number {
  const losses = rows.map((row, i) => {
    const top = Math.max(...row);
    return Math.log(row.reduce((sum, logit) => sum + Math.exp(logit - top), 0)) + top - row[tokens[i + 1]!]!;
  });
  return Math.exp(losses.reduce((a, b) => a + b, 0) / losses.length);
}

/** Greedy answers to several prompts at once. */
async function answers(kvType: KVType, prompts: readonly (readonly number[])[]): Promise<number[][]> {
  const harness = harnesses.get(kvType)!;
  const answered: number[][] = [];
  for (const [sequence, tokens] of prompts.entries()) {
    answered.push([argmax((await harness.step([{ sequence, start: 0, tokens }])).at(-1)!)]);
  }
  for (let count = 1; count < ANSWER; count++) {
    const chunks = prompts.map((prompt, sequence) => ({
      sequence,
      start: prompt.length + count - 1,
      tokens: [answered[sequence]!.at(-1)!],
    }));
    (await harness.step(chunks)).forEach((logits, sequence) => answered[sequence]!.push(argmax(logits)));
  }
  return answered;
}

describe('keys and values in fewer bits', () => {
  let tokens: readonly number[];
  const logits = new Map<KVType, Float32Array[]>();
  beforeAll(async () => {
    tokens = tokenizer.encode(TEXT, { addSpecialTokens: false });
    for (const kvType of harnesses.keys()) logits.set(kvType, await logitsOf(kvType, tokens));
  });

  // Bounds are about three times what was measured (test/bench/SPEED.md).
  test.each([
    ['f16', 1e-6, 1.001],
    ['int8', 6e-4, 1.02],
  ] as const)('%s: logits and perplexity stay where they were', (kvType, error, ratio) => {
    // prettier-ignore
    const exact = logits.get('f32')!;
    const stored = logits.get(kvType)!;
    const worst = Math.max(...stored.map((row, i) => nmse(row, exact[i]!)));
    const mean = stored.reduce((sum, row, i) => sum + nmse(row, exact[i]!), 0) / stored.length;
    const agree = stored.filter((row, i) => argmax(row) === argmax(exact[i]!)).length / stored.length;
    const [before, after] = [perplexity(exact, tokens), perplexity(stored, tokens)];
    console.log(`${kvType}: ${tokens.length} tokens, logit NMSE mean ${mean.toExponential(1)} worst ${worst.toExponential(1)}, same best token ${(100 * agree).toFixed(1)} %, perplexity ${before.toFixed(4)} -> ${after.toFixed(4)}`); // prettier-ignore
    expect(mean).toBeLessThan(error);
    expect(after / before).toBeLessThan(ratio);
    expect(agree).toBeGreaterThan(0.95);
  });

  test('greedy answers of 64 tokens mostly stay the same with int8', async () => {
    const prompts = QUESTIONS.map((question) =>
      tokenizer.encode(`${turn('user', question)}<|im_start|>assistant\n`, { addSpecialTokens: false }),
    );
    const [exact, stored] = [await answers('f32', prompts), await answers('int8', prompts)];
    const same = exact.map((tokens, i) => {
      const first = tokens.findIndex((token, at) => token !== stored[i]![at]);
      return first === -1 ? ANSWER : first;
    });
    console.log(`int8: tokens before the first difference ${same.join(', ')}`);
    expect(same.reduce((a, b) => a + b, 0) / same.length).toBeGreaterThan(ANSWER / 4);
  });
});

/** What is large in every head's keys: `bias` is added to channels, or the weights of channels are multiplied by `gain`. */
interface Large {
  readonly channels: readonly number[];
  readonly bias?: number;
  readonly gain?: number;
}

/** A model as a Qwen2 with large channels in its keys; no query, value or other key has a bias. */
async function writeLarge(folder: string, source: string, headDim: number, { channels, bias = 0, gain = 1 }: Large): Promise<void> {
  const model = await openModelFolder(createNodePlatform(), source);
  const config = await model.json('config.json');
  const tensors: Record<string, { shape: readonly number[]; data: Float32Array }> = {};
  await withWeights(model, async (checkpoint) => {
    for (const name of checkpoint.names()) {
      const { shape } = checkpoint.tensor(name)!;
      const data = await checkpoint.read(name);
      tensors[name] = { shape, data };
      const projection = /^(.*self_attn\.([qkv])_proj)\.weight$/.exec(name);
      if (!projection) continue;
      const isLarge = (row: number): boolean => projection[2] === 'k' && channels.includes(row % headDim);
      const columns = shape[1]!;
      data.forEach((value, i) => (data[i] = isLarge(Math.floor(i / columns)) ? value * gain : value));
      const biases = Float32Array.from({ length: shape[0]! }, (_, row) => (isLarge(row) ? bias : 0));
      tensors[`${projection[1]}.bias`] = { shape: [biases.length], data: biases };
    }
  });
  writeFileSync(join(folder, 'model.safetensors'), safetensorsFile(tensors));
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...config, model_type: 'qwen2' }));
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'parley-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** Mean logit NMSE of int8 pages against f32 ones over a prompt. */
async function int8Error(folder: string, tokens: readonly number[], name: string): Promise<number> {
  const harness = await DecoderHarness.load(device, folder, { kvType: 'f32', sequences: 1, context: CONTEXT });
  const exact = await harness.step([{ sequence: 0, start: 0, tokens }]);
  const stored = await (await harness.over('int8', 1)).step([{ sequence: 0, start: 0, tokens }]);
  const errors = stored.map((row, i) => nmse(row, exact[i]!));
  const mean = errors.reduce((a, b) => a + b, 0) / errors.length;
  console.log(`int8, ${name}: logit NMSE mean ${mean.toExponential(1)} worst ${Math.max(...errors).toExponential(1)}`);
  return mean;
}

describe('keys with channels far larger than the others', () => {
  // The slowest channel to turn is where trained models have it: all keys share the bias. In a fast one, scores of forty turn small errors into other choices.
  // There this model cannot be had below 1.6e-3: that much it costs when only the bias is exact and bytes hold the rest. Channels d and d + 32 are one pair.
  test.each<Large & { readonly bound: number }>([
    { channels: [], bound: 1e-3 },
    { channels: [31], bias: 100, bound: 1e-3 },
    { channels: [31], bias: 1000, bound: 1e-3 },
    { channels: [28, 29, 30, 31], bias: 100, bound: 1e-3 },
    { channels: [4], bias: 100, bound: 3e-3 },
    { channels: [0], bias: 100, bound: 3e-3 },
    { channels: [4, 36], bias: 100, bound: 3e-3 },
    { channels: [4, 31], bias: 100, bound: 3e-3 },
    { channels: [4, 52], bias: 100, bound: 3e-3 },
    { channels: [4], gain: 5, bound: 1e-3 },
  ])('int8 pages keep the logits of the bundled model: %o', async ({ bound, ...large }) => {
    const folder = temporaryFolder();
    await writeLarge(folder, FOLDER, HEAD_DIM, large);
    const tokens = tokenizer.encode(TEXT, { addSpecialTokens: false });
    expect(await int8Error(folder, tokens, JSON.stringify(large))).toBeLessThan(bound);
  });

  const largeOnes = (headDim: number): readonly Large[] => [
    { channels: [] },
    { channels: [4], bias: 100 },
    { channels: [headDim / 2 - 1], bias: 100 },
    { channels: [2, headDim / 2 - 2], bias: 100 },
    { channels: [2, 6], bias: 100 },
    { channels: [4], gain: 20 },
  ];
  const random = firstOf(1, [48, 64, 80]).flatMap((headDim) => largeOnes(headDim).map((large) => [headDim, large] as const));
  test.each(random)('int8 pages keep the logits of a random model of two layers with heads of %i: %o', async (headDim, large) => {
    const [source, folder] = [temporaryFolder(), temporaryFolder()];
    const shape = { hidden: 128, intermediate: 256, layers: 2, heads: 4, kvHeads: 2, headDim, vocabulary: 200, maxPositions: CONTEXT };
    writeRandomCheckpoint(source, shape);
    await writeLarge(folder, source, headDim, large);
    const rng = createRng(3);
    const tokens = Array.from({ length: 200 }, () => rng.integer(shape.vocabulary));
    expect(await int8Error(folder, tokens, `random, ${headDim} channels, ${JSON.stringify(large)}`)).toBeLessThan(1e-3);
  });
});
