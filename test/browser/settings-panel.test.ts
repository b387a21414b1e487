/** The chat's settings: what few people change is folded, says what is not as it was, and stays as the person left it. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildPlayground, findChromium, launchChromium } from './chromium.ts';
import { greedyContext, openPage } from './playground.ts';
import { serveFolder } from './static-server.ts';
import type { StaticServer } from './static-server.ts';

describe.skipIf(findChromium() === undefined)('the settings of the chat', () => {
  let server: StaticServer;
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    server = await serveFolder(buildPlayground('settings'));
    browser = await launchChromium({ webgpu: false });
    page = await openPage(await greedyContext(browser), server.url);
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  const summary = () => page.locator('.more > summary');

  test('show what many change; the rest is behind one line that says nothing while it is as it was', async () => {
    for (const label of ['System prompt', 'Temperature', 'Longest answer, tokens'])
      expect(await page.getByLabel(label).isVisible()).toBe(true);
    for (const label of ['Top-p', 'Top-k, 0 = off', 'Min-p', 'Seed', 'Stop at, one per line'])
      expect(await page.getByLabel(label).isVisible()).toBe(false);
    expect(await summary().innerText()).toBe('More sampling');
  });

  test('unfolded it stays so over a reload; folded it says what was changed', async () => {
    await summary().click();
    await page.getByLabel('Top-k, 0 = off').fill('40');
    await page.getByLabel('Seed').fill('7');
    await page.getByLabel('Seed').blur();
    expect(await summary().innerText()).toBe('More sampling');
    await page.reload();
    await page.getByLabel('Top-k, 0 = off').waitFor();
    expect(await page.getByLabel('Top-k, 0 = off').inputValue()).toBe('40');
    await summary().focus();
    await page.keyboard.press('Enter');
    await expect.poll(() => summary().innerText()).toBe('More sampling: Top-k 40, seed 7');
    await page.reload();
    await expect.poll(() => summary().innerText()).toBe('More sampling: Top-k 40, seed 7');
    expect(await page.getByLabel('Seed').isVisible()).toBe(false);
  });
});
