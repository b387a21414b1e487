/**
 * Every family of chat models, as a tiny random checkpoint (test/tools/dump_llama.py): against PyTorch, and against itself: the same bits however the work
 * is cut, the same answers from cached prefixes and split over devices.
 */
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { floatStorage } from '../../engine/config.ts';
import type { EngineConfig } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { MODEL_TYPES, expectFamily } from '../../engine/model-types.ts';
import { decoderFor } from '../../engine/models/registry.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import type { Json } from '../../engine/util/json.ts';
import { openSafetensors } from '../../engine/weights/safetensors.ts';
import { differing, expectClose } from '../support/compare.ts';
import { DecoderHarness, argmax } from '../support/decoder-harness.ts';
import { testDeviceForRanks } from '../support/device.ts';
import { unlessPassed } from '../support/known-cases.ts';
import { writeNumberTokenizer } from '../support/random-checkpoint.ts';
import { answer, greedyAfter, withChat } from '../support/split-chat.ts';
import type { Answer } from '../support/split-chat.ts';
import { THOROUGH, firstOf } from '../support/thorough.ts';

const FIXTURES = fileURLToPath(new URL('../fixtures/llama-tiny-random', import.meta.url));
const MODELS = fileURLToPath(new URL('../../engine/models', import.meta.url));

interface Golden {
  readonly prompt: number[];
  readonly greedy: number[];
}
const readConfig = (folder: string): Json => JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')) as Json;
const flat = (rows: readonly Float32Array[]): Float32Array => Float32Array.from(rows.flatMap((row) => [...row]));
/** Families of which a fixture has matrices with rows of whole blocks. */
const packedFamilies = new Set<string>();
const readGolden = (folder: string): Golden => JSON.parse(readFileSync(join(folder, 'golden.json'), 'utf8')) as Golden;

const RECURRENT = /has recurrent layers, which cannot be split over 2 adapters/;
const FULL_NORMS = /norms over all heads of queries or keys cannot be split over 2 adapters/;
const BESIDE_MLP = /experts beside an MLP cannot be split over several adapters/;
const LAYER_INPUTS = /embeddings for every layer cannot be split/;
/** What is not split by heads, or not at all, by fixture, and what refuses it. */
const UNSPLIT: Readonly<Record<string, { readonly tpSize: RegExp; readonly ppSize?: RegExp }>> = {
  olmo2: { tpSize: FULL_NORMS },
  olmo3: { tpSize: FULL_NORMS },
  olmoe: { tpSize: FULL_NORMS },
  minimax_m2: { tpSize: FULL_NORMS },
  flex_olmo: { tpSize: FULL_NORMS },
  qwen3_5: { tpSize: RECURRENT, ppSize: RECURRENT },
  'qwen3_5-last': { tpSize: RECURRENT, ppSize: RECURRENT },
  qwen3_5_moe: { tpSize: RECURRENT, ppSize: RECURRENT },
  qwen3_next: { tpSize: RECURRENT, ppSize: RECURRENT },
  lfm2: { tpSize: RECURRENT, ppSize: RECURRENT },
  lfm2_moe: { tpSize: RECURRENT, ppSize: RECURRENT },
  'granitemoehybrid-mamba': { tpSize: RECURRENT, ppSize: RECURRENT },
  'granitemoehybrid-experts': { tpSize: RECURRENT, ppSize: RECURRENT },
  nemotron_h: { tpSize: RECURRENT, ppSize: RECURRENT },
  'nemotron_h-experts': { tpSize: RECURRENT, ppSize: RECURRENT },
  falcon_h1: { tpSize: RECURRENT, ppSize: RECURRENT },
  'falcon_h1-norm': { tpSize: RECURRENT, ppSize: RECURRENT },
  'gemma4-experts': { tpSize: BESIDE_MLP },
  gemma3n: { tpSize: LAYER_INPUTS, ppSize: LAYER_INPUTS },
  gemma4: { tpSize: LAYER_INPUTS, ppSize: LAYER_INPUTS },
};

let device: Device;
beforeAll(async () => {
  device = await testDeviceForRanks();
});
afterAll(() => device.close());

const SPLITS = [
  { tpSize: 2, ppSize: 1 },
  { tpSize: 1, ppSize: 2 },
];

const NAMES = readdirSync(FIXTURES);
const familyOf = (name: string): string => expectFamily(readConfig(join(FIXTURES, name)), 'chat');

const shapeOf = (name: string) => {
  const json = readConfig(join(FIXTURES, name));
  return decoderFor(json).parseConfig(json);
};

/** What the models keep of earlier tokens, sizes aside: which kinds of pages their layers have, and which states. */
const MEMORIES = NAMES.map((name) => {
  const { layers, pages, state = {} } = shapeOf(name);
  const has = (part: object): string =>
    Object.entries(part)
      .flatMap(([key, value]) => (value === undefined ? [] : [key]))
      .join();
  return [...new Set(pages.map(has))]
    .sort()
    .concat(has(state), pages.length < layers ? 'shared' : '')
    .join('; ');
});
/** Models that are no different for a cache: in a short run the first of them is tested for all. */
const isFirstOfMemory = (name: string): boolean => MEMORIES.indexOf(MEMORIES[NAMES.indexOf(name)]!) === NAMES.indexOf(name);

