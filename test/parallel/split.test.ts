/** A split model against the same model on one device: the same tokens, however it is split and whatever is asked of it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ChatRequest } from '../../engine/api.ts';
import { resolveConfig } from '../../engine/config.ts';
import type { EngineConfig } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { ChatEngine } from '../../engine/tasks/chat-engine.ts';
import { testDeviceForRanks } from '../support/device.ts';
import { writeRandomCheckpoint } from '../support/random-checkpoint.ts';
import { answer, greedy, greedyAfter, withChat } from '../support/split-chat.ts';
import type { Answer } from '../support/split-chat.ts';
import { THOROUGH } from '../support/thorough.ts';

const BUNDLED = fileURLToPath(new URL('../../models/parley-chat', import.meta.url));
const SPLITS = [
  { tpSize: 2, ppSize: 1 },
  { tpSize: 4, ppSize: 1 },
  { tpSize: 1, ppSize: 2 },
  { tpSize: 2, ppSize: 2 },
] as const;

let device: Device;
beforeAll(async () => {
  device = await testDeviceForRanks();
});
afterAll(() => device.close());

const answers = (folder: string, config: Partial<EngineConfig>, requests: readonly ChatRequest[]): Promise<Answer[]> =>
  withChat(device, folder, config, (engine) => Promise.all(requests.map((request) => answer(engine, request))));

describe('the bundled model gives the same greedy tokens', () => {
  const requests = [greedy('What is the capital of France?'), greedy('Tell me a story about a dog and a cat who live by the sea.')];
  let expected: Answer[];
  let parameters: number;
  beforeAll(async () => {
    expected = await answers(BUNDLED, {}, requests);
    parameters = await withChat(device, BUNDLED, {}, async ({ info }) => info.parameters);
  });

  test('and counts every parameter once', async () => {
    expect(await withChat(device, BUNDLED, { tpSize: 2, ppSize: 2, rankThreads: false }, async ({ info }) => info.parameters)).toBe(
      parameters,
    );
  });

  // Two threads and four, by both ways to split; the others are below, with random weights.
  test.each(THOROUGH ? SPLITS : SPLITS.filter(({ tpSize }) => tpSize === 2))('split $tpSize x $ppSize, a thread a rank', async (split) => {
    expect(await answers(BUNDLED, split, requests)).toEqual(expected);
  });

  test('split 2 x 2, all ranks in one thread', async () => {
    expect(await answers(BUNDLED, { tpSize: 2, ppSize: 2, rankThreads: false }, requests)).toEqual(expected);
  });
});

test.each([
  [{ ppSize: 99 }, /cannot be dealt to 99 stages/],
  [{ ppSize: 2, ppSplit: [1, 1] }, /layers are not dealt to 2 stages as 1,1/],
  [{ tpSize: 99 }, /cannot be split over 99 adapters/],
] as const)('what cannot be split is refused before an adapter of a part is opened: %j', async (split, message) => {
  await expect(ChatEngine.prepare(device, device.platform, { path: BUNDLED }, resolveConfig(split))).rejects.toThrow(message);
});

test('matrices in blocks give the same greedy tokens, split 2 x 2', async () => {
  const file = fileURLToPath(new URL('../fixtures/gguf/tiny/qwen3-Q8_0.gguf', import.meta.url));
  const requests = [greedyAfter([5, 9, 60, 31, 7], 12)];
  const asInFile: Partial<EngineConfig> = { dtype: 'auto', rankThreads: false };
  expect(await answers(file, { ...asInFile, tpSize: 2, ppSize: 2 }, requests)).toEqual(await answers(file, asInFile, requests));
});

const SPLITS_OF_FEW_LAYERS = [...SPLITS, { tpSize: 3, ppSize: 1 }, { tpSize: 1, ppSize: 3 }];
describe.each([
  { heads: 4, kvHeads: 1, few: [1, 2] },
  { heads: 4, kvHeads: 2, few: [0, 4] },
  { heads: 6, kvHeads: 3, few: [3, 4] },
  { heads: 8, kvHeads: 8, few: [3, 5] },
])('random weights, $heads heads over $kvHeads key/value heads', ({ heads, kvHeads, few }) => {
  const folder = mkdtempSync(join(tmpdir(), 'parley-split-'));
  const prompts = [[5, 9, 200, 31, 7, 8, 160, 2, 3], [77], Array.from({ length: 70 }, (_, i) => (i * 37 + 11) % 250)];
  const requests = prompts.map((prompt) => greedyAfter(prompt));
  let expected: Answer[];
  beforeAll(async () => {
    writeRandomCheckpoint(
      folder,
      { hidden: 64, intermediate: 84, layers: 3, heads, kvHeads, headDim: 16, vocabulary: 250, maxPositions: 256 },
      kvHeads,
    );
    expected = await answers(folder, {}, requests);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const splits = THOROUGH ? SPLITS_OF_FEW_LAYERS : few.map((i) => SPLITS_OF_FEW_LAYERS[i]!);
  test.each(splits)('split $tpSize x $ppSize', async (split) => {
    expect(new Set(expected.map(({ text }) => text)).size).toBe(prompts.length);
    expect(await answers(folder, { ...split, rankThreads: false }, requests)).toEqual(expected);
  });
});

/** What one device answers, asked once for all splits. */
const ONE_DEVICE = new Map<string, Promise<unknown>>();
function once<Result>(name: string, ask: () => Promise<Result>): Promise<Result> {
  const known = ONE_DEVICE.get(name) ?? ask();
  ONE_DEVICE.set(name, known);
  return known as Promise<Result>;
}

