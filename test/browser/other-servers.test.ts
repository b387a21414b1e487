/** The page with servers of other products, and with what other versions of it have stored. */
import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FakeEngine } from '../support/fake-engine.ts';
import { wavFile } from '../support/wav-file.ts';
import { findChromium } from './chromium.ts';
import { startFakeServers } from './fake-servers.ts';
import type { FakeServers } from './fake-servers.ts';
import { ask, openPage, stored } from './playground.ts';

const MODELS = { data: [{ id: 'models--org--a_name_without_a_single_space_or_hyphen_as_files_have_them' }] };

describe.skipIf(findChromium() === undefined)('other servers', () => {
  let servers: FakeServers;
  beforeAll(async () => {
    servers = await startFakeServers('other-servers', new FakeEngine());
  });
  afterAll(() => servers?.close());

  test('a voice that the server has speaks from the first take on', async () => {
    const context = await servers.context();
    const voices: unknown[] = [];
    await context.route('**/v1/**', async (route) => {
      const request = route.request();
      if (request.url().endsWith('/models')) return route.fulfill({ json: MODELS });
      if (request.url().endsWith('/voices')) return route.fulfill({ json: { voices: [{ name: 'af_heart' }] } });
      voices.push((request.postDataJSON() as { voice: string }).voice);
      return route.fulfill({ body: Buffer.from(wavFile(new Float32Array(2400), { encoding: 's16', sampleRate: 24_000 })) });
    });
    const page = await openPage(context, servers.url, 'speak');
    await page.locator('main form button').click();
    await page.locator('.take[data-status="done"]').getByText('af_heart').waitFor();
    expect(voices).toEqual(['af_heart']);
    await context.close();
  });

  test('their words and names are read whole on a narrow screen', async () => {
    const context = await servers.context({ viewport: { width: 320, height: 640 } });
    const path = `/home/${'somebody_else_'.repeat(9)}`;
    await context.route('**/v1/**', (route) =>
      route.request().url().endsWith('/models') ? route.fulfill({ json: MODELS }) : route.fulfill({ status: 400, json: { detail: path } }),
    );
    const page = await openPage(context, servers.url, 'speak');
    await page.locator('main form button').click();
    await page.locator('.take .failure').getByText(path).waitFor();
    const wider = (selector: string): Promise<boolean> =>
      page.locator(selector).evaluate((element) => {
        const range = document.createRange();
        range.selectNodeContents(element);
        return range.getBoundingClientRect().right > innerWidth;
      });
    expect(await wider('.take .failure p, .take p.failure')).toBe(false);
    expect(await wider('#speak-place .name')).toBe(false);
    await context.close();
  });

  describe('conversations', () => {
    const titles = (page: Page): Promise<string[]> => page.locator('.conversations .title').allInnerTexts();
    const opened = async (context: BrowserContext): Promise<Page> => openPage(context, servers.url);

    test('that are imported stand in the order of the file, also after a reload', async () => {
      const context = await servers.context();
      const page = await opened(context);
      const names = Array.from({ length: 12 }, (_, at) => `number ${at}`);
      const conversations = names.map((title, at) => ({
        title,
        created: 1,
        updated: 1000 - at,
        messages: [{ role: 'user', text: title }],
      }));
      const buffer = Buffer.from(JSON.stringify({ format: 'parley-conversations', version: 1, conversations }));
      await page.locator('.conversations input[type="file"]').setInputFiles({ name: 'a.json', mimeType: 'application/json', buffer });
      await page.getByText('12 imported').waitFor();
      expect(await titles(page)).toEqual([...names, 'Untitled']);
      await page.locator('.message.user', { hasText: 'number 0' }).waitFor();
      await stored(page, 'conversations', 12);
      await page.reload();
      await page.locator('.conversations .title', { hasText: 'number 11' }).waitFor();
      expect(await titles(page)).toEqual(['Untitled', ...names]);
      await context.close();
    });

    test('of another version hide none of this one', async () => {
      const context = await servers.context();
      const page = await opened(context);
      await ask(page, 'Of this version');
      await stored(page, 'conversations', 1);
      await page.evaluate(
        () =>
          new Promise<void>((resolve) => {
            const opening = indexedDB.open('parley');
            opening.onsuccess = () => {
              const writing = opening.result.transaction('conversations', 'readwrite');
              const other = { title: 'Of another', created: 1, updated: 1, system: '' };
              writing.objectStore('conversations').put({ ...other, id: 'a', turns: [] });
              writing.objectStore('conversations').put({ ...other, id: 'b', messages: [{ id: 'c', role: 'user', parts: [] }] });
              writing.oncomplete = () => (opening.result.close(), resolve());
            };
          }),
      );
      await page.reload();
      await page.getByText('Some conversations are not shown').waitFor();
      expect(await titles(page)).toEqual(['Untitled', 'Of this version']);
      await stored(page, 'conversations', 3);
      await context.close();
    });
  });
});
