/** The self-test of the Device page in Chromium: every kernel case there is. Most of its time goes into compiling, for the software adapter that Chromium brings. */
import { expect, test } from 'vitest';
import { buildPlayground, findChromium, launchChromium } from '../browser/chromium.ts';
import { openPage } from '../browser/playground.ts';
import { serveFolder } from '../browser/static-server.ts';

const MINUTES = 60_000;

test.skipIf(findChromium() === undefined)('every kernel agrees with its CPU reference in Chromium', { timeout: 10 * MINUTES }, async () => {
  const server = await serveFolder(buildPlayground('kernels'));
  const browser = await launchChromium();
  try {
    const page = await openPage(await browser.newContext(), server.url, 'device');
    await page.click('text=Test the kernels');
    await page.waitForSelector('.self-test-count[data-state="done"]', { timeout: 9 * MINUTES });
    expect(await page.locator('.failures').allInnerTexts()).toEqual([]);
    expect(await page.locator('header p').first().innerText()).toMatch(/^All \d{3,} kernel cases agree/);
  } finally {
    await browser.close();
    await server.close();
  }
});
