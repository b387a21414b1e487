/** The origin's store of models, which tabs share, in a real private file system. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { build } from 'vite';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type * as Store from '../../web/src/models/model-store.ts';
import { ROOT, findChromium, launchChromium } from './chromium.ts';
import { serveFolder } from './static-server.ts';
import type { StaticServer } from './static-server.ts';

/** What the page has of model-store.ts. */
declare const parleyStore: typeof Store;

describe.skipIf(findChromium() === undefined)('stored models, with two tabs on them', () => {
  let folder: string;
  let server: StaticServer;
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'parley-store-'));
    writeFileSync(join(folder, 'index.html'), '<!doctype html><script src="store.js"></script>');
    for (const name of ['weights.bin', 'more.bin']) writeFileSync(join(folder, name), new Uint8Array(1000).fill(7));
    const lib = {
      entry: join(ROOT, 'web/src/models/model-store.ts'),
      formats: ['iife' as const],
      name: 'parleyStore',
      fileName: () => 'store.js',
    };
    await build({ configFile: false, logLevel: 'error', build: { lib, outDir: folder, emptyOutDir: false } });
    server = await serveFolder(folder);
    browser = await launchChromium({ webgpu: false });
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
    rmSync(folder, { recursive: true });
  });
  beforeEach(async () => {
    server.requests.length = 0;
    page = await (await browser.newContext()).newPage();
    await page.goto(server.url);
  });

  test.each(['notes something of', 'downloads again'] as const)('what one %s stays whole for the other', async (what) => {
    const found = await page.evaluate(async (what) => {
      const { ModelStore } = parleyStore;
      const [writer, reader] = [new ModelStore(), new ModelStore()];
      const files = [{ name: 'weights.bin', size: 1000, url: 'weights.bin', sha256: [] }];
      const manifest = { id: 'a/b', task: 'chat', modelType: '', source: 'address', files } as const;
      const download = () => writer.download(manifest, new AbortController().signal, () => {});
      await download();
      const damaged = new Set<string>();
      const write = async (): Promise<void> => {
        for (let i = 0; i < 100; i++) await (what === 'downloads again' ? download() : writer.note('a/b', { contextLength: i }));
      };
      const read = async (): Promise<void> => {
        for (let i = 0; i < 100; i++) for (const name of await reader.verify('a/b', () => {})) damaged.add(name);
      };
      await Promise.all([write(), read()]);
      return { damaged: [...damaged], about: (await reader.get('a/b'))?.manifest.about };
    }, what);
    expect(found).toEqual({ damaged: [], about: what === 'downloads again' ? undefined : { contextLength: 99 } });
    expect(server.requests.filter((path) => path === '/weights.bin').length).toBe(1);
  });

  test('a file of the same name and size at another address is another one, unless its publisher says that it is not', async () => {
    const names = await page.evaluate(async () => {
      const { ModelStore } = parleyStore;
      const store = new ModelStore();
      const get = async (url: string, hex?: string): Promise<string | undefined> => {
        const published = hex === undefined ? {} : { published: { kind: 'sha256', hex } as const };
        const files = [{ name: 'm.gguf', size: 1000, url, sha256: [], ...published }];
        await store.download({ id: 'm', task: 'chat', modelType: '', source: 'address', files }, new AbortController().signal, () => {});
        return (await store.get('m'))?.manifest.files[0]?.url;
      };
      const bytes = await (await fetch('weights.bin')).arrayBuffer();
      const hex = [...new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))]
        .map((byte) => byte.toString(16).padStart(2, '0'))
        .join('');
      return [await get('weights.bin'), await get('more.bin'), await get('weights.bin', hex), await get('more.bin', hex)];
    });
    expect(names).toEqual(['weights.bin', 'more.bin', 'weights.bin', 'more.bin']);
    // The first is of this test, which makes the hash.
    expect(server.requests.filter((path) => path.endsWith('.bin')).sort()).toEqual([
      '/more.bin',
      '/weights.bin',
      '/weights.bin',
      '/weights.bin',
    ]);
  });

  test('a file at an address with another permission behind it is the same one, unless it was changed since', async () => {
    await page.evaluate(async () => {
      const store = new parleyStore.ModelStore();
      const get = async (url: string, modified?: string): Promise<void> => {
        const files = [{ name: 'm.gguf', size: 1000, url, sha256: [], ...(modified !== undefined && { modified }) }];
        await store.download({ id: 'm', task: 'chat', modelType: '', source: 'address', files }, new AbortController().signal, () => {});
      };
      await get('weights.bin?sig=1', 'Monday');
      await get('weights.bin?sig=2', 'Monday');
      await get('weights.bin?sig=3', 'Tuesday');
      await get('weights.bin?sig=4');
      await get('weights.bin?sig=5');
      await get('more.bin?sig=5', 'Monday');
    });
    const asked = server.requests.filter((path) => path.includes('.bin'));
    expect(asked).toEqual(['weights', 'weights', 'weights', 'weights', 'more'].map((name) => `/${name}.bin`));
  });

  test('what one deletes and gets again never keeps the other from listing the rest', async () => {
    const lists = await page.evaluate(async () => {
      const { ModelStore } = parleyStore;
      const [writer, reader] = [new ModelStore(), new ModelStore()];
      const files = [{ name: 'weights.bin', size: 1000, url: 'weights.bin', sha256: [] }];
      const get = (id: string): Promise<unknown> =>
        writer.download({ id, task: 'chat', modelType: '', source: 'address', files }, new AbortController().signal, () => {});
      await get('stays');
      const write = async (): Promise<void> => {
        for (let i = 0; i < 100; i++) await get('comes and goes').then(() => writer.remove('comes and goes'));
      };
      const seen = new Set<boolean>();
      const read = async (): Promise<void> => {
        for (let i = 0; i < 200; i++) seen.add((await reader.list()).some(({ manifest }) => manifest.id === 'stays'));
      };
      await Promise.all([write(), read()]);
      return [...seen];
    });
    expect(lists).toEqual([true]);
  });

  test('both mend what is damaged, at once', async () => {
    const found = await page.evaluate(async () => {
      const { ModelStore } = parleyStore;
      const stores = [new ModelStore(), new ModelStore()];
      const files = [{ name: 'weights.bin', size: 1000, url: 'weights.bin', sha256: [] }];
      const manifest = { id: 'a', task: 'chat', modelType: '', source: 'address', files } as const;
      const download = (store: Store.ModelStore): Promise<unknown> => store.download(manifest, new AbortController().signal, () => {});
      await download(stores[0]!);
      const models = await (await navigator.storage.getDirectory()).getDirectoryHandle('models');
      const chunk = await (await models.getDirectoryHandle('a')).getFileHandle('weights.bin.0');
      const found = new Set<string>();
      const mend = async (store: Store.ModelStore): Promise<void> => {
        for (const name of await store.verify('a', () => {})) found.add(name);
        await download(store);
      };
      for (let i = 0; i < 50; i++) {
        const writer = await chunk.createWritable();
        await writer.write(new Uint8Array(1000));
        await writer.close();
        await Promise.all(stores.map(mend));
        if ((await stores[0]!.verify('a', () => {})).length > 0) found.add('still damaged');
      }
      return [...found];
    });
    expect(found).toEqual(['weights.bin']);
  });

  test('what one still downloads is not damaged for the other', async () => {
    server.intercept = (path) => (path === '/more.bin' ? 'hang' : undefined);
    const found = page.evaluate(async () => {
      const { ModelStore } = parleyStore;
      const files = ['weights.bin', 'more.bin'].map((name) => ({ name, size: 1000, url: name, sha256: [] }));
      const manifest = { id: 'a', task: 'chat', modelType: '', source: 'address', files } as const;
      let hasFirst = (): void => {};
      const first = new Promise<void>((resolve) => (hasFirst = resolve));
      const download = new ModelStore().download(manifest, new AbortController().signal, hasFirst);
      await first;
      const [damaged] = await Promise.all([new ModelStore().verify('a', () => {}), download]);
      return damaged;
    });
    await page.waitForFunction(async () => (await navigator.locks.query()).pending!.some(({ name }) => name === 'parley-model-a'));
    server.intercept = undefined;
    expect(await found).toEqual([]);
    expect(server.requests.filter((path) => path.endsWith('.bin'))).toEqual(['/weights.bin', '/more.bin']);
  });

  test('what cannot be written for want of room is as it was before', async () => {
    const found = await page.evaluate(async () => {
      const store = new parleyStore.ModelStore();
      const files = [{ name: 'weights.bin', size: 1000, url: 'weights.bin', sha256: [] }];
      const get = (id: string): Promise<unknown> =>
        store.download({ id, task: 'chat', modelType: '', source: 'address', files }, new AbortController().signal, () => {});
      await get('a');
      FileSystemWritableFileStream.prototype.close = async function () {
        await this.abort();
        throw new DOMException('full', 'QuotaExceededError');
      };
      const kinds: unknown[] = [];
      for (const work of [store.note('a', { contextLength: 1 }), get('b')]) await work.catch(({ kind }) => kinds.push(kind));
      return { kinds, listed: (await store.list()).map(({ manifest, complete }) => [manifest.id, complete, manifest.about]) };
    });
    expect(found).toEqual({ kinds: ['quota', 'quota'], listed: [['a', true, undefined]] });
  });

  test('a download that is stopped can be deleted at once, and does not come back', async () => {
    server.intercept = (path) => (path === '/more.bin' ? 'hang' : undefined);
    const found = await page.evaluate(async () => {
      const store = new parleyStore.ModelStore();
      const files = ['weights.bin', 'more.bin'].map((name) => ({ name, size: 1000, url: name, sha256: [] }));
      const manifest = { id: 'a', task: 'chat', modelType: '', source: 'address', files } as const;
      const stop = new AbortController();
      let hasFirst = (): void => {};
      const first = new Promise<void>((resolve) => (hasFirst = resolve));
      const failed: unknown[] = [];
      const download = (): Promise<unknown> => store.download(manifest, stop.signal, hasFirst).catch(({ name }) => failed.push(name));
      const begun = download();
      await first;
      stop.abort();
      await store.remove('a');
      await Promise.all([begun, download()]);
      return { failed, listed: (await store.list()).length };
    });
    server.intercept = undefined;
    expect(found).toEqual({ failed: ['AbortError', 'AbortError'], listed: 0 });
  });

  test('what another tab downloads is not deleted, and the person is told', async () => {
    const message = await page.evaluate(async () => {
      const store = new parleyStore.ModelStore();
      let release = (): void => {};
      void navigator.locks.request('parley-model-a', () => new Promise<void>((resolve) => (release = resolve)));
      const message = await store.remove('a').catch((error: Error) => error.message);
      release();
      await store.remove('a');
      return message;
    });
    expect(message).toBe('a is being written, perhaps by another tab; try again when that is done');
  });
});