describe.each(NAMES)('%s', (name) => {
  const folder = join(FIXTURES, name);
  const golden = readGolden(folder);
  let stages: Record<string, Float32Array>;
  beforeAll(async () => {
    const checkpoint = await openSafetensors(createNodePlatform(), folder, 'golden.safetensors');
    stages = Object.fromEntries(await Promise.all(checkpoint.names().map(async (stage) => [stage, await checkpoint.read(stage)] as const)));
    await checkpoint.close();
  });

  let own: Promise<DecoderHarness> | undefined;
  /** On the device of the tests it is loaded once, and not if all has passed before. */
  const harnessOn = (on: Device): Promise<DecoderHarness> =>
    on === device ? (own ??= DecoderHarness.load(on, folder)) : DecoderHarness.load(on, folder);

  /** Judges what is read of a harness of this model, unless it has passed before; the tokens that it is asked for are PyTorch's, so that they are known beforehand. */
  const expectOf = async <T>(ask: (harness: DecoderHarness) => Promise<T>, judge: (read: T) => void): Promise<void> => {
    await unlessPassed(device, { expected: [golden, ...Object.entries(stages).flat()] }, async (on) => ask(await harnessOn(on)), judge);
    expect(device.errors).toEqual([]);
  };

  test('every stage of a prompt agrees with PyTorch', () =>
    expectOf(
      async (harness) => {
        const own: Record<string, Float32Array> = {};
        await harness.step([{ sequence: 0, start: 0, tokens: golden.prompt }], (stage, values) => (own[stage] = values));
        return own;
      },
      (own) => {
        expect(Object.keys(own).sort()).toEqual(Object.keys(stages).sort());
        for (const [stage, values] of Object.entries(stages)) expectClose(`${name} ${stage}`, own[stage]!, values, 1e-6);
      },
    ));

  test('64 greedy tokens equal PyTorch, and logits have the same bits as a prefill, in chunks and beside other sequences', () => {
    const all = [...golden.prompt, ...golden.greedy];
    const last = golden.prompt.length - 1;
    return expectOf(
      async (harness) => {
        const stepwise = (await harness.step([{ sequence: 0, start: 0, tokens: golden.prompt }])).slice(-1);
        for (const [i, token] of golden.greedy.slice(0, -1).entries())
          stepwise.push(...(await harness.step([{ sequence: 0, start: golden.prompt.length + i, tokens: [token] }])));
        const whole = await harness.step([{ sequence: 1, start: 0, tokens: all.slice(0, -1) }]);

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
        return { stepwise, whole, chunked };
      },
      ({ stepwise, whole, chunked }) => {
        expect(stepwise.map(argmax)).toEqual(golden.greedy);
        expect(differing(whole.slice(last), stepwise)).toBe(0);
        expect(differing(chunked.slice(last), stepwise)).toBe(0);
      },
    );
  });

  test('five sequences in one batch, prompts of several lengths and decodes, have the bits that they have alone', () => {
    // Others each: of 1, 3, 17, 30 and 24 tokens, to which a decode comes.
    const prompts = [1, 3, 17, 30, 24].map((length, i) => golden.prompt.slice(i, i + length));
    return expectOf(
      async (harness) => {
        const five = await harness.over('f32', 5);
        const first = await five.step(prompts.map((tokens, sequence) => ({ sequence, start: 0, tokens })));
        const second = await five.step(prompts.map(({ length }, sequence) => ({ sequence, start: length, tokens: [7 + sequence] })));
        const one = await harness.over('f32', 1);
        const alone: Float32Array[][] = [];
        for (const [sequence, prompt] of prompts.entries())
          alone.push(await one.step([{ sequence: 0, start: 0, tokens: [...prompt, 7 + sequence] }]));
        return { first, second, alone };
      },
      ({ first, second, alone }) => {
        let at = 0;
        for (const [sequence, { length }] of prompts.entries()) {
          const batched = [...first.slice(at, (at += length)), second[sequence]!];
          expect(differing(alone[sequence]!, batched), `sequence ${sequence}`).toBe(0);
        }
      },
    );
  });

  test('packed to q8_0 it stays near, as far as rows are whole blocks', () => {
    const step = [{ sequence: 0, start: 0, tokens: golden.prompt }];
    return expectOf(
      async (harness) => {
        const { device: on } = harness;
        const packed = await DecoderHarness.load(on, folder, { storage: { ...floatStorage('f32'), quantization: 'q8_0' }, sequences: 1 });
        const isPacked = packed.weightBytes < harness.weightBytes;
        if (isPacked) packedFamilies.add(familyOf(name));
        return { near: await packed.step(step), exact: await (await harness.over('f32', 1)).step(step), isPacked };
      },
      ({ near, exact, isPacked }) => {
        if (!isPacked) expect(differing(near, exact)).toBe(0);
        // A value is off by at most a 254th of its block's largest. PyTorch with the matrices of gemma4 rounded so: 1.7e-2.
        expectClose(`${name} in q8_0`, flat(near), flat(exact), 2e-2);
        if (isPacked) expect(differing(near, exact)).toBeGreaterThan(0);
      },
    );
  });

  // Scores of these weights are ten times those of trained ones, and so is what bytes round away.
  const int8Stays = async (): Promise<void> => {
    if (shapeOf(name).pages.some(({ valuesInKeys }) => valuesInKeys !== undefined)) {
      const harness = await harnessOn(device);
      await expect(harness.over('int8', 1)).rejects.toThrow(/keys that are values too .* cannot be stored in bytes/);
      return;
    }
    await expectOf(
      async (harness) => (await harness.over('int8', 1)).step([{ sequence: 0, start: 0, tokens: golden.prompt }]),
      (rows) => expectClose(`${name} with int8 pages`, flat(rows), stages['logits']!, 2e-2),
    );
  };

  /** An engine of this model with a tokenizer of numbers answers the first `count` requests, one after the other. */
  const ask = async (settings: Partial<EngineConfig>, count = 3): Promise<{ texts: string[]; cached: number }> => {
    const copy = mkdtempSync(join(tmpdir(), 'parley-family-'));
    onTestFinished(() => rmSync(copy, { recursive: true }));
    cpSync(folder, copy, { recursive: true });
    writeNumberTokenizer(copy, Number(readConfig(folder)['vocab_size']));
    // They part in the middle of a page.
    const prompts = [golden.prompt, [...golden.prompt.slice(0, 23), 9, 4, 77], golden.prompt.slice(0, 30)];
    return withChat(device, copy, settings, async (engine) => {
      const answers: Answer[] = [];
      for (const prompt of prompts.slice(0, count)) answers.push(await answer(engine, greedyAfter(prompt, 20)));
      return { texts: answers.map(({ text }) => text), cached: answers.reduce((sum, { cachedTokens }) => sum + cachedTokens, 0) };
    });
  };

  if (THOROUGH || isFirstOfMemory(name)) {
    test('int8 pages stay close to exact ones', int8Stays);

    test('a prefix that is cached changes no answer', async () => {
      const { texts } = await ask({ disableRadixCache: true });
      const again = await ask({});
      expect(again.texts).toEqual(texts);
      expect(again.cached).toBeGreaterThan(0);
    });
  }

  const refused = UNSPLIT[name];
  // The same code cuts the layers of all families: in a short run only those are cut so that refuse a split by heads. Each family is split by heads once.
  const isFirst = name === NAMES.find((other) => familyOf(other) === familyOf(name));
  const splits = refused || THOROUGH ? SPLITS : isFirst ? firstOf(1, SPLITS) : [];
  const count = THOROUGH ? 3 : 1;
  for (const split of splits) {
    test(`split over devices (${JSON.stringify(split)}) it gives the same answer, or is refused by name`, async () => {
      const refusal = split.tpSize > 1 ? refused?.tpSize : refused?.ppSize;
      const asked = ask({ ...split, rankThreads: false }, count);
      if (refusal) await expect(asked).rejects.toThrow(refusal);
      else expect((await asked).texts).toEqual((await ask({ disableRadixCache: true }, count)).texts);
    });
  }
});

