/** The playground with its chat model split over the two adapters a browser can give (on this machine both are the software one). */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ROOT, buildPlayground, findChromium, launchChromium } from './chromium.ts';
import { ask, greedyContext, openPage, waitForState } from './playground.ts';
import { serveFolder } from './static-server.ts';
import type { StaticServer } from './static-server.ts';

const golden = JSON.parse(readFileSync(join(ROOT, 'test', 'fixtures', 'parley-chat', 'golden.json'), 'utf8')) as { greedy_text: string };

describe.skipIf(findChromium() === undefined)('the playground over two adapters', () => {
  let server: StaticServer;
  let browser: Browser;
  beforeAll(async () => {
    server = await serveFolder(buildPlayground('chat'));
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  test('is off at first; switched on, both hold layers and the answer stays that of PyTorch', async () => {
    const context = await greedyContext(browser);
    const page = await openPage(context, server.url, 'device');
    const box = page.getByLabel('Split the chat model over both cards');
    expect(await box.isChecked()).toBe(false);
    await box.check();
    await page.goto(`${server.url}#/chat`);
    await page.click('text=Load the model');
    await waitForState(page, 'chat', 'ready');
    expect(await ask(page, 'Tell me a short story about a fox.')).toContain(golden.greedy_text.slice(0, 40));
    await page.goto(`${server.url}#/device`);
    await page.click('text=Engine log');
    const log = await page.locator('pre.log').innerText();
    expect(log).toMatch(/parley-chat, rank 0 on .*\n(.*\n)*.*parley-chat, rank 1 on /);
    await context.close();
  });
});
