/** Answers that are held to given tokens, by which texts are scored, on the bundled model. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ChatEvent, ChatRequest } from '../../engine/api.ts';
import { resolveConfig } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { ChatEngine } from '../../engine/tasks/chat-engine.ts';
import { testDevice } from '../support/device.ts';

const FOLDER = join(fileURLToPath(new URL('../..', import.meta.url)), 'models', 'parley-chat');
const TOP = 2;

type Scored = NonNullable<Extract<ChatEvent, { type: 'delta' }>['logprobs']>[number];

let device: Device;
let engine: ChatEngine;
beforeAll(async () => {
  device = await testDevice();
  const source = { path: FOLDER };
  engine = await ChatEngine.load(device, createNodePlatform({ log: () => undefined }), source, resolveConfig({ contextLength: 256 }));
});
afterAll(async () => {
  expect(device.errors).toEqual([]);
  await engine.close();
  device.close();
});

/** Log-probabilities of an answer, how it ended, and how many tokens it had. */
async function ask(request: Partial<ChatRequest>): Promise<{ scored: Scored[]; reason: string; count: number }> {
  const scored: Scored[] = [];
  let [reason, count] = ['', 0];
  const asked = { messages: [], sampling: { temperature: 0 }, logprobs: TOP, ...request };
  for await (const event of engine.chat(asked, new AbortController().signal)) {
    if (event.type === 'delta') scored.push(...(event.logprobs ?? []));
    if (event.type === 'finish') [reason, count] = [event.reason, event.completionTokens];
  }
  return { scored, reason, count };
}

const conversation = (): Promise<readonly number[]> => engine.tokenize({ messages: [{ role: 'user', content: 'Hello' }] });
/** Tokens that end an answer come last in the text of a conversation that goes on. */
const followUp = (): Promise<readonly number[]> =>
  engine.tokenize({
    messages: [
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: 'Hello! How can I help you?' },
      { role: 'user', content: 'Bye' },
    ],
  });

test('their log-probabilities are those with which the model generates them, to the last bit', async () => {
  const prompt = await conversation();
  const answer = await ask({ prompt, maxTokens: 8 });
  expect(answer).toMatchObject({ reason: 'length', count: 8 });
  const text = answer.scored.map(({ token }) => token).join('');
  const tokens = await engine.tokenize({ prompt: text, addSpecialTokens: false });
  const [first, ...rest] = [...prompt, ...tokens];
  const forced = await ask({ prompt: [first!], forcedTokens: rest });
  expect(forced).toMatchObject({ reason: 'length', count: rest.length });
  expect(forced.scored).toHaveLength(rest.length);
  expect(forced.scored.slice(-8)).toEqual(answer.scored);
});

test('every token is taken, however unlikely, also those that end an answer, and the sampling settings change none', async () => {
  const [first, ...rest] = await followUp();
  const expected = await ask({ prompt: [first!], forcedTokens: rest });
  expect(expected.scored).toHaveLength(rest.length);
  expect(expected.scored.some(({ logprob, top }) => top.every((one) => one.logprob > logprob))).toBe(true);
  const sampled = await ask({ prompt: [first!], forcedTokens: rest, sampling: { temperature: 2, topK: 3, seed: 1 } });
  expect(sampled).toEqual(expected);
  const spelled = rest.map((token) => engine.detokenize([token]));
  expect(expected.scored.map(({ token }) => token)).toEqual(spelled);
});

test('they may fill the context', async () => {
  expect((await ask({ prompt: [5], forcedTokens: Array<number>(255).fill(5) })).scored).toHaveLength(255);
});

test('what is beyond the context or the vocabulary is refused with the numbers', async () => {
  const forcedTokens = Array<number>(256).fill(5);
  await expect(ask({ prompt: [5], forcedTokens })).rejects.toMatchObject({
    code: 'context_length_exceeded',
    message: "the prompt has 257 tokens; this model's maximum context length is 256 tokens",
    param: 'prompt',
  });
  await expect(ask({ prompt: [5], forcedTokens: [1e6] })).rejects.toMatchObject({ code: 'invalid_request', param: 'forcedTokens' });
});

test('a raw prompt has the log-probability of the token that ended its answer reported, a conversation has not', async () => {
  const prompt = await conversation();
  const raw = await ask({ prompt });
  expect(raw.reason).toBe('stop');
  expect(raw.scored).toHaveLength(raw.count);
  const chat = await ask({ messages: [{ role: 'user', content: 'Hello' }] });
  expect(chat.count).toBe(raw.count);
  expect(chat.scored).toEqual(raw.scored.slice(0, -1));
});

test('the tokenizer says its special tokens and the template', () => {
  const config = JSON.parse(readFileSync(join(FOLDER, 'tokenizer_config.json'), 'utf8')) as Record<string, unknown>;
  expect(engine.tokenizerInfo()).toEqual({ bosToken: null, eosToken: config['eos_token'], chatTemplate: config['chat_template'] });
});
