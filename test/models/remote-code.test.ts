/** Model folders with code of their own: refused unless trusted, and then run. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { resolveConfig } from '../../engine/config.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import type { Platform } from '../../engine/platform/platform.ts';
import { ChatEngine } from '../../engine/tasks/chat-engine.ts';
import { testDevice } from '../support/device.ts';
import { writeNumberTokenizer } from '../support/random-checkpoint.ts';

const FIXTURE = join(fileURLToPath(new URL('..', import.meta.url)), 'fixtures', 'llama-tiny-random', 'llama');

/** An architecture that no build knows: a Llama whose config calls itself otherwise. */
const CODE = `
export function createDecoder({ decoderFor, EngineError, ops }) {
  const asLlama = (json) => ({ ...json, model_type: 'llama' });
  const llama = decoderFor(asLlama({}));
  if (typeof ops.linear !== 'function' || typeof ops.pagedAttention !== 'function') throw new EngineError('internal', 'no ops');
  return {
    parseConfig: (json) => llama.parseConfig(asLlama(json)),
    load: (loader, json, context, shard) => llama.load(loader, asLlama(json), context, shard),
  };
}
`;

let folder: string;
const platform = createNodePlatform({ log: () => undefined });

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'parley-remote-'));
  for (const file of ['config.json', 'model.safetensors']) cpSync(join(FIXTURE, file), join(folder, file));
  const config = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')) as { vocab_size: number; model_type: string };
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...config, model_type: 'somebody-elses' }));
  writeNumberTokenizer(folder, config.vocab_size);
  writeFileSync(join(folder, 'parley_model.mjs'), CODE);
});
afterEach(() => rmSync(folder, { recursive: true }));

async function answer(trustRemoteCode: boolean, on: Platform = platform): Promise<string> {
  const device = await testDevice();
  try {
    const engine = await ChatEngine.load(device, on, { path: folder }, resolveConfig({ trustRemoteCode, dtype: 'f32', maxRunningRequests: 2 })); // prettier-ignore
    const { prompt } = JSON.parse(readFileSync(join(FIXTURE, 'golden.json'), 'utf8')) as { prompt: number[] };
    let text = '';
    const request = { messages: [], prompt, sampling: { temperature: 0 }, maxTokens: 8, ignoreEos: true };
    for await (const event of engine.chat(request, new AbortController().signal)) if (event.type === 'delta') text += event.text;
    await engine.close();
    return text;
  } finally {
    device.close();
  }
}

describe('a folder with parley_model.mjs', () => {
  test('is refused with the reason and the setting', async () => {
    await expect(answer(false)).rejects.toMatchObject({
      code: 'invalid_model',
      message: expect.stringMatching(/parley_model\.mjs is code of the model's own/) as string,
      remedies: [{ does: 'read it, and allow it', settings: [{ name: 'trustRemoteCode', value: true }] }],
    });
  });

  test('runs when trusted, and gives the tokens of PyTorch', async () => {
    const { greedy } = JSON.parse(readFileSync(join(FIXTURE, 'golden.json'), 'utf8')) as { greedy: number[] };
    expect((await answer(true)).trim().split(/\s+/).map(Number)).toEqual(greedy.slice(0, 8));
  });

  test('is refused where nothing can be run', async () => {
    const { importModule: _, ...rest } = platform;
    await expect(answer(true, rest)).rejects.toMatchObject({ code: 'unsupported' });
  });

  test.each([
    ['export const answer = 42;', /exports no function createDecoder/],
    ['export const createDecoder = () => ({});', /returned no \{ parseConfig, load \}/],
  ])('that is no such code is refused: %s', async (code, message) => {
    writeFileSync(join(folder, 'parley_model.mjs'), code);
    await expect(answer(true)).rejects.toMatchObject({ code: 'invalid_model', message: expect.stringMatching(message) as string });
  });

  test('without the code the architecture is unknown, trusted or not', async () => {
    rmSync(join(folder, 'parley_model.mjs'));
    await expect(answer(true)).rejects.toMatchObject({ code: 'unsupported', message: expect.stringMatching(/somebody-elses/) as string });
  });
});
