/** A tab that cannot compute: it says so, servers do the work meanwhile, and what the person chose is there again once it can. */
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildPlayground, findChromium, launchChromium } from './chromium.ts';
import { openPage, waitForState } from './playground.ts';
import { serveFolder } from './static-server.ts';
import type { StaticServer } from './static-server.ts';

describe.skipIf(findChromium() === undefined)('without WebGPU', () => {
  let server: StaticServer;
  let without: Browser;

  beforeAll(async () => {
    server = await serveFolder(buildPlayground('no-webgpu'));
    without = await launchChromium({ webgpu: false });
  });
  afterAll(async () => {
    await without?.close();
    await server?.close();
  });

  test('the page says so and chooses the server', async () => {
    const page = await openPage(await without.newContext(), server.url);
    await waitForState(page, 'chat', 'server');
    await page.locator('.segments').getByText('in this tab').click();
    await page
      .locator('.notice')
      .getByText(/WebGPU/)
      .waitFor();
    await page.locator('.notice').getByText('Use a server').click();
    await waitForState(page, 'chat', 'server');
    await page.goto(`${server.url}#/device`);
    await page.getByText(/offers the page no WebGPU adapter/).waitFor();
    // There is nothing to test, to split or to measure.
    await page.getByText('none offered').waitFor();
    expect(await page.locator('main h2').allInnerTexts()).toEqual(['Adapter', 'Page']);
    // Before anything is downloaded.
    await page.goto(`${server.url}#/models`);
    await page
      .locator('main.models .notice')
      .getByText(/no graphics adapter/)
      .waitFor();
  });

  test('once there is WebGPU again, what the person had chosen is there again', async () => {
    const page = await openPage(await without.newContext(), server.url);
    await waitForState(page, 'chat', 'server');
    // Something is saved in that visit, and one task is put on a server by the person.
    await page.getByRole('button', { name: 'Theme' }).click();
    await page.goto(`${server.url}#/speak`);
    await page.getByLabel('in this tab').click();
    await page.getByLabel('on a server').click();
    const browser = await launchChromium();
    try {
      const later = await openPage(await browser.newContext({ storageState: await page.context().storageState() }), server.url);
      await waitForState(later, 'chat', 'idle');
      await waitForState(later, 'speech', 'server');
      await waitForState(later, 'transcription', 'idle');
      expect(await later.getByLabel('in this tab').isChecked()).toBe(true);
      await later.getByText('Load the model').waitFor();
    } finally {
      await browser.close();
    }
  });
});
