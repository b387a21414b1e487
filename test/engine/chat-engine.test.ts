/** ChatEngine on the bundled model: what a caller sees, and what a step costs. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ChatEvent, ChatRequest, SamplingParams } from '../../engine/api.ts';
import { resolveConfig } from '../../engine/config.ts';
import type { EngineConfig } from '../../engine/config.ts';
import { EngineError } from '../../engine/errors.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { ChatEngine } from '../../engine/tasks/chat-engine.ts';
import { testDevice } from '../support/device.ts';
import { refuseMemory } from '../support/refused-memory.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const FOLDER = join(ROOT, 'models', 'parley-chat');
const GOLDEN = JSON.parse(readFileSync(join(ROOT, 'test/fixtures/parley-chat/golden.json'), 'utf8')) as {
  readonly greedy_ids: readonly number[];
};
const STORY = 'Tell me a short story about a fox.';
const GREEDY: SamplingParams = { temperature: 0 };

interface Answer {
  readonly texts: string[];
  readonly finishes: Extract<ChatEvent, { type: 'finish' }>[];
  readonly start: Extract<ChatEvent, { type: 'start' }> | undefined;
  /** Sum over the deltas. */
  readonly deltaTokens: number;
}

async function ask(engine: ChatEngine, content: string, options: Partial<ChatRequest> = {}): Promise<Answer> {
  const request: ChatRequest = { messages: [{ role: 'user', content }], sampling: GREEDY, ...options };
  const texts = new Array<string>(options.n ?? 1).fill('');
  const finishes: Answer['finishes'] = [];
  let start: Answer['start'];
  let deltaTokens = 0;
  for await (const event of engine.chat(request, new AbortController().signal)) {
    if (event.type === 'start') start = event;
    else if (event.type === 'delta') {
      texts[event.index] += event.text;
      deltaTokens += event.tokens;
    } else finishes[event.index] = event;
  }
  return { texts, finishes, start, deltaTokens };
}

async function load(device: Device, config: Partial<EngineConfig> = {}): Promise<ChatEngine> {
  return ChatEngine.load(device, createNodePlatform({ log: () => undefined }), { path: FOLDER }, resolveConfig(config));
}

async function failure(promise: Promise<unknown>): Promise<EngineError> {
  const error: unknown = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(EngineError);
  return error as EngineError;
}