describe.each([
  { tpSize: 2, ppSize: 1, crowded: true },
  { tpSize: 1, ppSize: 2, crowded: THOROUGH },
])('split $tpSize x $ppSize as on one device', ({ crowded, ...split }) => {
  const schema = {
    type: 'object',
    properties: { city: { type: 'string', maxLength: 12 }, big: { type: 'boolean' } },
    required: ['city', 'big'],
    additionalProperties: false,
  };
  const crowd = Array.from({ length: 32 }, (_, i) => greedy(`${i}: Tell me about the number ${i * 7}.`, 6 + (i % 5)));
  const seeded: ChatRequest[] = [
    { ...greedy('Write a poem.', 20), sampling: { temperature: 1.2, seed: 7 } },
    { ...greedy('Write a poem.', 20), sampling: { temperature: 0.9, seed: 8, topP: 0.8, topK: 40, minP: 0.02 } },
    {
      ...greedy('Write a list.', 20),
      sampling: { temperature: 0.8, seed: 9, repetitionPenalty: 1.3, presencePenalty: 0.5, frequencyPenalty: 0.4 },
    },
    { ...greedy('Say yes.', 12), sampling: { temperature: 0, logitBias: { '300': 100, '4095': -100 } } },
  ];
  const formatted: ChatRequest = {
    ...greedy('Where is the Eiffel tower?', 40),
    ignoreEos: false,
    responseFormat: { type: 'json_schema', schema },
  };
  const reported: ChatRequest = { ...greedy('What is the capital of Italy?', 10), logprobs: 5 };
  // So flat that the samplers' lists of candidates do not settle it.
  const flat: ChatRequest[] = [10, 11].map((seed) => ({
    ...greedy('Write a letter.', 10),
    sampling: { temperature: 3, seed, topP: 0.97 },
    logprobs: 2,
  }));
  const long = greedy(`${'The sea was calm and the sky was blue that day. '.repeat(12)} What colour was the sky?`, 8);

  test(
    `${crowded ? 32 : 8} requests at once, seeds and penalties, a format, log-probabilities, a prompt in chunks and one that is cached`,
    { timeout: 400_000 },
    async () => {
      const ask = (config: Partial<EngineConfig>, beside: readonly ChatRequest[]) =>
        withChat(device, BUNDLED, { maxRunningRequests: 16, ...config }, async (engine) => {
          const all = await Promise.all(
            [...seeded, ...flat, formatted, reported, long, ...beside].map((request) => answer(engine, request)),
          );
          return { all, again: await answer(engine, long) };
        });
      const actual = await ask(split, crowded ? crowd : crowd.slice(0, 8));
      const { all, again } = await once('all', () => ask({}, crowd));
      const expected = { all: all.slice(0, actual.all.length), again };
      const texts = (given: readonly Answer[]): string[] => given.map(({ text, finish }) => `${finish}: ${text}`);
      expect(texts(actual.all)).toEqual(texts(expected.all));
      expect(actual.again.text).toBe(expected.again.text);
      expect(actual.again.cachedTokens).toBe(expected.again.cachedTokens);
      expect(actual.again.cachedTokens).toBeGreaterThan(100);
      const [one, several] = [expected, actual].map(({ all }) => all.flatMap(({ logprobs }) => logprobs));
      expect(several!.map(({ token, top }) => [token, ...top.map((other) => other.token)])).toEqual(
        one!.map(({ token, top }) => [token, ...top.map((other) => other.token)]),
      );
      several!.forEach(({ logprob, top }, i) => {
        expect(logprob).toBeCloseTo(one![i]!.logprob, 3);
        top.forEach((other, j) => expect(other.logprob).toBeCloseTo(one![i]!.top[j]!.logprob, 3));
      });
      expect(one).toHaveLength(30);
    },
  );

  test('guesses are verified', async () => {
    const copy = greedy('Say it again: one two three four five six seven, one two three four five six seven, one two three four', 40);
    const guessing = {
      speculativeNgram: true,
      speculativeNumDraftTokens: 4,
      speculativeNgramMinMatchWindowSize: 2,
      speculativeNgramMaxMatchWindowSize: 4,
    };
    const [expected] = await once('copy', () => answers(BUNDLED, {}, [copy]));
    const { result, accepted } = await withChat(device, BUNDLED, { ...split, ...guessing }, async (engine) => ({
      result: await answer(engine, copy),
      accepted: engine.status().acceptedTokens,
    }));
    expect(result).toEqual(expected);
    expect(accepted).toBeGreaterThan(0);
  });
});
