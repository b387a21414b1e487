/** The tests of models whose answers do not depend on what else runs, and what they are asked. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { ChatRequest } from '../../engine/api.ts';
import { resolveConfig } from '../../engine/config.ts';
import type { EngineConfig } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { hasMatrices } from '../../engine/ops/linear-matrix.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { ChatEngine } from '../../engine/tasks/chat-engine.ts';
import { createRng } from '../../engine/util/rng.ts';
import { testDevice } from './device.ts';
import { THOROUGH } from './thorough.ts';

const COUNT = 16;
const MAX_TOKENS = 16;

interface Answer {
  readonly text: string;
  readonly logprobs: readonly number[];
}

/** Runs a request; `onToken` hears of every token. */
async function ask(engine: ChatEngine, request: ChatRequest, onToken: (count: number) => void = () => undefined): Promise<Answer> {
  let text = '';
  let count = 0;
  const logprobs: number[] = [];
  for await (const event of engine.chat(request, new AbortController().signal)) {
    if (event.type !== 'delta') continue;
    text += event.text;
    logprobs.push(...(event.logprobs ?? []).map(({ logprob }) => logprob));
    onToken((count += event.tokens));
  }
  return { text, logprobs };
}

/** Each request arrives when the one before it has 0, 1 or 2 tokens, so that prompts meet running answers. */
async function askStaggered(engine: ChatEngine, requests: readonly ChatRequest[]): Promise<Answer[]> {
  const answers: Promise<Answer>[] = [];
  for (const [i, request] of requests.entries()) {
    await new Promise<void>((arrive) => {
      const after = i % 3;
      answers.push(ask(engine, request, (count) => void (count >= after && arrive())));
      if (after === 0) arrive();
    });
  }
  return Promise.all(answers);
}

async function askInTurn(engine: ChatEngine, requests: readonly ChatRequest[]): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (const request of requests) answers.push(await ask(engine, request));
  return answers;
}

const FIXED = { sampling: { temperature: 0 }, maxTokens: MAX_TOKENS, ignoreEos: true, skipSpecialTokens: false } as const;

/** Prompts of 20 to 130 tokens; every second one begins as the others do. */
export function chatRequests(): ChatRequest[] {
  return Array.from({ length: COUNT }, (_, i) => {
    const shared = i % 2 === 0 ? 'You are a friendly teller of stories. Answer in simple words that a child knows. ' : '';
    const content = `${shared}Tell me about ${['a fox', 'the sea', 'a red ball', 'rain', 'a king', 'bread', 'a loud noise', 'school'][i >> 1]} and ${i} friends. ${'Please. '.repeat(3 * i)}`;
    return { messages: [{ role: 'user', content }], ...FIXED };
  });
}

/** Prompts of 1 to 341 random tokens, so that attention works in one and in several parts; every second one begins as the others do. */
export function tokenRequests(vocabulary: number): ChatRequest[] {
  const rng = createRng(3);
  const tokens = (count: number): number[] => Array.from({ length: count }, () => rng.integer(vocabulary));
  const shared = tokens(40);
  return Array.from({ length: COUNT }, (_, i) => ({ messages: [], prompt: [...(i % 2 ? shared : []), ...tokens(1 + 20 * i)], ...FIXED }));
}

type Way = Partial<EngineConfig> & { readonly name: string };

/** A model, and what it is asked in how many ways. */
export interface Asked extends Pick<Partial<EngineConfig>, 'kvCacheDtype' | 'numerics'> {
  readonly name: string;
  readonly folder: string;
  readonly requests: readonly ChatRequest[];
  readonly configs: readonly Way[];
}

