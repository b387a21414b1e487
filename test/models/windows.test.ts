/** Families with layers that see a window only, in an engine that has no more pages for these than running sequences can hold: long texts, cached prefixes, bytes. */
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { EngineConfig } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { createRng } from '../../engine/util/rng.ts';
import { DecoderHarness, argmax } from '../support/decoder-harness.ts';
import { testDevice } from '../support/device.ts';
import { writeNumberTokenizer } from '../support/random-checkpoint.ts';
import { answer, greedyAfter, withChat } from '../support/split-chat.ts';
import type { Answer } from '../support/split-chat.ts';

const FIXTURES = fileURLToPath(new URL('../fixtures/llama-tiny-random', import.meta.url));
const PAGE = 16;
const LIMITS = { maxRunningRequests: 3, contextLength: 480, chunkedPrefillSize: 40 };

let device: Device;
beforeAll(async () => {
  device = await testDevice();
});
afterAll(() => device.close());

/** A copy of a fixture with a tokenizer, for the time of a test. */
function folderOf(name: string): string {
  const copy = mkdtempSync(join(tmpdir(), 'parley-windows-'));
  onTestFinished(() => rmSync(copy, { recursive: true }));
  cpSync(join(FIXTURES, name), copy, { recursive: true });
  writeNumberTokenizer(copy, 160);
  return copy;
}

// All layers, every other one, one of two kinds; heads of other sizes and layers that read the keys of others.
describe.each(['mistral', 'gpt_oss', 'gemma3', 'gemma4'])('%s', (name) => {
  const { sliding_window: window } = JSON.parse(readFileSync(join(FIXTURES, name, 'config.json'), 'utf8')) as { sliding_window: number };
  // A window and the page that is being filled, for each sequence, and a chunk.
  const windowPages = 3 * (Math.ceil((window - 1) / PAGE) + 1) + Math.ceil(40 / PAGE);
  const rng = createRng(5);
  const tokens = (count: number): number[] => Array.from({ length: count }, () => 3 + rng.integer(150));

  test('a text of many windows has the tokens that it has where all pages stay', async () => {
    const folder = folderOf(name);
    const prompt = tokens(300);
    const harness = await DecoderHarness.load(device, folder, { sequences: 1, rows: 300 });
    let logits = (await harness.step([{ sequence: 0, start: 0, tokens: prompt }])).at(-1)!;
    const expected: number[] = [];
    for (let i = 0; i < 60; i++) {
      expected.push(argmax(logits));
      [logits] = (await harness.step([{ sequence: 0, start: 300 + i, tokens: [expected[i]!] }])) as [Float32Array];
    }
    await withChat(device, folder, LIMITS, async (engine) => {
      expect(engine.info.memory).toMatchObject({ kvPages: (3 * 480) / PAGE, windowPages });
      expect((await answer(engine, greedyAfter(prompt, 60))).text.trim().split(/\s+/).map(Number)).toEqual(expected);
      // Again, from what was kept of it.
      const again = await answer(engine, greedyAfter(prompt, 60));
      expect(again.text.trim().split(/\s+/).map(Number)).toEqual(expected);
      expect(again.cachedTokens).toBeGreaterThan(0);
      // While it runs it holds what it may see and what is computed, and nothing afterwards.
      let most = 0;
      for await (const _ of engine.chat(greedyAfter(tokens(300), 20), new AbortController().signal))
        most = Math.max(most, engine.status().windowPagesUsed);
      expect(most).toBeGreaterThan(0);
      expect(most).toBeLessThanOrEqual(Math.ceil((window - 1 + 40) / PAGE) + 1);
      expect(engine.status()).toMatchObject({ windowPagesTotal: windowPages, windowPagesUsed: 0 });
    });
  });

  test.each(['f32', 'int8'] as const)(
    'prompts that part anywhere, three at a time, have the answers that they have without a cache (%s pages)',
    async (kvCacheDtype) => {
      const folder = folderOf(name);
      const bases = [tokens(350), tokens(90)];
      const requests = Array.from({ length: 9 }, (_, i) => {
        const base = bases[i % 2]!;
        return greedyAfter([...base.slice(0, rng.integer(base.length)), ...tokens(1 + rng.integer(20))], 1 + rng.integer(40));
      });
      const ask = (config: Partial<EngineConfig>): Promise<Answer[]> =>
        withChat(device, folder, { ...LIMITS, kvCacheDtype, ...config }, async (engine) => {
          const answers: Answer[] = [];
          for (let i = 0; i < requests.length; i += 3)
            answers.push(...(await Promise.all(requests.slice(i, i + 3).map((request) => answer(engine, request)))));
          expect(engine.status().kvPagesUsed).toBe(0);
          return answers;
        });
      const alone = await ask({ disableRadixCache: true, maxRunningRequests: 1 });
      const cached = await ask({});
      expect(cached.map(({ text }) => text)).toEqual(alone.map(({ text }) => text));
      expect(cached.some(({ cachedTokens }) => cachedTokens > 0)).toBe(true);
    },
  );
});
