/** A chat engine with LoRA adapters: answers in one batch are those that each has alone, whatever the settings, and no adapter reads another's keys. */
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ChatRequest } from '../../engine/api.ts';
import { resolveConfig } from '../../engine/config.ts';
import type { EngineConfig } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { ChatEngine } from '../../engine/tasks/chat-engine.ts';
import { testDevice } from '../support/device.ts';
import { writeNumberTokenizer } from '../support/random-checkpoint.ts';
import { answer, greedyAfter } from '../support/split-chat.ts';
import type { Answer } from '../support/split-chat.ts';

const FIXTURES = join(fileURLToPath(new URL('../..', import.meta.url)), 'test', 'fixtures');
const LORAS = join(FIXTURES, 'lora-tiny-random');
const IDS = ['queries-values', 'all-linear', 'one-layer'] as const;
const VOCABULARY = 160;

const golden = (name: string): { readonly prompt: number[]; readonly greedy: number[] } =>
  JSON.parse(readFileSync(join(LORAS, name, 'golden.json'), 'utf8')) as { prompt: number[]; greedy: number[] };

let device: Device;
let folder: string;
beforeAll(async () => {
  device = await testDevice();
  folder = mkdtempSync(join(tmpdir(), 'lora-'));
  cpSync(join(FIXTURES, 'llama-tiny-random', 'llama'), folder, { recursive: true });
  writeNumberTokenizer(folder, VOCABULARY);
});
afterAll(() => {
  device.close();
  rmSync(folder, { recursive: true });
});

const SMALL: Partial<EngineConfig> = { maxRunningRequests: 8, contextLength: 256, dtype: 'f32' };

async function withLoras<T>(ids: readonly string[], settings: Partial<EngineConfig>, use: (engine: ChatEngine) => Promise<T>): Promise<T> {
  const loras = ids.map((id) => ({ id, path: join(LORAS, id) }));
  const config = resolveConfig({ ...SMALL, ...settings });
  const engine = await ChatEngine.load(device, device.platform, { path: folder, ...(ids.length > 0 && { loras }) }, config);
  try {
    return await use(engine);
  } finally {
    await engine.close();
  }
}

const PROMPT = golden(IDS[0]).prompt;

/** Prompts of several lengths that begin alike, each to the model and to its adapters, in turn. */
function requests(maxTokens = 24): ChatRequest[] {
  return Array.from({ length: 12 }, (_, i) => {
    const lora = [undefined, ...IDS][i % 4];
    const prompt = [...PROMPT, ...PROMPT.slice(0, 3 * i)];
    return { ...greedyAfter(prompt, maxTokens), logprobs: 2, ...(lora && { lora }) };
  });
}

const bare = ({ text, logprobs }: Answer): string => JSON.stringify([text, logprobs]);

async function inTurn(engine: ChatEngine, asked: readonly ChatRequest[]): Promise<string[]> {
  const answers: string[] = [];
  for (const request of asked) answers.push(bare(await answer(engine, request)));
  return answers;
}

describe('answers of the model and of three adapters', () => {
  let alone: readonly string[];
  let plain: readonly string[];
  beforeAll(async () => {
    plain = await withLoras([], { disableRadixCache: true }, (engine) => inTurn(engine, requests().filter(({ lora }) => lora === undefined))); // prettier-ignore
    alone = await withLoras(IDS, { disableRadixCache: true }, (engine) => inTurn(engine, requests()));
  });

  test('without an adapter are those of a model that has none, log-probabilities included', () => {
    expect(alone.filter((_, i) => i % 4 === 0)).toEqual(plain);
    expect(new Set(alone).size).toBe(12);
  });

  test.each<Partial<EngineConfig> & { readonly title: string }>([
    { title: 'steps submitted one ahead, and shared prefixes' },
    { title: 'one step at a time', disableOverlapSchedule: true, disableRadixCache: true },
    { title: 'prompts in chunks', chunkedPrefillSize: 16 },
    { title: 'guesses from earlier text', speculativeNgram: true },
    { title: 'three at a time', maxRunningRequests: 3 },
  ])('all at once are those alone: $title', async ({ title: _, ...settings }) => {
    const together = await withLoras(IDS, settings, (engine) => Promise.all(requests().map((request) => answer(engine, request))));
    expect(together.map(bare)).toEqual(alone);
    expect(device.errors).toEqual([]);
  });

  test('all at once are those alone: so few pages that sequences are retracted', async () => {
    const own = await testDevice();
    const loras = IDS.map((id) => ({ id, path: join(LORAS, id) }));
    const config = (settings: Partial<EngineConfig>): EngineConfig => resolveConfig({ ...SMALL, memFractionStatic: 1, ...settings });
    const { demand } = await ChatEngine.prepare(own, own.platform, { path: folder, loras }, config({}));
    // Room for 16 pages of two layers, which is one sequence of 256 positions, where eight run with 6 to 8 pages each.
    const deviceMemory = demand!.weights + demand!.activations + own.stats.bufferBytes + 16 * (2 * 2 * 16 * 2 * 16 * 4);
    const engine = await ChatEngine.load(own, own.platform, { path: folder, loras }, config({ deviceMemory }));
    expect(engine.status().kvPagesTotal).toBe(16);
    const together = await Promise.all(requests().map((request) => answer(engine, request)));
    expect(together.map(bare)).toEqual(alone);
    await engine.close();
    own.close();
  });

  test('are those of PEFT', async () => {
    await withLoras(IDS, {}, async (engine) => {
      const texts = await Promise.all(IDS.map(async (lora) => (await answer(engine, { ...greedyAfter(PROMPT, 64), lora })).text));
      expect(texts.map((text) => text.trim().split(/\s+/).map(Number))).toEqual(IDS.map((lora) => golden(lora).greedy));
    });
  });
});

