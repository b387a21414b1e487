/** Models from a hub (a local server that speaks its protocol) and from a folder: fetched, resumed, checked, mended, deleted, used without a network. */
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, BrowserContext, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { CHUNK_BYTES } from '../../web/src/models/manifest.ts';
import { ROOT, buildPlayground, findChromium, launchChromium } from './chromium.ts';
import { serveHub } from '../support/hub-server.ts';
import type { HubServer } from '../support/hub-server.ts';
import { kokoroFormat } from '../support/kokoro-formats.ts';
import { ask, greedyContext, openPage, waitForState } from './playground.ts';
import { serveFolder } from './static-server.ts';
import type { StaticServer } from './static-server.ts';

const ID = 'somebody/whisper-fox';
/** Larger than two chunks of the store. */
const WEIGHTS = 'model.safetensors';
/** The range header of everything after the first chunks of WEIGHTS. */
const rangeFrom = (chunk: number): RegExp => new RegExp(`^bytes=${chunk * CHUNK_BYTES}-\\d+$`);

describe.skipIf(findChromium() === undefined)('own models', () => {
  let server: StaticServer;
  let hub: HubServer;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  let model: Locator;

  beforeAll(async () => {
    server = await serveFolder(buildPlayground('own'));
    hub = await serveHub(ID, join(ROOT, 'models', 'parley-transcribe'));
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser?.close();
    await hub?.close();
    await server?.close();
  });
  beforeEach(async () => {
    hub.downloads.length = hub.requests.length = 0;
    Object.assign(hub, { fault: undefined, token: undefined, terms: false });
    context = await greedyContext(browser);
    page = await openPage(context, server.url, 'models');
    model = page.locator(`[data-model="${ID}"]`);
  });
  afterEach(async () => {
    await context.close();
  });

  const lookUp = async (id = ID): Promise<void> => {
    await page.locator('#hub-access > summary').click();
    await page.getByLabel('Address of the hub').fill(hub.url);
    await page.getByLabel('Address of the hub').blur();
    await page.getByLabel('Hub id or https address').fill(id);
    await page.getByText('Look it up').click();
  };
  const isStored = (state: 'yes' | 'part' | 'no'): Promise<void> =>
    model.and(page.locator(`[data-stored="${state}"]`)).waitFor({ timeout: 0 });
  const store = async (): Promise<void> => {
    await lookUp();
    await model.getByText(/^Download/).click();
    await isStored('yes');
  };
  const revisit = async (): Promise<void> => {
    await page.reload();
    await page.waitForSelector('main.models');
  };
  const storedFiles = (): Promise<string[]> =>
    page.evaluate(async () => {
      const names: string[] = [];
      const models = await (await navigator.storage.getDirectory()).getDirectoryHandle('models');
      for await (const [name] of models as unknown as AsyncIterable<[string]>) names.push(name);
      return names;
    });

  test('a repository is looked up first and fetched when asked, with progress, and every byte is right', async () => {
    await lookUp();
    await model.waitFor();
    expect(await model.innerText()).toMatch(/whisper · safetensors · 18 MB · at least 18 MB of memory · hub\s+English/);
    // Only small files and the header of the weights: size, memory and languages are known before anything large is fetched.
    const ranges = hub.downloads.filter(({ name }) => name === WEIGHTS).map(({ range }) => range);
    expect(ranges).toEqual(['bytes=0-262143']);
    expect(await model.getByRole('button').allInnerTexts()).toEqual([expect.stringMatching(/^Download 18 MB$/)]);
    await page.evaluate(() => {
      const shares: number[] = [];
      Object.assign(globalThis, { shares });
      new MutationObserver(() => {
        const bar = document.querySelector<HTMLProgressElement>('.model progress');
        if (bar && bar.value !== shares.at(-1)) shares.push(bar.value);
      }).observe(document.querySelector('main')!, { subtree: true, childList: true, attributes: true });
    });
    await model.getByText(/^Download/).click();
    await isStored('yes');
    const shares = await page.evaluate(() => (globalThis as unknown as { shares: number[] }).shares);
    expect(shares.length).toBeGreaterThan(1);
    expect(shares).toEqual([...shares].sort((a, b) => a - b));
    expect(shares.at(-1)).toBeGreaterThan(0.9);
    await model.getByText('Verify').click();
    await model.getByText('Every byte is right').waitFor();
  });

  test('a download that broke goes on after a reload, where it stopped', async () => {
    await lookUp();
    await model.waitFor();
    hub.fault = (name) => (name === WEIGHTS ? 'cut' : undefined);
    await model.getByText(/^Download/).click();
    await isStored('part');
    hub.fault = undefined;
    hub.downloads.length = 0;
    await revisit();
    await model.getByText('Resume').click();
    await isStored('yes');
    const ranges = hub.downloads.filter(({ name }) => name === WEIGHTS).map(({ range }) => range);
    expect(ranges).toEqual([expect.stringMatching(rangeFrom(1))]);
    await model.getByText('Verify').click();
    await model.getByText('Every byte is right').waitFor();
  });

  test('pause keeps what has arrived', async () => {
    await lookUp();
    await model.getByText(/^Download/).click();
    await model.getByText('Pause').click();
    await isStored('part');
    expect(await model.locator('.note').innerText()).toMatch(/Paused/);
    await model.getByText('Resume').click();
    await isStored('yes');
  });

  test.each(['config.json', WEIGHTS])('%s with a byte other than its published hash says is refused', async (wrong) => {
    await lookUp();
    await model.waitFor();
    hub.fault = (name) => (name === wrong ? 'corrupt' : undefined);
    await model.getByText(/^Download/).click();
    await isStored('part');
    expect(await model.locator('.note').innerText()).toBe(`${wrong} did not arrive as published (its hash differs); try again`);
    hub.fault = undefined;
    await model.getByText('Resume').click();
    await isStored('yes');
  });

  test('a damaged stored copy is noticed at loading, and one chunk is fetched again', async () => {
    await store();
    await page.evaluate(
      async ({ folder, file }) => {
        const models = await (await navigator.storage.getDirectory()).getDirectoryHandle('models');
        const chunk = await (await models.getDirectoryHandle(folder)).getFileHandle(file);
        const writer = await chunk.createWritable({ keepExistingData: true });
        await writer.write({ type: 'write', position: 5000, data: new Uint8Array(64).fill(7) });
        await writer.close();
      },
      { folder: encodeURIComponent(ID), file: `${WEIGHTS}.1` },
    );
    hub.downloads.length = 0;
    await model.getByText('Load', { exact: true }).click();
    await waitForState(page, 'transcription', 'ready');
    expect(hub.downloads).toEqual([{ name: WEIGHTS, range: `bytes=${CHUNK_BYTES}-${2 * CHUNK_BYTES - 1}` }]);
  });

  test('the second visit needs no network, and deleting leaves nothing', async () => {
    await store();
    await page.evaluate(async () => void (await navigator.serviceWorker.ready));
    await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
    await context.setOffline(true);
    await revisit();
    await model.getByText('Load', { exact: true }).click();
    await waitForState(page, 'transcription', 'ready');
    await model.getByText('Delete').click();
    await model.waitFor({ state: 'detached' });
    expect(await storedFiles()).toEqual([]);
    await revisit();
    expect(await model.count()).toBe(0);
  });

  test('a repository that is not there, or not public, is named', async () => {
    await lookUp('somebody/else');
    await page.getByText('the hub has no open model somebody/else; its name may be wrong, or it is private: then give').waitFor();
    await page.getByLabel('Hub id or https address').fill('no slash');
    await page.getByText('Look it up').click();
    await page.getByText('“no slash” is no hub id (owner/name) and no https address').waitFor();
  });

  test('a model with terms leads to the field of the token, which the hub alone is sent; it is kept as long as the person says', async () => {
    Object.assign(hub, { token: 'hf_mine', terms: true });
    await lookUp();
    const refusal = page.locator('.add-model [role="alert"]');
    expect(await refusal.locator('p').innerText()).toMatch(
      /^config.json: somebody\/whisper-fox is given only to who has accepted its terms/,
    );
    await page.locator('#hub-access > summary').click();
    await refusal.getByText('Give a token').click();
    const field = page.getByLabel('Your token there');
    expect(await field.evaluate((element) => element === document.activeElement)).toBe(true);
    await field.fill('hf_mine');
    await field.press('Enter');
    await page.getByText('Look it up').click();
    await model.getByText(/^Download/).click();
    await isStored('yes');
    const sent = (host: string): Set<unknown> =>
      new Set(hub.requests.filter((request) => request.host === host).map(({ authorization }) => authorization));
    expect(sent('hub')).toEqual(new Set([undefined, 'Bearer hf_mine']));
    expect(sent('storage')).toEqual(new Set([undefined]));
    await revisit();
    expect(await field.inputValue()).toBe('');
    await page.locator('#hub-access > summary').click();
    await field.fill('hf_mine');
    await page.getByLabel('Keep the token').check();
    await revisit();
    expect(await field.inputValue()).toBe('hf_mine');
    // Another hub's field is another field.
    await page.locator('#hub-access > summary').click();
    await page.getByLabel('Address of the hub').fill('https://hub.example.org');
    await page.getByLabel('Address of the hub').blur();
    expect(await field.inputValue()).toBe('');
  });

  test('a folder of the person becomes a model that answers with the network cut; folders that are none say why', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'parley-folder-'));
    try {
      const mine = join(folder, 'my-chat');
      cpSync(join(ROOT, 'models', 'parley-chat'), mine, { recursive: true });
      const other = join(folder, 'a-bert');
      cpSync(mine, other, { recursive: true });
      writeFileSync(join(other, 'config.json'), JSON.stringify({ model_type: 'bert' }));
      const picker = page.getByLabel('Open a folder');
      await picker.setInputFiles(other);
      await page.getByText(/model_type bert; known are llama/).waitFor();
      // The page works without a network once its service worker has stored it.
      await page.evaluate(async () => void (await navigator.serviceWorker.ready));
      await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
      await context.setOffline(true);
      await picker.setInputFiles(mine);
      model = page.locator('[data-model="local/my-chat"]');
      await isStored('yes');
      await model.getByText('Load', { exact: true }).click();
      await waitForState(page, 'chat', 'ready');
      await page.locator('nav').getByText('Chat').click();
      await page.waitForSelector('main.chat');
      expect(await ask(page, 'What is the capital of France?')).toMatch(/Paris/);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test('a published Kokoro is read, and the view says its voices instead of the bundled model’s', async () => {
    const parent = mkdtempSync(join(tmpdir(), 'parley-folder-'));
    const published = kokoroFormat('onnx-int8');
    try {
      cpSync(published, join(parent, 'my-kokoro'), { recursive: true });
      await page.getByLabel('Open a folder').setInputFiles(join(parent, 'my-kokoro'));
      model = page.locator('[data-model="local/my-kokoro"]');
      await isStored('yes');
      expect(await model.innerText()).toMatch(/kokoro · onnx · 714 kB · at least 125 kB of memory · local\s+2 voices · 24 kHz/);
      await model.getByText('Load', { exact: true }).click();
      await waitForState(page, 'speech', 'ready');
      await page.locator('nav').getByText('Speak').click();
      await page.waitForSelector('main.speak');
      expect(await page.locator('.place').innerText()).toBe(
        'local/my-kokoro in this tab · 2 voices · 24 kHz · American English, British English',
      );
      expect(await page.locator('.voices label').allInnerTexts()).toEqual(['af_one', 'bm_two']);
      // The voice that was chosen is one of the bundled model's.
      await page.fill('main textarea', 'Hi.');
      await page.locator('main form button').click();
      await page.waitForSelector('.take[data-status="done"]');
      expect(await page.locator('.take').innerText()).toMatch(/^af_one · /);
    } finally {
      for (const folder of [parent, published]) rmSync(folder, { recursive: true, force: true });
    }
  });

  test('a recommended model is one click, a Whisper of CTranslate2 here, and the view says its languages', async () => {
    const fixture = join(ROOT, 'test', 'fixtures', 'ctranslate2-tiny-random', 'float16');
    const other = await serveHub('Systran/faster-whisper-tiny.en', fixture);
    try {
      await page.locator('#hub-access > summary').click();
      await page.getByLabel('Address of the hub').fill(other.url);
      await page.getByLabel('Address of the hub').blur();
      model = page.locator('[data-model="whisper-tiny.en"]');
      expect(await model.innerText()).toMatch(/78 MB · about 265 MB of memory[^\n]*\s+Good for clear English/);
      await page.getByRole('button', { name: /^Download 78 MB: whisper-tiny.en$/ }).click();
      await isStored('yes');
      await model.getByText('Load', { exact: true }).click();
      await waitForState(page, 'transcription', 'ready');
      await page.locator('nav').getByText('Transcribe').click();
      await page.waitForSelector('main.transcribe');
      expect(await page.locator('.place').innerText()).toBe('whisper-tiny.en in this tab · English');
    } finally {
      await other.close();
    }
  });

  test('a GGUF file of the person becomes a chat model', async () => {
    await page.getByLabel('Open a GGUF file').setInputFiles(join(ROOT, 'test', 'fixtures', 'gguf', 'tiny', 'qwen3-Q4_K_M.gguf'));
    model = page.locator('[data-model="local/qwen3"]');
    await isStored('yes');
    expect(await model.innerText()).toMatch(/qwen3 · GGUF Q4_K_M · [\d.]+ kB · about [\d.]+ kB of memory · local\s+512 tokens of context/);
    await model.getByText('Load', { exact: true }).click();
    await waitForState(page, 'chat', 'ready');
    await page.locator('nav').getByText('Chat').click();
    await page.waitForSelector('main.chat');
    // Its context is as long as answers may be.
    await page.getByLabel('Longest answer, tokens').fill('16');
    await page.getByLabel('Longest answer, tokens').blur();
    await page.fill('.composer textarea', 'the boat');
    await page.press('.composer textarea', 'Enter');
    // Random weights: that there is an answer is all that can be said of it.
    await page.locator('.message').nth(1).locator('.markdown', { hasText: /\S/ }).waitFor();
  });

  test('what is deleted while it is checked does not come back', async () => {
    await store();
    // The check stands still until it is let go; then it ends by asking whether another tab writes the model.
    await page.evaluate(() => {
      const { digest } = crypto.subtle;
      const request = navigator.locks.request.bind(navigator.locks) as (...args: unknown[]) => Promise<unknown>;
      const check = { letGo: (): void => {}, asked: 0 };
      const going = new Promise<void>((resolve) => (check.letGo = resolve));
      crypto.subtle.digest = async (...args) => {
        await going;
        return digest.apply(crypto.subtle, args);
      };
      navigator.locks.request = async (...args: unknown[]): Promise<never> => {
        try {
          return (await request(...args)) as never;
        } finally {
          if ((args[1] as LockOptions).ifAvailable) check.asked++;
        }
      };
      Object.assign(globalThis, { check });
    });
    await model.getByText('Load', { exact: true }).click();
    await waitForState(page, 'transcription', 'checking');
    await model.getByText('Delete').click();
    await isStored('no');
    await page.evaluate(() => (globalThis as unknown as { check: { letGo(): void } }).check.letGo());
    await page.waitForFunction(() => (globalThis as unknown as { check: { asked: number } }).check.asked > 0);
    expect(await storedFiles()).toEqual([]);
    await isStored('no');
  });

  test('after a preset its model answers, not the one that was loaded before', async () => {
    model = page.locator('[data-model="parley-chat"]');
    await model.getByText('Load', { exact: true }).click();
    await waitForState(page, 'chat', 'ready');
    // The preset's models are here: copies of a bundled one under their names.
    await page.evaluate(async () => {
      const models = await (await navigator.storage.getDirectory()).getDirectoryHandle('models');
      const from = await models.getDirectoryHandle('parley-chat');
      for (const id of ['SmolLM2-135M-Instruct', 'Kokoro-82M-int8', 'whisper-base']) {
        const to = await models.getDirectoryHandle(id, { create: true });
        for await (const [name, handle] of from as unknown as AsyncIterable<[string, FileSystemFileHandle]>) {
          const file = await handle.getFile();
          const content = name === 'manifest.json' ? JSON.stringify({ ...JSON.parse(await file.text()), id, source: 'hub' }) : file;
          const writer = await (await to.getFileHandle(name, { create: true })).createWritable();
          await writer.write(content);
          await writer.close();
        }
      }
    });
    await model.getByText('Verify').click();
    await page.getByRole('button', { name: 'Use these: preset small' }).click();
    await page.getByText('The models of small are those of chat').waitFor();
    await page.locator('nav').getByText('Chat').click();
    await page.waitForSelector('main.chat');
    expect(await page.locator('.place').innerText()).toMatch(/^SmolLM2-135M-Instruct in this tab/);
    await ask(page, 'What is the capital of France?');
    await page.locator('nav').getByText('Models').click();
    expect(await page.locator('[data-model="SmolLM2-135M-Instruct"] .state').innerText()).toBe('loaded');
  });
});
