/** The GPU process of Chromium dies while something is made on it, or loaded onto it. */
import type { Browser, BrowserContext, CDPSession } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { buildPlayground, findChromium, launchChromium } from './chromium.ts';
import { openPage, waitForState } from './playground.ts';
import { serveFolder } from './static-server.ts';
import type { StaticServer } from './static-server.ts';

describe.skipIf(findChromium() === undefined)('a GPU that is lost', () => {
  let server: StaticServer;
  let browser: Browser;
  let context: BrowserContext;

  beforeAll(async () => {
    server = await serveFolder(buildPlayground('gpu-loss'));
  });
  afterAll(async () => {
    await server?.close();
  });
  // A browser that loses its GPU again and again goes on without one.
  beforeEach(async () => {
    browser = await launchChromium();
    context = await browser.newContext();
  });
  afterEach(async () => {
    server.intercept = undefined;
    await browser.close();
  });

  async function loseGpu(): Promise<void> {
    const crash: CDPSession = await browser.newBrowserCDPSession();
    // The command's answer is lost with the process it ends.
    crash.send('Browser.crashGpuProcess').catch(() => undefined);
  }

  test('while speech is made: the take says so, and one click makes the next one', async () => {
    const page = await openPage(context, server.url, 'speak');
    await page.locator('.notice').getByText('Load the model').click();
    await waitForState(page, 'speech', 'ready');
    await page.fill('textarea', 'The sea was calm, and the light turned slowly over the rocks. '.repeat(40));
    await page.getByRole('button', { name: 'Speak', exact: true }).click();
    await page.waitForSelector('.take[data-status="making"]');
    await loseGpu();
    await waitForState(page, 'speech', 'lost');
    await page.waitForSelector('.take[data-status="failed"]');
    // By what the engine was at when the loss reached it: a step, nothing any more, or not yet this take, which a busy machine hands over late.
    expect(await page.locator('.take .failure').innerText()).toMatch(
      /^(A step of the speech model failed|The engine in this tab stopped|The GPU device was lost; the engine has to be started again)/,
    );
    await page.locator('.notice').getByText('Restart the engine').click();
    await waitForState(page, 'speech', 'ready');
  });

  test('while a model is loaded: the page offers what it offers for a model that was there', async () => {
    const page = await openPage(context, server.url, 'transcribe');
    // The service worker fetches it too, to keep it.
    await page.evaluate(async () => (await navigator.serviceWorker.ready).active?.state);
    server.requests.length = 0;
    // Comes after the model's own weights, and is computed with at once.
    server.intercept = (path) => (path.includes('silero-vad') ? 'hang' : undefined);
    await page.locator('.notice').getByText('Load the model').click();
    await expect.poll(() => server.requests.findLast((path) => path.includes('silero-vad')), { timeout: 60_000 }).toBeDefined();
    await loseGpu();
    server.intercept = undefined;
    await waitForState(page, 'transcription', 'lost');
    expect(await page.locator('.notice').innerText()).toMatch(/The GPU was reset/);
    await page.locator('.notice').getByText('Restart the engine').click();
    await waitForState(page, 'transcription', 'ready');
  });
});
