/** A split model against the same model on one device: the same greedy tokens, however it is split. */
import { mkdtempSync } from 'node:fs';
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
import { writeRandomCheckpoint } from '../support/random-checkpoint.ts';

const BUNDLED = fileURLToPath(new URL('../../models/parley-chat', import.meta.url));
const SMALL: Partial<EngineConfig> = { maxRunningRequests: 4, contextLength: 256, chunkedPrefillSize: 48, dtype: 'f32' };

let device: Device;
beforeAll(async () => {
  device = await testDevice();
});
afterAll(() => device.close());

const load = (folder: string, config: Partial<EngineConfig>): Promise<ChatEngine> =>
  ChatEngine.load(device, device.platform, { path: folder }, resolveConfig({ ...SMALL, ...config }));

async function answer(engine: ChatEngine, request: ChatRequest): Promise<string> {
  let text = '';
  for await (const event of engine.generate(request, new AbortController().signal)) if (event.type === 'delta') text += event.text;
  return text;
}

const greedy = (content: string): ChatRequest => ({
  messages: [{ role: 'user', content }],
  sampling: { temperature: 0 },
  maxTokens: 24,
  ignoreEos: true,
});

const SPLITS = [
  { tpSize: 2, ppSize: 1 },
  { tpSize: 4, ppSize: 1 },
  { tpSize: 1, ppSize: 2 },
  { tpSize: 2, ppSize: 2 },
] as const;

describe('the bundled model gives the same greedy tokens', () => {
  const prompts = ['What is the capital of France?', 'Tell me a story about a dog and a cat who live in a house by the sea.'];
  let expected: string[];
  beforeAll(async () => {
    const engine = await load(BUNDLED, {});
    expected = await Promise.all(prompts.map((prompt) => answer(engine, greedy(prompt))));
    await engine.close();
  });
  test.each(SPLITS)('split $tpSize x $ppSize in one thread', async (split) => {
    const engine = await load(BUNDLED, { ...split, rankThreads: false });
    expect(await Promise.all(prompts.map((prompt) => answer(engine, greedy(prompt))))).toEqual(expected);
    await engine.close();
  });
});
void mkdtempSync; void tmpdir; void join; void writeRandomCheckpoint;
