/** Constrained answers in a tab: the engine's worker of the built playground, spoken to as the page does it. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ChatRequest } from '../../engine/api.ts';
import type { HostMessage } from '../../engine/host.ts';
import type { CallNews } from '../../engine/util/rpc.ts';
import type { ModelIndex } from '../../web/src/models/manifest.ts';
import type { LoadMessage } from '../../web/src/worker/protocol.ts';
import { buildPlayground, findChromium, launchChromium } from './chromium.ts';
import { openPage } from './playground.ts';
import { serveFolder } from './static-server.ts';
import type { StaticServer } from './static-server.ts';

interface Outcome {
  readonly text: string;
  readonly code: string;
}

/** Loads the chat model in a worker and makes the requests at once; runs in the page. */
async function askAll({ script, requests }: { readonly script: string; readonly requests: readonly ChatRequest[] }): Promise<Outcome[]> {
  const scope = globalThis as unknown as { parleyPolicy: { createScriptURL(url: string): string } };
  const { port1, port2 } = new MessageChannel();
  const { models } = (await (await fetch('models/index.json')).json()) as ModelIndex;
  const { id, task, files } = models.find(({ task }) => task === 'chat')!;
  const placed = files.map(({ name, size, url }) => ({ name, size, at: { url: new URL(url!, document.baseURI).href } }));
  const model: LoadMessage['model'] = { id, task, files: placed };
  // Behind all waits: it says `started` once, to whoever listens then.
  const worker = new Worker(scope.parleyPolicy.createScriptURL(script), { type: 'module' });
  const outcomes = requests.map(() => ({ text: '', code: '', done: false }));
  const take = (news: CallNews): void => {
    const outcome = outcomes[news.id]!;
    if (news.type === 'event') outcome.text += (news.event as { text?: string }).text ?? '';
    else outcome.done = true;
    if (news.type === 'error') outcome.code = news.error.code;
  };
  try {
    return await new Promise<Outcome[]>((resolve, reject) => {
      worker.addEventListener('message', ({ data }) => data.type === 'failed' && reject(new Error(data.error.message)));
      port1.onmessage = ({ data }: MessageEvent<HostMessage>) => {
        if (data.type === 'hello') {
          for (const [id, request] of requests.entries()) {
            port1.postMessage({ type: 'call', id, name: 'chat', request, credits: 10_000 });
          }
        }
        if (data.type === 'news') data.news.forEach(take);
        if (outcomes.every(({ done }) => done)) resolve(outcomes.map(({ text, code }) => ({ text, code })));
      };
      const config = { maxRunningRequests: 4, contextLength: 1024, deviceMemory: 2 ** 30 };
      worker.addEventListener(
        'message',
        ({ data }) => data.type === 'started' && worker.postMessage({ type: 'load', config, model, port: port2 }, [port2]),
      );
    });
  } finally {
    worker.terminate();
  }
}

describe.skipIf(findChromium() === undefined)('grammars in a tab', () => {
  let server: StaticServer;
  let browser: Browser;
  let page: Page;
  let script: string;

  beforeAll(async () => {
    const folder = buildPlayground('chat');
    script = `assets/${readdirSync(join(folder, 'assets')).find((name) => /^page-worker-.*\.js$/.test(name))!}`;
    server = await serveFolder(folder);
    browser = await launchChromium();
    page = await openPage(await browser.newContext(), server.url);
    await page.waitForFunction(() => 'parleyPolicy' in globalThis);
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  test('answers hold to their schema; what cannot be enforced is refused and takes nothing with it', async () => {
    const ring = (count: number): unknown => {
      const link = (i: number): unknown => ({ type: 'object', properties: { x: { $ref: `#/$defs/a${(i + 1) % count}` } } });
      return { $ref: '#/$defs/a0', $defs: Object.fromEntries(Array.from({ length: count }, (_, i) => [`a${i}`, link(i)])) };
    };
    const many = (count: number): unknown => ({
      type: 'object',
      properties: Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, { type: 'string' }])),
    });
    const animal = {
      type: 'object',
      properties: { kind: { enum: ['fox', 'hen'] }, weight: { type: 'number', minimum: 1, maximum: 20, multipleOf: 0.5 } },
      required: ['kind', 'weight'],
      additionalProperties: false,
    };
    const ask = (schema?: unknown): ChatRequest => ({
      messages: [{ role: 'user', content: 'Tell me of a fox.' }],
      sampling: { temperature: 0 },
      maxTokens: 60,
      ...(schema !== undefined && { responseFormat: { type: 'json_schema', schema } }),
    });
    const requests = [ask(), ask(ring(40)), ask(many(401)), ask(many(64)), ask(animal), ask(animal)];
    const [plain, deep, wide, large, first, second] = await page.evaluate(askAll, { script, requests });
    expect(plain).toMatchObject({ code: '', text: expect.stringMatching(/\w+ \w+/) });
    expect([deep!.code, wide!.code]).toEqual(['invalid_json_schema', 'invalid_json_schema']);
    expect(large).toMatchObject({ code: '', text: expect.stringMatching(/^\{/) });
    const { kind, weight } = JSON.parse(first!.text) as { readonly kind: string; readonly weight: number };
    expect(['fox', 'hen']).toContain(kind);
    expect(weight >= 1 && weight <= 20 && weight % 0.5 === 0).toBe(true);
    expect(second).toEqual(first);
  });
});
