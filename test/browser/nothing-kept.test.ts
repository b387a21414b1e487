/** A browser whose person lets pages keep nothing, as private windows of some browsers do: the page works for this visit and says what it cannot keep. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildPlayground, findChromium, launchKeepingNothing } from './chromium.ts';
import { ask, openPage } from './playground.ts';
import { serveFolder } from './static-server.ts';
import type { StaticServer } from './static-server.ts';

describe.skipIf(findChromium() === undefined)('where pages may keep nothing', () => {
  const profile = mkdtempSync(join(tmpdir(), 'parley-profile-'));
  const failures: string[] = [];
  let server: StaticServer;
  let context: BrowserContext;
  let page: Page;

  beforeAll(async () => {
    server = await serveFolder(buildPlayground('nothing-kept'));
    context = await launchKeepingNothing(profile);
    context.on('weberror', (error) => failures.push(error.error().message));
    page = await openPage(context, server.url);
  });
  afterAll(async () => {
    await context?.close();
    await server?.close();
    rmSync(profile, { recursive: true });
  });

  test('the browser refuses every store', async () => {
    const refused = await page.evaluate(async () => {
      const stores = {
        local: () => localStorage,
        session: () => sessionStorage,
        files: () => navigator.storage.getDirectory(),
        locks: () => navigator.locks.query(),
        database: () =>
          new Promise((resolve, reject) => {
            const request = indexedDB.open('anything');
            request.addEventListener('success', resolve);
            request.addEventListener('error', () => reject(request.error as DOMException));
          }),
      };
      const found: string[] = [];
      for (const [name, open] of Object.entries(stores)) {
        await Promise.resolve()
          .then(open)
          .catch(() => found.push(name));
      }
      return found;
    });
    expect(refused).toEqual(['local', 'session', 'files', 'locks', 'database']);
  });

  test('a question is answered, and the page says that it cannot keep it', async () => {
    expect(await ask(page, 'What is the capital of France?')).toMatch(/Paris/);
    await page.getByText(/Conversations cannot be kept here/).waitFor();
    expect(await ask(page, 'Hello!')).not.toBe('');
    // A choice holds for this visit.
    await page.getByRole('button', { name: 'Theme' }).click();
    await page.getByRole('button', { name: 'Theme: light' }).waitFor();
  });

  test('it says which models that concerns', async () => {
    await page.goto(`${server.url}#/models`);
    await page.getByText(/keeps nothing for this page/).waitFor();
  });

  test('nothing fails behind it', () => {
    expect(failures).toEqual([]);
  });
});