test('keys are shared within an adapter and never between adapters, whatever salt a request gives', async () => {
  await withLoras(IDS, {}, async (engine) => {
    const cached = async (more: Partial<ChatRequest>): Promise<number> =>
      (await answer(engine, { ...greedyAfter(PROMPT, 2), ...more })).cachedTokens;
    expect(await cached({})).toBe(0);
    expect(await cached({})).toBe(32);
    expect(await cached({ lora: IDS[0] })).toBe(0);
    expect(await cached({ lora: IDS[0] })).toBe(32);
    expect(await cached({ lora: IDS[1] })).toBe(0);
    expect(await cached({ lora: IDS[0], cacheSalt: 'mine' })).toBe(0);
    expect(await cached({ lora: IDS[0], cacheSalt: 'mine' })).toBe(32);
    // What the adapter's own namespace might be called.
    for (const cacheSalt of ['1', '1 ', '1 mine', '0 ', IDS[0]]) expect(await cached({ cacheSalt })).toBe(0);
    expect(await cached({ lora: IDS[1] })).toBe(32);
    expect(await cached({})).toBe(32);
  });
});

test('an adapter that the model does not have is refused by its name, and the others are named', async () => {
  const asked = { ...greedyAfter(PROMPT, 2), lora: 'nobody' };
  const refused = { code: 'invalid_request', param: 'lora' };
  await withLoras(IDS, {}, (engine) =>
    expect(answer(engine, asked)).rejects.toMatchObject({ ...refused, message: `there is no LoRA adapter 'nobody'; there are: ${IDS.join(', ')}` }),
  ); // prettier-ignore
  await withLoras([], {}, (engine) =>
    expect(answer(engine, asked)).rejects.toMatchObject({ ...refused, message: "there is no LoRA adapter 'nobody'; there are: none" }),
  );
});

test.each([
  { title: 'split over two adapters', settings: { tpSize: 2 }, message: 'a model with LoRA adapters cannot be split over 2 GPUs' },
  { title: 'in two groups of layers', settings: { ppSize: 2 }, message: 'a model with LoRA adapters cannot be split over 2 GPUs' },
])('a model $title does not take adapters', async ({ settings, message }) => {
  const loading = withLoras(['one-layer'], settings, async () => undefined);
  await expect(loading).rejects.toMatchObject({ code: 'unsupported', message: expect.stringContaining(message) as string });
});

test('memory that adapters take is planned', async () => {
  const planned = async (ids: readonly string[]) => {
    const loras = ids.map((id) => ({ id, path: join(LORAS, id) }));
    const { demand } = await ChatEngine.prepare(device, device.platform, { path: folder, loras }, resolveConfig(SMALL));
    return demand!;
  };
  const [without, one, all] = [await planned([]), await planned(['one-layer']), await planned(IDS)];
  // Rank 2, padded to 4, of k_proj [32, 64] and up_proj [100, 64] in one layer.
  expect(one.weights - without.weights).toBe(4 * 4 * (32 + 64 + 100 + 64));
  expect(all.weights).toBeGreaterThan(one.weights);
  expect(all.activations).toBeGreaterThan(one.activations);
  expect(one.activations).toBeGreaterThan(without.activations);
});
