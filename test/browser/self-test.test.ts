/** The kernel self-test of the device page, where its scripts do not come. Every case of it runs in test/everywhere. */
import type { Browser, BrowserContext } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { buildPlayground, findChromium, launchChromium } from './chromium.ts';
import { openPage } from './playground.ts';
import { serveFolder } from './static-server.ts';
import type { StaticServer } from './static-server.ts';

describe.skipIf(findChromium() === undefined)('the self-test', () => {
  let server: StaticServer;
  let browser: Browser;
  let context: BrowserContext;

  beforeAll(async () => {
    server = await serveFolder(buildPlayground('self-test'));
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });
  beforeEach(async () => {
    context = await browser.newContext();
    server.intercept = undefined;
  });
  afterEach(() => context.close());

  test.each([
    ['does not come', 'hang', /page-worker.*\.js$/, /could not be loaded/],
    ['does not come whole', 'cut', /self-test.*\.js$/, /Failed to fetch/],
  ] as const)('of which a script %s ends and says so', async (_, fault, script, words) => {
    server.intercept = (path) => (script.test(path) ? fault : undefined);
    await context.clock.install();
    const page = await openPage(context, server.url, 'device');
    await page.click('text=Test the kernels');
    await page.locator('.self-test-count[data-state="running"]').waitFor();
    if (fault === 'hang') await page.clock.fastForward(30_000);
    await page.locator('.self-test-count[data-state="done"]').waitFor();
    expect(await page.locator('.failures').innerText()).toMatch(words);
  });
});
