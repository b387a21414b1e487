/**
 * The built playground in Chromium on its software WebGPU adapter, from a plain static server, with the bundled checkpoints. Skips only where there is no
 * Chromium.
 */
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Browser, BrowserContext, CDPSession, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { TraceEvent } from '../../engine/index.ts';
import { ROOT, buildPlayground, findChromium, launchChromium } from './chromium.ts';
import { ask, beginAnswer, expectNamedControls, greedyContext, longestTask, openPage, textOf, waitForState } from './playground.ts';
import { serveFolder } from './static-server.ts';
import type { StaticServer } from './static-server.ts';

const FOX = 'Tell me a short story about a fox.';
/** The first tokens PyTorch answers to FOX, greedily. */
const FOX_ANSWER = (
  JSON.parse(readFileSync(join(ROOT, 'test', 'fixtures', 'parley-chat', 'golden.json'), 'utf8')) as { greedy_text: string }
).greedy_text;
const CAPITAL = 'What is the capital of France?';

describe.skipIf(findChromium() === undefined)('the playground in Chromium', () => {
  let folder: string;
  let server: StaticServer;
  let browser: Browser;
  let context: BrowserContext;

  beforeAll(async () => {
    folder = buildPlayground('chat');
    server = await serveFolder(folder);
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });
  beforeEach(async () => {
    context = await greedyContext(browser);
    server.requests.length = 0;
    server.intercept = undefined;
  });
  afterEach(async () => {
    await context.close();
  });

  test('weighs less than 1.6 MB compressed without models, each library once and no ONNX Runtime', () => {
    const files = readdirSync(folder, { recursive: true }).map(String);
    const isCopy = (name: string): boolean => /\.(br|gz)$/.test(name) && files.includes(name.slice(0, -3));
    const own = files.filter((name) => !name.startsWith('models') && !isCopy(name) && statSync(join(folder, name)).isFile());
    const contents = own.map((name) => readFileSync(join(folder, name)));
    expect(own.length).toBeGreaterThan(5);
    expect(contents.reduce((sum, bytes) => sum + gzipSync(bytes).length, 0)).toBeLessThan(1.6e6);
    // "AGFzbQ" is WebAssembly's magic number in base64.
    expect(contents.filter((bytes) => bytes.includes('AGFzbQ') && bytes.includes('xgrammar'))).toHaveLength(0);
    expect(own.filter((name) => name.endsWith('.wasm'))).toEqual([expect.stringMatching(/^assets\/grammar-.*\.wasm$/)]);
    expect(contents.filter((bytes) => /onnxruntime/i.test(bytes.toString('latin1')))).toHaveLength(0);
    // The engine's and the self-test's kernels are the same.
    expect(contents.filter((bytes) => bytes.includes('dispatchWorkgroups'))).toHaveLength(1);
  });

  test('answers with the network cut after load, and asks nobody but its own server', async () => {
    const foreign: string[] = [];
    const page = await openPage(context, server.url);
    context.on(
      'request',
      (request) => !request.url().startsWith(server.url) && !/^(data|blob):/.test(request.url()) && foreign.push(request.url()),
    );
    await page.click('text=Load the model');
    await waitForState(page, 'chat', 'ready');
    await context.setOffline(true);
    expect(await ask(page, CAPITAL)).toMatch(/Paris/);
    expect(await ask(page, 'Hello!')).not.toBe('');
    expect(foreign).toEqual([]);
    await page.locator('.message.assistant .stats summary').last().click();
    expect(await textOf(page.locator('.message.assistant .stats dl').last())).toMatch(/from cache/);
  });

  test('a reload keeps the conversation and the model, also without a network', async () => {
    const page = await openPage(context, server.url);
    const answer = await ask(page, CAPITAL);
    await page.evaluate(async () => (await navigator.serviceWorker.ready).active?.state);
    await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
    await context.setOffline(true);
    server.requests.length = 0;
    await page.reload();
    await page.waitForSelector('.message.assistant[data-status="done"]');
    await expect.poll(() => page.locator('.message.assistant .markdown').innerText()).toBe(answer);
    expect(await ask(page, 'What can you do?')).not.toBe('');
    // The browser itself looks for a newer worker; the page asks for nothing.
    expect(server.requests.filter((path) => path !== '/sw.js')).toEqual([]);
  });

  // One after the other on one page: what each asks is told from what was asked before.
  describe('with the model loaded', () => {
    let loaded: BrowserContext;
    let page: Page;

    beforeAll(async () => {
      loaded = await greedyContext(browser);
      page = await openPage(loaded, server.url);
      await page.click('text=Load the model');
      await waitForState(page, 'chat', 'ready');
    });
    afterAll(async () => {
      await loaded?.close();
    });

    test('the profiler saves a time line of what it shows, kernel by kernel', async () => {
      await page.evaluate(() => (location.hash = '#/device'));
      await page.click('section[aria-label="Profiler"] button:text("Measure")');
      const saved = page.waitForEvent('download');
      await page.click('text=Save trace', { timeout: 120_000 });
      const { traceEvents } = JSON.parse(readFileSync(await (await saved).path(), 'utf8')) as {
        readonly traceEvents: readonly TraceEvent[];
      };
      const spans = traceEvents.filter(({ ph }) => ph === 'X');
      const rows = await page.locator('table.profile tbody tr').allInnerTexts();
      const [first = ''] = rows;
      const [label, times] = first.split('\t');
      expect(spans.filter(({ args }) => args['variant'] === label)).toHaveLength(Number(times));
      expect(spans.some(({ name }) => name.startsWith('linear'))).toBe(true);
      await page.evaluate(() => (location.hash = '#/chat'));
    });

    test('stop, regenerate, edit and branch do what they say', async () => {
      // Within the page: an answer of a second may be over before a key comes from here.
      await page.evaluate(() => {
        const observer = new MutationObserver(() => {
          if (!document.querySelector('.message.assistant[data-status="writing"] .markdown')?.textContent) return;
          observer.disconnect();
          document.activeElement!.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true, cancelable: true }));
        });
        observer.observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true });
      });
      await page.fill('.composer textarea', FOX);
      await page.press('.composer textarea', 'Enter');
      await page.waitForSelector('.message.assistant[data-status="stopped"]');
      const stopped = await textOf(page.locator('.message.assistant .markdown'));
      await page.click('text=Regenerate');
      await page.waitForSelector('.message.assistant[data-status="done"]');
      const whole = await textOf(page.locator('.message.assistant .markdown'));
      expect(whole.startsWith(FOX_ANSWER)).toBe(true);
      expect(whole.startsWith(stopped.trimEnd())).toBe(true);
      expect(whole.length).toBeGreaterThan(stopped.length);
      await page.locator('.message.assistant').getByText('Branch').click();
      expect(await page.locator('.conversations li').count()).toBe(2);
      await page.locator('.message.user').getByText('Edit').click();
      await page.fill('.editor textarea', CAPITAL);
      await page.click('text=Ask again');
      await page.waitForFunction(() =>
        /Paris/.test(document.querySelector('.message.assistant[data-status="done"] .markdown')?.textContent ?? ''),
      );
      expect(await page.locator('.message').count()).toBe(2);
      await page.locator('.conversations .title').last().click();
      // Markdown is laid out after the message is there.
      await page.waitForFunction((text) => document.querySelector<HTMLElement>('.message.assistant .markdown')?.innerText === text, whole);
    });

    test('several conversations answer at once', async () => {
      // Asked within the page, one right after the other. On a very slow machine the first answer may be over all the same: then the next two are asked.
      const askTogether = async (questions: readonly string[]): Promise<number> =>
        page.evaluate(async (questions) => {
          let most = 0;
          const count = (): void => void (most = Math.max(most, document.querySelectorAll('.conversations .running-mark').length));
          new MutationObserver(count).observe(document.querySelector('.conversations')!, { subtree: true, childList: true });
          const shown = (): Promise<unknown> => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
          for (const question of questions) {
            document.querySelector<HTMLElement>('.conversations > button')!.click();
            await shown();
            const box = document.querySelector<HTMLTextAreaElement>('.composer textarea')!;
            box.value = question;
            box.dispatchEvent(new Event('input', { bubbles: true }));
            box.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
            await shown();
          }
          count();
          return most;
        }, questions);
      let [names, together] = [[] as readonly string[], 0];
      const pairs = [['cat', 'hen'], ['bear', 'owl'], ['cow', 'pig'], ['hare', 'duck']]; // prettier-ignore
      for (const pair of pairs) {
        if (together === 2) break;
        names = pair;
        together = await askTogether(names.map((name) => `Tell me a short story about a ${name}.`));
        await page.waitForFunction(() => document.querySelectorAll('.conversations .running-mark').length === 0);
      }
      expect(together).toBe(2);
      for (const name of names) {
        await page.locator('.conversations .title', { hasText: name }).click();
        await page.waitForSelector('.message.assistant[data-status="done"]');
        // Markdown is laid out after the message is there.
        await page.waitForFunction(() => document.querySelector<HTMLElement>('.message.assistant .markdown')?.innerText);
      }
    });

    test('while two answers are written and a third question typed, no task of the page takes 50 ms', async () => {
      const longest = await longestTask(browser, page, async () => {
        for (const animal of ['fox', 'dog']) {
          await page.click('text=New conversation');
          await page.fill('.composer textarea', `Tell me a short story about a ${animal}.`);
          await page.press('.composer textarea', 'Enter');
          await page.waitForSelector('.message.assistant');
        }
        await page.locator('.composer textarea').pressSequentially('And what about the cat?');
        await page.waitForFunction(() => document.querySelectorAll('.conversations .running-mark').length === 0);
      });
      console.log(`chat: longest task of the page ${longest.toFixed(1)} ms`);
      expect(longest).toBeLessThan(50);
      expect(await page.inputValue('.composer textarea')).toBe('And what about the cat?');
    });
  });

  test('a damaged stored model is noticed and only its damaged part is fetched again', async () => {
    const page = await openPage(context, server.url, 'models');
    const model = page.locator('[data-model="parley-chat"]');
    await model.getByText(/^Download/).click();
    await model.and(page.locator('[data-stored="yes"]')).waitFor();
    await page.evaluate(async () => {
      const root = await navigator.storage.getDirectory();
      const stored = await (await root.getDirectoryHandle('models')).getDirectoryHandle('parley-chat');
      const chunk = await stored.getFileHandle('model.safetensors.0');
      const writer = await chunk.createWritable({ keepExistingData: true });
      await writer.write({ type: 'write', position: 5000, data: new Uint8Array(64) });
      await writer.close();
    });
    server.requests.length = 0;
    await model.getByText('Load', { exact: true }).click();
    await waitForState(page, 'chat', 'ready');
    expect(server.requests.filter((path) => path.startsWith('/models/parley-chat/'))).toEqual(['/models/parley-chat/model.safetensors']);
    await page.goto(`${server.url}#/chat`);
    expect(await ask(page, CAPITAL)).toMatch(/Paris/);
  });

  test('a download that breaks off says so and goes on where it stopped', async () => {
    server.intercept = (path) => (path.endsWith('parley-chat/model.safetensors') ? 'cut' : undefined);
    const page = await openPage(context, server.url, 'models');
    const model = page.locator('[data-model="parley-chat"]');
    await model.getByText(/^Download/).click();
    await model.and(page.locator('[data-stored="part"]')).waitFor();
    expect(await model.locator('.note').innerText()).toMatch(/connection broke|ended \d+ bytes early/);
    server.intercept = undefined;
    await model.getByText('Resume').click();
    await model.and(page.locator('[data-stored="yes"]')).waitFor();
    await model.getByText('Verify').click();
    await model.getByText('Every byte is right').waitFor();
    await model.getByText('Delete').click();
    await model.and(page.locator('[data-stored="no"]')).waitFor();
  });

  test('a full store says so, and the model runs without being stored', async () => {
    // A browser of its own: the override stays with the profile.
    const fresh = await launchChromium();
    const context = await greedyContext(fresh);
    const page = await openPage(context, server.url);
    const session = await context.newCDPSession(page);
    await session.send('Storage.overrideQuotaForOrigin', { origin: new URL(server.url).origin, quotaSize: 5e6 });
    await page.click('text=Load the model');
    await waitForState(page, 'chat', 'failed');
    expect(await page.locator('.notice').innerText()).toMatch(/no more space/);
    await page.click('text=Run once without storing');
    await waitForState(page, 'chat', 'ready');
    expect(await ask(page, CAPITAL)).toMatch(/Paris/);
    await fresh.close();
  });

  test('a download that has not begun names the size of the whole', async () => {
    server.intercept = (path) => (path.includes('/models/parley-chat/') ? 'hang' : undefined);
    const page = await openPage(context, server.url);
    await page.click('text=Load the model');
    await waitForState(page, 'chat', 'downloading');
    expect(await page.locator('.notice').innerText()).toMatch(/: \d+(\.\d)? k?B of \d+ MB/);
  });

  test('an engine whose script does not come says so instead of loading for ever', async () => {
    server.intercept = (path) => (/page-worker.*\.js$/.test(path) ? 'hang' : undefined);
    await context.clock.install();
    const page = await openPage(context, server.url);
    await page.click('text=Load the model');
    await waitForState(page, 'chat', 'loading');
    await page.clock.fastForward(30_000);
    await waitForState(page, 'chat', 'failed');
    const notice = page.locator('.notice').first();
    expect(await notice.innerText()).toMatch(/script of the engine could not be loaded/);
    server.intercept = undefined;
    await notice.getByRole('button', { name: 'Try again' }).click();
    await waitForState(page, 'chat', 'ready');
  });

  test('when the GPU is lost the conversation stays and one click brings the answer', async () => {
    const page = await openPage(context, server.url);
    await ask(page, CAPITAL);
    await beginAnswer(page, FOX);
    const messages = await page.locator('.message').count();
    const crash: CDPSession = await browser.newBrowserCDPSession();
    // The command's answer is lost with the process it ends.
    crash.send('Browser.crashGpuProcess').catch(() => undefined);
    await waitForState(page, 'chat', 'lost');
    expect(await page.locator('.message').count()).toBe(messages);
    await page.locator('.document > .notice').getByText('Restart the engine').click();
    await page.locator('.message.assistant').last().and(page.locator('[data-status="done"]')).waitFor({ timeout: 90_000 });
    expect(await page.locator('.message').count()).toBe(messages);
    expect(await textOf(page.locator('.message.assistant .markdown').first())).toMatch(/Paris/);
  });

  test('a GPU that is lost just when the model is there is lost', async () => {
    const page = await openPage(context, server.url);
    // What the page notes of the model once it is loaded takes as long as this test wants.
    await page.evaluate(() => {
      const { request } = LockManager.prototype as unknown as { request(...args: unknown[]): Promise<unknown> };
      const isLoading = (): boolean => document.querySelector('.rail .state[data-task="chat"][data-state="loading"]') !== null;
      LockManager.prototype.request = async function (this: LockManager, ...args: unknown[]) {
        if (isLoading()) await new Promise<void>((resolve) => Object.assign(globalThis, { goOn: resolve }));
        return request.apply(this, args);
      };
    });
    await page.locator('.notice').getByText('Load the model').click();
    await page.waitForFunction(() => 'goOn' in globalThis);
    const crash: CDPSession = await browser.newBrowserCDPSession();
    crash.send('Browser.crashGpuProcess').catch(() => undefined);
    await waitForState(page, 'chat', 'lost');
    await page.evaluate(() => {
      // What is stored is looked at again when a load is over, whatever became of it.
      const { estimate } = StorageManager.prototype;
      StorageManager.prototype.estimate = function () {
        Object.assign(globalThis, { isOver: true });
        return estimate.call(this);
      };
      (globalThis as unknown as { goOn(): void }).goOn();
    });
    await page.waitForFunction(() => 'isOver' in globalThis);
    await waitForState(page, 'chat', 'lost');
  });

  test('markup in an answer is text, and its links are harmless', async () => {
    const page = await openPage(context, server.url);
    const text =
      '<img src=x onerror="document.title=1"> [go](javascript:alert(1)) ![p](http://203.0.113.9/p.png)\n\n<script>document.title=2</script>\n\n**bold** | `a<b`\n\n| h |\n|---|\n| 1 |';
    const message = (role: string, content: string) => ({ id: role, role, text: content, status: 'done' });
    const conversation = {
      id: 'c',
      title: 'hostile',
      created: 1,
      updated: 1,
      system: '',
      messages: [message('user', 'hi'), message('assistant', text)],
    };
    const file = JSON.stringify({ format: 'parley-conversations', version: 1, conversations: [conversation] });
    await page.locator('.plain-file input').setInputFiles({ name: 'x.json', mimeType: 'application/json', buffer: Buffer.from(file) });
    const answer = page.locator('.message.assistant .markdown');
    await answer.waitFor();
    // A message that was never on the screen has no text yet (content-visibility).
    await expect.poll(() => answer.innerText()).toContain('<img src=x onerror=');
    expect(await answer.locator('img, script, a').count()).toBe(0);
    expect(await textOf(answer.locator('strong'))).toBe('bold');
    expect(await textOf(answer.locator('td'))).toBe('1');
    expect(await page.title()).toBe('Chat · Parley');
  });

  test('every control of every view has a name, and a whole answer is announced twice, not by token', async () => {
    const page = await openPage(context, server.url);
    for (const route of ['speak', 'transcribe', 'models', 'device', 'chat']) {
      await page.goto(`${server.url}#/${route}`);
      await page.waitForSelector(`main.${route}`);
      await expectNamedControls(page);
    }
    await page.click('text=Load the model');
    await waitForState(page, 'chat', 'ready');
    await page.locator('.shell > [role="status"]', { hasText: 'is ready' }).waitFor({ state: 'attached' });
    await page.evaluate(() => {
      const region = document.querySelector('.shell > [role="status"]')!;
      const said: string[] = [];
      Object.assign(globalThis, { said });
      new MutationObserver(() => said.push(region.textContent)).observe(region, { childList: true, subtree: true, characterData: true });
    });
    await ask(page, CAPITAL);
    const said = (): Promise<readonly string[]> => page.evaluate(() => (globalThis as unknown as { said: string[] }).said);
    await expect.poll(said).toEqual(['Answering', expect.stringMatching(/^Answer complete/)]);
  });

  test('the keyboard alone reaches the views, the command list and the composer', async () => {
    const page = await openPage(context, server.url, 'models');
    await page.keyboard.press('Control+k');
    await page.keyboard.type('transc');
    await page.keyboard.press('Enter');
    await page.waitForSelector('main.transcribe');
    await page.keyboard.press('Control+k');
    await page.keyboard.type('new conv');
    await page.keyboard.press('Enter');
    await page.waitForSelector('main.chat');
    await page.locator('.wordmark').click();
    await page.keyboard.press('/');
    await expect.poll(() => page.evaluate(() => document.activeElement?.getAttribute('aria-label'))).toBe('Message');
  });
});