test('every family has been packed', () => {
  const families = Object.values(MODEL_TYPES).flatMap(({ task, family }) => (task === 'chat' ? [family] : []));
  expect([...packedFamilies].sort()).toEqual([...new Set(families)].sort());
});

test('the tiny models have the numbers that kernels could stumble over, tied heads and others, and are small', () => {
  const configs = NAMES.map(shapeOf);
  const groups = configs.flatMap(({ heads, pages }) => pages.map(({ kvHeads }) => heads / kvHeads));
  expect([...new Set(groups)]).toEqual(expect.arrayContaining([1, 2, 5, 7]));
  const sizes = configs.flatMap(({ pages }) => pages.map(({ headDim }) => headDim));
  expect([...new Set(sizes)]).toEqual(expect.arrayContaining([48, 80, 256]));
  const tied = NAMES.map((name) => readConfig(join(FIXTURES, name))['tie_word_embeddings']);
  expect([...new Set(tied)]).toEqual(expect.arrayContaining([true, false]));
  const bytes = (folder: string): number => readdirSync(folder).reduce((sum, file) => sum + statSync(join(folder, file)).size, 0);
  expect(NAMES.filter((name) => bytes(join(FIXTURES, name)) > 400_000)).toEqual([]);
});

test('a definition is a page long beside its config', () => {
  const folders = new Set(Object.values(MODEL_TYPES).flatMap(({ task, family }) => (task === 'chat' ? [family] : [])));
  const linesOf = (family: string): number => {
    const files = readdirSync(join(MODELS, family)).filter((file) => file.endsWith('.ts') && file !== 'config.ts');
    return files.reduce((sum, file) => sum + readFileSync(join(MODELS, family, file), 'utf8').split('\n').length - 1, 0);
  };
  expect([...folders].filter((family) => linesOf(family) > 150)).toEqual([]);
});