const LOOKUP = { speculativeNgram: true, speculativeNgramMinMatchWindowSize: 1, speculativeNgramMaxMatchWindowSize: 4 };
const STEPPING = [
  { name: 'look-ahead', disableOverlapSchedule: false },
  { name: 'no look-ahead', disableOverlapSchedule: true },
  { name: 'prompt lookup', ...LOOKUP },
  { name: 'prompt lookup without look-ahead', ...LOOKUP, disableOverlapSchedule: true },
];
const ALL: readonly Way[] = [17, 4096].flatMap((chunkedPrefillSize) =>
  [false, true].flatMap((disableRadixCache) => STEPPING.map((stepping) => ({ chunkedPrefillSize, disableRadixCache, ...stepping }))),
);
export const CORNERS: readonly Way[] = [
  { chunkedPrefillSize: 17, disableRadixCache: false, ...STEPPING[0]! },
  { chunkedPrefillSize: 17, disableRadixCache: true, ...STEPPING[1]! },
  { chunkedPrefillSize: 4096, disableRadixCache: false, ...STEPPING[1]! },
  { chunkedPrefillSize: 17, disableRadixCache: false, ...STEPPING[2]! },
  { chunkedPrefillSize: 4096, disableRadixCache: true, ...STEPPING[3]! },
];

export const MATRIX = THOROUGH ? ALL : CORNERS;
/** For further models: chunks that meet cached prefixes and guesses, and whole prompts without either. */
export const FEW = THOROUGH ? CORNERS : CORNERS.filter((_, i) => i === 3 || i === 4);

/** Registers the tests of a model. */
export function describeInvariance({ name: model, folder, requests, configs, ...settings }: Asked): void {
  describe(model, () => {
    let device: Device;
    let isSame = false;
    let alone: Answer[];
    const reporting = requests.map((request) => ({ ...request, logprobs: 0 }));
    const load = (config: Partial<EngineConfig>): Promise<ChatEngine> =>
      ChatEngine.load(
        device,
        createNodePlatform({ log: () => undefined }),
        { path: folder },
        resolveConfig({ maxRunningRequests: COUNT, ...settings, ...config }),
      );
    beforeEach((context) => {
      // Such as lavapipe before Mesa 26: these would repeat what runs without `numerics`.
      if (isSame) context.skip('this adapter has no subgroup matrices, so that fast is invariant');
    });

    beforeAll(async () => {
      device = await testDevice();
      isSame = 'numerics' in settings && !hasMatrices(device.caps);
      if (isSame) return;
      const engine = await load({ maxRunningRequests: 1, disableRadixCache: true, disableOverlapSchedule: true });
      alone = await askInTurn(engine, reporting);
      await engine.close();
      // Answers that are all alike would prove nothing.
      expect(new Set(alone.map(({ text }) => text)).size).toBeGreaterThan(COUNT / 4);
    });
    afterAll(() => device.close());

    test.each(configs)(
      '$name, prompts of $chunkedPrefillSize tokens a step, radix cache disabled: $disableRadixCache',
      async ({ name: _, ...config }) => {
        const engine = await load(config);
        const before = device.stats.submits;
        const together = await askStaggered(engine, requests);
        // They did run together: one after the other takes a step for every token.
        expect(device.stats.submits - before).toBeLessThan(COUNT * MAX_TOKENS);
        expect(together.map(({ text }) => text)).toEqual(alone.map(({ text }) => text));
        expect(engine.status().cachedTokens > 0).toBe(config.disableRadixCache !== true);
        expect(engine.status().draftedTokens > 0).toBe(config.speculativeNgram === true);
        await engine.close();
      },
    );

    test.each(THOROUGH || model === 'bundled model' ? STEPPING : [STEPPING[0]!, STEPPING[3]!])(
      'log-probabilities are the same to the last bit with $name',
      async ({ name: _, ...config }) => {
        const engine = await load({ disableRadixCache: true, ...config });
        expect(alone.every(({ logprobs }) => logprobs.length === MAX_TOKENS)).toBe(true);
        expect(await askStaggered(engine, reporting)).toEqual(alone);
        await engine.close();
      },
    );

    test('a seed gives the same tokens with prompt lookup and without', async () => {
      const seeded = requests.map((request, i) => ({ ...request, sampling: { temperature: 0.5, topP: 0.9, seed: 1000 + i } }));
      const plain = await load({});
      const expected = await askInTurn(plain, seeded);
      await plain.close();
      const guessing = await load({ ...LOOKUP });
      expect(await askStaggered(guessing, seeded)).toEqual(expected);
      expect(guessing.status().draftedTokens).toBeGreaterThan(0);
      await guessing.close();
    });
  });
}
