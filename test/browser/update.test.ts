/** A newer build on the server while tabs of the older one are open. */
import { cpSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { buildPlayground, findChromium, launchChromium } from './chromium.ts';
import { openPage } from './playground.ts';
import { serveFolder } from './static-server.ts';
import type { StaticServer } from './static-server.ts';

describe.skipIf(findChromium() === undefined)('a newer build', () => {
  let browser: Browser;
  let context: BrowserContext;
  let folder: string;
  let server: StaticServer;

  beforeAll(async () => {
    browser = await launchChromium({ webgpu: false });
  });
  afterAll(async () => {
    await browser?.close();
  });
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'parley-update-'));
    cpSync(buildPlayground('update'), folder, { recursive: true });
    // The compressed copies would be served instead of what is changed here.
    for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' })) if (/\.(br|gz)$/.test(path)) rmSync(join(folder, path));
    server = await serveFolder(folder);
    context = await browser.newContext();
  });
  afterEach(async () => {
    await context.close();
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Replaces the build by one whose script has another name. */
  function update(): void {
    const assets = join(folder, 'assets');
    const old = readdirSync(assets).find((name) => /^index-.*\.js$/.test(name))!;
    for (const file of ['index.html', 'sw.js']) {
      const text = readFileSync(join(folder, file), 'utf8').replaceAll(old, 'index-newer.js');
      const newer = text.replace(/(\\"version\\":\\")\w+/, '$1newer');
      writeFileSync(join(folder, file), newer);
      if (file === 'sw.js') expect(newer).toContain('newer\\"');
    }
    renameSync(join(assets, old), join(assets, 'index-newer.js'));
  }

  const open = async (): Promise<Page> => {
    const page = await openPage(context, server.url);
    await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
    return page;
  };

  test('is offered in every tab, and each of them takes it, one after the other', async () => {
    const pages = [await open(), await open()];
    update();
    await pages[0]!.evaluate(async () => void (await (await navigator.serviceWorker.ready).update()));
    const button = (page: Page) => page.getByText('Reload for the new version');
    for (const page of pages) await button(page).waitFor();
    for (const page of pages) {
      await button(page).click();
      await page.waitForSelector('script[src*="newer"]', { state: 'attached' });
      await page.waitForSelector('.rail .state');
      expect(await button(page).count()).toBe(0);
    }
  });

  test('leaves the files of the older one to the tabs that still run it, and to nobody else', async () => {
    const [taking, staying] = [await open(), await open()];
    update();
    await taking.evaluate(async () => void (await (await navigator.serviceWorker.ready).update()));
    await taking.getByText('Reload for the new version').click();
    await taking.waitForSelector('script[src*="newer"]', { state: 'attached' });
    // The server has no such file any more.
    const older = await staying.locator('script[src*="index-"]').evaluate((script: HTMLScriptElement) => script.src);
    const load = (page: Page): Promise<number> => page.evaluate(async (url) => (await fetch(url, { cache: 'no-store' })).status, older);
    expect(await load(staying)).toBe(200);
    expect(await load(taking)).toBe(200);
    await staying.close();
    await expect.poll(() => load(taking)).toBe(404);
    expect(await taking.evaluate(async () => (await caches.keys()).filter((name) => name.startsWith('parley-')))).toEqual(['parley-newer']);
  });
});