describe('ChatEngine', () => {
  let device: Device;
  let engine: ChatEngine;
  let pipelines: number;
  beforeAll(async () => {
    device = await testDevice();
    engine = await load(device, { maxRunningRequests: 20, maxQueuedRequests: 8 });
    pipelines = device.stats.pipelines;
  });
  afterAll(async () => {
    expect(device.errors).toEqual([]);
    // Greedy and sampled, one and many, short and long: all was compiled at load.
    expect(device.stats.pipelines).toBe(pipelines);
    await engine.close();
    device.close();
  });

  const prompts = Array.from({ length: 16 }, (_, i) => `${['Hello', 'What is the capital of France?', STORY, 'Count.'][i % 4]} ${'Please. '.repeat(i)}`); // prettier-ignore

  test('says what it is', () => {
    expect(engine.info).toMatchObject({ id: 'parley-chat', task: 'chat', architecture: 'llama', parameters: 5475584, contextLength: 2048 });
  });

  test('what was planned before it was loaded is what it takes', () => {
    const memory = engine.info.memory!;
    // Tables of rotary positions are no weights to the plan.
    expect(memory.weightBytes / engine.info.weightBytes).toBeGreaterThan(0.9);
    expect(memory.weightBytes / engine.info.weightBytes).toBeLessThan(1.05);
    // Beside the plan: params, staging, the first pages instead of all.
    const pages = device.caps.software ? 2 ** 21 : memory.kvBytes;
    expect(Math.abs(device.stats.bufferBytes - memory.weightBytes - memory.activationBytes - pages)).toBeLessThan(2 ** 20);
  });

  test('pages are taken when they are used, and what they held is not lost', async () => {
    if (!device.caps.software) return;
    const { buffers, bufferBytes } = device.stats;
    const { memory } = engine.info;
    const long = (word: string, count: number): string => `${word} `.repeat(count);
    const alone = (await ask(engine, long('fox', 300), { maxTokens: 6, ignoreEos: true })).texts;
    await Promise.all(['hen', 'dog', 'cow'].map((word) => ask(engine, long(word, 450), { maxTokens: 2, ignoreEos: true })));
    const grown = device.stats.bufferBytes - bufferBytes;
    expect(grown).toBeGreaterThan(2 ** 20);
    expect(grown).toBeLessThan(memory!.kvBytes / 4);
    // The prompt is found in the pages that were moved.
    const cached = engine.status().cachedTokens;
    expect((await ask(engine, long('fox', 300), { maxTokens: 6, ignoreEos: true })).texts).toEqual(alone);
    expect(engine.status().cachedTokens - cached).toBeGreaterThan(280);
    // Pages for pages; params and staging of the first step with a prompt are new.
    expect(device.stats.buffers - buffers).toBeLessThanOrEqual(2);
  });

  test('a plan is captured when first used, from what the warm-up made: no buffer, no bind group', async () => {
    const steps = [[3, GREEDY], [7, GREEDY], [7, { temperature: 1 }]] as const; // prettier-ignore
    const run = async (maxTokens: number): Promise<void> => {
      for (const [count, sampling] of steps) {
        await Promise.all(prompts.slice(0, count).map((prompt) => ask(engine, prompt, { sampling, maxTokens, ignoreEos: true })));
      }
    };
    // Steps with prompts are recorded as they come: these sample as many rows, and decode nothing. A decode of few rows and one of many find pages that have moved.
    await run(1);
    for (const count of [1, 12])
      await Promise.all(prompts.slice(0, count).map((prompt) => ask(engine, prompt, { maxTokens: 2, ignoreEos: true })));
    // Where pages are taken when they are used, those of cached prefixes are not to be had for the asking.
    engine.flushCache();
    const { buffers, bindGroups } = device.stats;
    // Decodes of 3, padded to 4, and of 7, padded to 8 rows.
    await run(4);
    expect(device.stats).toMatchObject({ buffers, bindGroups });
  });

  test('16 requests at once get the words each gets alone, greedy and seeded', async () => {
    for (const sampling of [GREEDY, { temperature: 2, topNSigma: 1, seed: 5 }, { temperature: 0.9, topP: 0.95, topK: 200, seed: 77 }]) {
      const options = { sampling, maxTokens: 24, ignoreEos: true };
      const together = await Promise.all(prompts.map((prompt) => ask(engine, prompt, options)));
      for (const i of [0, 3, 10, 15]) expect((await ask(engine, prompts[i]!, options)).texts).toEqual(together[i]!.texts);
      expect(new Set(together.flatMap(({ texts }) => texts)).size).toBeGreaterThan(4);
    }
  });

  test('a decode step is one submit, reads 4 bytes a sequence back and creates no GPU object', async () => {
    const run = (count: number) => Promise.all(prompts.slice(0, count).map((p) => ask(engine, p, { maxTokens: 40, ignoreEos: true })));
    await run(5);
    engine.flushCache();
    const before = { ...device.stats };
    await run(5);
    const { stats } = device;
    const created = (name: 'buffers' | 'bufferBytes' | 'pipelines' | 'bindGroups') => stats[name] - before[name];
    expect([created('buffers'), created('bufferBytes'), created('pipelines'), created('bindGroups')]).toEqual([0, 0, 0, 0]);
    // 40 tokens: the prompt's step gives the first; nothing is computed beyond the last.
    expect(stats.submits - before.submits).toBe(40);
    expect(stats.bytesRead - before.bytesRead).toBe(5 * 40 * 4);
  });

  test('ends at the end of turn, at a stop string, a stop token or the maximum, and says which', async () => {
    const whole = await ask(engine, STORY);
    expect(whole.finishes[0]).toMatchObject({ reason: 'stop', stopReason: null });
    expect(whole.texts[0]).not.toContain('<|');
    const word = whole.texts[0]!.split(' ')[5]!;
    const stopped = await ask(engine, STORY, { stop: ['never said', ` ${word}`] });
    expect(stopped.finishes[0]).toMatchObject({ reason: 'stop', stopReason: ` ${word}` });
    expect(whole.texts[0]!.startsWith(`${stopped.texts[0]} ${word}`)).toBe(true);
    const short = await ask(engine, STORY, { maxTokens: 3 });
    expect(short.finishes[0]).toMatchObject({ reason: 'length', completionTokens: 3 });
    expect(short.deltaTokens).toBe(3);
    expect(whole.texts[0]!.startsWith(short.texts[0]!)).toBe(true);
    const golden = GOLDEN.greedy_ids[1]!; // its first appearance in the answer
    const token = await ask(engine, STORY, { stopTokenIds: [golden] });
    expect(token.finishes[0]).toMatchObject({ reason: 'stop', stopReason: golden, completionTokens: 2 });
    expect(token.start?.promptTokens).toBe(20);
  });

  test('n choices of a seeded request differ from each other and repeat with the seed', async () => {
    const options = { n: 3, sampling: { temperature: 1.5, seed: 5 }, maxTokens: 12, ignoreEos: true };
    const first = await ask(engine, STORY, options);
    expect(new Set(first.texts).size).toBe(3);
    expect(first.finishes.map(({ completionTokens }) => completionTokens)).toEqual([12, 12, 12]);
    expect((await ask(engine, STORY, options)).texts).toEqual(first.texts);
    expect((await ask(engine, STORY, { ...options, sampling: { temperature: 1.5, seed: 6 } })).texts).not.toEqual(first.texts);
  });

  test('a prompt beyond the context is refused with both numbers, also with the output it asks for', async () => {
    const error = await failure(ask(engine, 'word '.repeat(3000)));
    expect(error).toMatchObject({ code: 'context_length_exceeded', param: 'messages', details: { contextLength: 2048 } });
    expect(error.details!['promptTokens']).toBeGreaterThan(3000);
    // Agents shorten their conversation when they read these words; JavaScript clients put no code into the message of an error.
    expect(error.message).toMatch(/^the prompt has \d+ tokens; this model's maximum context length is 2048 tokens$/);
    const asked = await failure(ask(engine, 'Hi', { maxTokens: 2048 }));
    const prompt = asked.details!['promptTokens'] as number;
    const words = `the prompt has ${prompt} tokens and 2048 tokens were asked for; this model's maximum context length is 2048 tokens, which leaves ${2048 - prompt} for the answer`;
    expect(asked).toMatchObject({ code: 'context_length_exceeded', message: words });
  });

  test('an abort ends the request and frees its pages within a step; others go on', async () => {
    const controller = new AbortController();
    const request: ChatRequest = { messages: [{ role: 'user', content: STORY }], sampling: GREEDY, ignoreEos: true };
    const other = ask(engine, STORY, { maxTokens: 60, ignoreEos: true });
    let deltas = 0;
    const aborted = (async () => {
      for await (const event of engine.chat(request, controller.signal)) {
        if (event.type === 'delta' && ++deltas === 5) controller.abort();
      }
    })();
    expect((await failure(aborted)).code).toBe('aborted');
    expect(deltas).toBe(5);
    expect((await other).finishes[0]).toMatchObject({ completionTokens: 60 });
    // Leaving the loop is an abort too.
    for await (const event of engine.chat(request, new AbortController().signal)) if (event.type === 'delta') break;
    await ask(engine, 'Hi', { maxTokens: 2 });
    expect(engine.status()).toMatchObject({ running: 0, waiting: 0, kvPagesUsed: 0 });
  });

  test('waits for a reader that is behind, while others go on, and gives it every word when it reads again', async () => {
    const options = { maxTokens: 300, ignoreEos: true };
    const whole = await ask(engine, STORY, options);
    const request: ChatRequest = { messages: [{ role: 'user', content: STORY }], sampling: GREEDY, ...options };
    const slow = engine.chat(request, new AbortController().signal);
    const before = engine.status().generatedTokens;
    await slow.next();
    // Steps enough for the slow one to be ahead as far as it may.
    await ask(engine, STORY, { ...options, maxTokens: 200 });
    const ahead = engine.status().generatedTokens - before - 200;
    expect(ahead).toBeGreaterThan(32);
    expect(ahead).toBeLessThan(150);
    expect(engine.status().running).toBe(1);
    let text = '';
    for await (const event of slow) if (event.type === 'delta') text += event.text;
    expect(text).toBe(whole.texts[0]);
  });

  test('one that goes away while the engine waits for it leaves nothing behind', async () => {
    const request: ChatRequest = { messages: [{ role: 'user', content: STORY }], sampling: GREEDY, maxTokens: 500, ignoreEos: true };
    const slow = engine.chat(request, new AbortController().signal);
    await slow.next();
    await ask(engine, STORY, { maxTokens: 200, ignoreEos: true });
    expect(engine.status().running).toBe(1);
    await slow.return(undefined);
    expect((await ask(engine, 'Hello')).finishes).toHaveLength(1);
    await expect.poll(() => engine.status()).toMatchObject({ running: 0, waiting: 0, kvPagesUsed: 0 });
  });

  test('more requests than the queue holds are refused, the others are answered', async () => {
    const results = await Promise.allSettled(Array.from({ length: 40 }, () => ask(engine, 'Hello', { maxTokens: 4 })));
    const refused = results.filter((result) => result.status === 'rejected');
    expect(refused).toHaveLength(40 - 28);
    for (const { reason } of refused) expect((reason as EngineError).code).toBe('queue_full');
  });
});

test('with too few pages for all, sequences are retracted and still get the words they get alone', async () => {
  const device = await testDevice();
  const roomy = await load(device, { maxRunningRequests: 8 });
  const alone = await ask(roomy, STORY, { maxTokens: 200, ignoreEos: true });
  await roomy.close();
  const tight = await loadWithPages(device, 24);
  expect(tight.status().kvPagesTotal).toBe(24);
  const answers = await Promise.all(Array.from({ length: 4 }, () => ask(tight, STORY, { maxTokens: 200, ignoreEos: true })));
  for (const { texts } of answers) expect(texts).toEqual(alone.texts);
  expect(tight.status().kvPagesUsed).toBe(0);
  await tight.close();
  device.close();
});

/** An engine with room for just so many pages. Each of the four requests above comes to 220 tokens, which is 14 pages. */
async function loadWithPages(device: Device, pages: number): Promise<ChatEngine> {
  // Keys and values of 16 tokens: 2 heads of 64 channels, 6 layers, f16.
  const pageBytes = 16 * 2 * 64 * 6 * 2 * 2;
  const limits = { maxRunningRequests: 4, memFractionStatic: 1 };
  const before = device.stats.bufferBytes;
  const deviceMemory = before + 32 * 2 ** 20;
  const probe = await load(device, { ...limits, deviceMemory });
  await probe.close();
  const spare = (probe.status().kvPagesTotal - pages) * pageBytes;
  // Closing an engine leaves its buffers to the device.
  return load(device, { ...limits, deviceMemory: deviceMemory - spare + device.stats.bufferBytes - before });
}

test('answers that do not fit end at the edge of the context, where that is asked for', async () => {
  const device = await testDevice();
  const engine = await load(device, { autoTruncateMaxTokens: true, contextLength: 64, maxRunningRequests: 1 });
  const { start, finishes } = await ask(engine, 'Hi', { maxTokens: 2048, ignoreEos: true });
  expect(finishes[0]).toMatchObject({ reason: 'length', completionTokens: 64 - start!.promptTokens });
  expect((await failure(ask(engine, 'word '.repeat(64), { maxTokens: 1 }))).code).toBe('context_length_exceeded');
  await engine.close();
  device.close();
});

test('without memory for logit processing those who ask for it are refused, and nobody else, until there is some', async () => {
  const device = await testDevice();
  const engine = await load(device, { maxRunningRequests: 4 });
  const penalized: Partial<ChatRequest> = { sampling: { ...GREEDY, presencePenalty: 1 }, maxTokens: 8 };
  const plain = (await ask(engine, STORY, { maxTokens: 8 })).texts;
  const { buffers } = device.stats;
  const refusal = refuseMemory(device, (label) => label === 'token counts');
  try {
    const asked = [ask(engine, STORY, penalized), ask(engine, STORY, { maxTokens: 8 }), ask(engine, STORY, penalized)] as const;
    const [one, other, two] = await Promise.allSettled(asked);
    for (const refused of [one, two]) expect(refused).toMatchObject({ reason: { code: 'out_of_memory' } });
    expect(other).toMatchObject({ value: { texts: plain } });
    expect((await failure(ask(engine, STORY, penalized))).code).toBe('out_of_memory');
  } finally {
    refusal.restore();
  }
  // What was refused is given back, and the queue holds nothing of it.
  expect(device.stats.buffers).toBe(buffers);
  expect(engine.status()).toMatchObject({ running: 0, waiting: 0 });
  const again = (await ask(engine, STORY, penalized)).texts;
  expect(again[0]).not.toBe('');
  expect((await ask(engine, STORY, { maxTokens: 8 })).texts).toEqual(plain);
  expect(device.errors).toEqual([]);
  await engine.close();
  device.close();
});

test('what logit processing takes is in the plan, and taken when it is first asked for', async () => {
  const device = await testDevice();
  const engine = await load(device, { maxRunningRequests: 20 });
  const { memory } = engine.info;
  await ask(engine, STORY, { maxTokens: 2 });
  const { bufferBytes } = device.stats;
  await ask(engine, STORY, { maxTokens: 2, sampling: { ...GREEDY, presencePenalty: 1 } });
  expect(device.stats.bufferBytes - bufferBytes).toBeGreaterThan(2 ** 20);
  const pages = device.caps.software ? 2 ** 21 : memory!.kvBytes;
  expect(Math.abs(memory!.weightBytes + memory!.activationBytes + pages - device.stats.bufferBytes)).toBeLessThan(2 ** 19);
  await engine.close();
  device.close();
});

test('a lost device fails running requests and refuses new ones with device_lost', async () => {
  const device = await testDevice();
  const engine = await load(device, { maxRunningRequests: 4 });
  const running = ask(engine, STORY, { maxTokens: 2000, ignoreEos: true });
  await ask(engine, 'Hi', { maxTokens: 2 });
  device.close();
  expect((await failure(running)).code).toBe('device_lost');
  expect((await failure(ask(engine, 'Hi'))).code).toBe('device_lost');
});
