/** What the bundled model does with raw prompts, least lengths and forced calls that are cut; and its tokenizer as callers reach it. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ChatRequest } from '../../engine/api.ts';
import { resolveConfig } from '../../engine/config.ts';
import { EngineError } from '../../engine/errors.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { ChatEngine } from '../../engine/tasks/chat-engine.ts';
import { testDevice } from '../support/device.ts';

const FOLDER = join(fileURLToPath(new URL('../..', import.meta.url)), 'models', 'parley-chat');

describe('ChatEngine', () => {
  let device: Device;
  let engine: ChatEngine;
  beforeAll(async () => {
    device = await testDevice();
    engine = await ChatEngine.load(
      device,
      createNodePlatform({ log: () => undefined }),
      { path: FOLDER },
      resolveConfig({ maxRunningRequests: 4 }),
    );
  });
  afterAll(async () => {
    expect(device.errors).toEqual([]);
    await engine.close();
    device.close();
  });

  async function ask(options: Partial<ChatRequest>) {
    const answer = { text: '', calls: 0, promptTokens: 0, cachedTokens: 0, reason: '', tokens: 0 };
    for await (const event of engine.chat({ messages: [], sampling: { temperature: 0 }, ...options }, new AbortController().signal)) {
      if (event.type === 'start') Object.assign(answer, { promptTokens: event.promptTokens, cachedTokens: event.cachedTokens });
      else if (event.type === 'delta') {
        answer.text += event.text;
        answer.calls += event.toolCalls?.length ?? 0;
      } else Object.assign(answer, { reason: event.reason, tokens: event.completionTokens });
    }
    return answer;
  }

  const messages = [{ role: 'user', content: 'Tell me a short story about a fox.' }] as const;

  test('goes on from a prompt; its tokens, and the tokens of rendered messages, say the same', async () => {
    const prompt = 'Once upon a time, there was a little';
    const tokens = await engine.tokenize({ prompt });
    const fromText = await ask({ prompt, maxTokens: 12 });
    expect(fromText.text).toMatch(/^ \w+/);
    expect(fromText).toMatchObject({ promptTokens: tokens.length, tokens: 12, reason: 'length' });
    expect(await ask({ prompt: tokens, maxTokens: 12 })).toMatchObject({ text: fromText.text });
    const chat = await ask({ messages, maxTokens: 12 });
    expect(await ask({ prompt: await engine.tokenize({ messages }), maxTokens: 12 })).toMatchObject({
      text: chat.text,
      promptTokens: chat.promptTokens,
    });
  });

  test('spells tokens back as they were, special ones too, and refuses those it does not have', async () => {
    const text = 'The quick brown fox, ünïcode 🦊.';
    expect(engine.detokenize(await engine.tokenize({ prompt: text, addSpecialTokens: false })).trim()).toBe(text);
    expect(engine.detokenize(await engine.tokenize({ messages }))).toContain('Tell me a short story about a fox.');
    for (const bad of [-1, 0.5, 1e9]) expect(() => engine.detokenize([bad])).toThrow(EngineError);
  });

  test('refuses what cannot fit before it is tokenised, and what is too much to tokenise', async () => {
    const messages = [{ role: 'user', content: 'x\n'.repeat(500_000) }] as const;
    await expect(ask({ messages })).rejects.toMatchObject({ code: 'context_length_exceeded', param: 'messages' });
    await expect(ask({ prompt: 'x'.repeat(100_000) })).rejects.toMatchObject({ code: 'context_length_exceeded', param: 'prompt' });
    await expect(engine.tokenize({ prompt: 'x'.repeat(1_000_001) })).rejects.toMatchObject({ code: 'invalid_request', param: 'prompt' });
  });

  test('refuses a prompt of tokens it does not have, and an empty one, by name', async () => {
    // A hole is what JavaScript makes of an index that is not there.
    for (const prompt of [[1e9], [5, undefined as unknown as number], []])
      await expect(ask({ prompt })).rejects.toMatchObject({ code: 'invalid_request', param: 'prompt' });
  });

  test('ends no sooner than it is told to', async () => {
    const free = await ask({ messages, stopTokenIds: [], maxTokens: 200 });
    // The token that the model writes fifth ends the answer there, unless at least 12 are asked for.
    const [fifth] = (await engine.tokenize({ prompt: free.text, addSpecialTokens: false })).slice(4);
    const stopTokenIds = [fifth!];
    const short = await ask({ messages, stopTokenIds, maxTokens: 60 });
    expect(short).toMatchObject({ reason: 'stop' });
    expect(short.tokens).toBeLessThanOrEqual(5);
    const long = await ask({ messages, stopTokenIds, minTokens: 12, maxTokens: 60 });
    expect(long.tokens).toBeGreaterThan(12);
    // From the 13th token on the ban is lifted: with every other token banned for good, the answer ends right there.
    const logitBias = { [fifth!]: 100 };
    const exact = await ask({ messages, stopTokenIds, minTokens: 12, maxTokens: 60, sampling: { temperature: 0, logitBias } });
    expect(exact).toMatchObject({ tokens: 13, reason: 'stop' });
  });

  test('forgets cached prefixes when told to', async () => {
    const prompt = 'The dog and the cat played in the garden all day long. '.repeat(4);
    await ask({ prompt, maxTokens: 1 });
    expect((await ask({ prompt, maxTokens: 1 })).cachedTokens).toBeGreaterThan(0);
    engine.flushCache();
    expect((await ask({ prompt, maxTokens: 1 })).cachedTokens).toBe(0);
  });

  test('a forced call that is cut before its name is no content', async () => {
    const tools = [{ name: 'weather', parameters: { type: 'object', properties: {}, additionalProperties: false } }];
    for (const maxTokens of [1, 4, 8]) {
      const cut = await ask({ messages, tools, toolChoice: 'required', maxTokens });
      expect(cut).toMatchObject({ text: '', reason: 'length', tokens: maxTokens });
    }
  });
});
