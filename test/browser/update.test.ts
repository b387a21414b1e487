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
      writeFileSync(join(folder, file), text.replace(/("version":")\w+/, '$1newer'));
    }
    renameSync(join(assets, old), join(assets, 'index-newer.js'));
  }

  test('is offered in every tab, and each of them takes it, one after the other', async () => {
    const open = async (): Promise<Page> => {
      const page = await openPage(context, server.url);
      await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
      return page;
    };
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
});
