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

/** Not the compressed copies, which would be served instead of what a test changes. */
const isLoose = (path: string): boolean => !/\.(br|gz)$/.test(path);
/** The caches of the origin. */
const cachesOf = (page: Page): Promise<string[]> => page.evaluate(async () => (await caches.keys()).sort());

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
    cpSync(buildPlayground('update'), folder, { recursive: true, filter: isLoose });
    server = await serveFolder(folder);
    context = await browser.newContext();
  });
  afterEach(async () => {
    await context.close();
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Replaces the build by one whose script has another name. */
  function update(built: string): void {
    const assets = join(built, 'assets');
    const old = readdirSync(assets).find((name) => /^index-.*\.js$/.test(name))!;
    for (const file of ['index.html', 'sw.js']) {
      const text = readFileSync(join(built, file), 'utf8').replaceAll(old, 'index-newer.js');
      const newer = text.replace(/(\\"version\\":\\")\w+/, '$1newer');
      writeFileSync(join(built, file), newer);
      if (file === 'sw.js') expect(newer).toContain('newer\\"');
    }
    renameSync(join(assets, old), join(assets, 'index-newer.js'));
  }

  const open = async (path = ''): Promise<Page> => {
    const page = await openPage(context, server.url + path);
    await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
    return page;
  };

  test('is offered in every tab, and each of them takes it, one after the other', async () => {
    const pages = [await open(), await open()];
    update(folder);
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
    update(folder);
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
    expect(await cachesOf(taking)).toEqual(['parley / newer']);
  });

  test('leaves pages below other paths of the origin what they keep, and deletes its own also by the names of before', async () => {
    for (const name of ['a', 'b']) cpSync(buildPlayground('update'), join(folder, name), { recursive: true, filter: isLoose });
    const [one, other] = [await open('a/'), await open('b/')];
    const names = await cachesOf(one);
    expect(names).toEqual([expect.stringMatching(/^parley \/a\/ \w+$/), expect.stringMatching(/^parley \/b\/ \w+$/)]);
    // As versions before called them: one that both have filled, and one of each alone.
    await one.evaluate(
      async (pages) => {
        for (const [name, paths] of Object.entries({ 'parley-0both': pages, 'parley-0a': [pages[0]!], 'parley-0b': [pages[1]!] }))
          await (await caches.open(name)).addAll(paths.flatMap((path) => [path, `${path}manifest.webmanifest`]));
      },
      ['/a/', '/b/'],
    );
    update(join(folder, 'a'));
    await one.evaluate(async () => void (await (await navigator.serviceWorker.ready).update()));
    await one.getByText('Reload for the new version').click();
    await one.waitForSelector('script[src*="newer"]', { state: 'attached' });
    // What is left is looked at whenever a file is loaded: the tab's former page may still have been there when the new one loaded its own.
    const left = async (): Promise<string[]> => {
      await one.evaluate(async () => void (await fetch(document.querySelector<HTMLScriptElement>('script[src*="newer"]')!.src)));
      return cachesOf(one);
    };
    await expect.poll(left).toEqual(['parley /a/ newer', names[1], 'parley-0b', 'parley-0both']);
    const others = other.evaluate(async () => (await (await caches.open('parley-0both')).keys()).map(({ url }) => new URL(url).pathname));
    expect(await others).toEqual(['/b/', '/b/manifest.webmanifest']);
    await server.close();
    await other.reload();
    await other.waitForSelector('.rail .state');
  });
});
