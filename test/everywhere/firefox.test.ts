/** The built playground in Firefox, whose WebGPU is wgpu, on the graphics driver that Node has: every view does its work, and nothing is complained of. */
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, BrowserContext, Page } from 'puppeteer-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ROOT, buildPlayground } from '../browser/chromium.ts';
import { wordsOf } from '../browser/playground.ts';
import { rowOfReport } from '../tools/platform-report.ts';
import { serveFolder } from '../browser/static-server.ts';
import type { StaticServer } from '../browser/static-server.ts';
import { ask, click, copyReport, findFirefox, launchFirefox, openPage, show, upload, waitForState } from './firefox.ts';

const FIXTURE = join(ROOT, 'test', 'fixtures', 'parley-transcribe');
const CAPITAL = 'What is the capital of France?';
/** Its answer takes long enough that its speed can be measured. */
const FOX = 'Tell me a short story about a fox.';
/** Where the last run's pictures of every view lie, for who wants to look, and its report, for test/tools/platform-report.ts. */
const PICTURES = join(ROOT, '.parley', 'firefox-pictures');

describe.skipIf(findFirefox() === undefined)('the playground in Firefox', () => {
  /** What the pages complained of. */
  const problems: string[] = [];
  let server: StaticServer;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;

  beforeAll(async () => {
    mkdirSync(PICTURES, { recursive: true });
    server = await serveFolder(buildPlayground('firefox'));
    browser = await launchFirefox();
    context = await browser.createBrowserContext();
    page = await openPage(context, server.url, problems);
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  const picture = (name: string): Promise<unknown> => page.screenshot({ path: join(PICTURES, `${name}.png`) });
  const load = async (task: 'chat' | 'speech' | 'transcription', route: string): Promise<void> => {
    await show(page, route);
    await click(page, 'main button', 'Load the model');
    await waitForState(page, task, 'ready');
  };
  /** Not as the page shows them: of what it has not drawn yet, Firefox shows nothing. */
  const answers = (of: Page): Promise<string[]> =>
    of.$$eval('.message.assistant[data-status="done"] .markdown', (all) => all.map(({ textContent }) => textContent));

  test('chat answers', async () => {
    await load('chat', 'chat');
    expect(await ask(page, CAPITAL)).toMatch(/Paris/);
    await picture('chat');
  });

  test('a second tab has the conversation, and each sees what the other adds', async () => {
    const second = await openPage(context, server.url, problems);
    await click(second, '.conversations .title', CAPITAL);
    expect(await ask(second, 'Hello!')).not.toBe('');
    const added = (await answers(second))[1];
    await page.bringToFront();
    await page.waitForFunction(() => document.querySelectorAll('.message.assistant[data-status="done"]').length === 2);
    expect((await answers(page))[1]).toBe(added);
    await picture('two-tabs');
    await second.close();
  });

  test('a sentence is spoken', async () => {
    await load('speech', 'speak');
    await page.locator('main textarea').fill('Good morning.');
    await page.$eval('main form button', (button) => button.click());
    await page.waitForSelector('.take[data-status="done"]');
    await picture('speak');
    // What the page would save as a file.
    const samples = await page.evaluate(async () => {
      const make = URL.createObjectURL.bind(URL);
      const saved = new Promise<Blob>((resolve) => {
        URL.createObjectURL = (content) => {
          resolve(content as Blob);
          return make(content);
        };
      });
      [...document.querySelectorAll('button')].find(({ textContent }) => textContent === 'Download WAV')!.click();
      const bytes = await (await saved).arrayBuffer();
      URL.createObjectURL = make;
      return [...new Int16Array(bytes.slice(44))];
    });
    expect(samples.length / 24_000).toBeGreaterThan(0.5);
    expect(Math.max(...samples.map(Math.abs)) / 0x8000).toBeGreaterThan(0.05);
  });

  test('a clip is transcribed as PyTorch does', async () => {
    await load('transcription', 'transcribe');
    const input = await page.waitForSelector('.intake input');
    await upload(input, join(FIXTURE, 'clip.wav'));
    await page.waitForSelector('.transcript[data-status="done"]');
    const heard = await page.$$eval('.segments-list p', (all) => all.map((one) => (one as HTMLElement).innerText));
    const golden = JSON.parse(readFileSync(join(FIXTURE, 'golden.json'), 'utf8')) as { readonly text_timestamps: string };
    expect(wordsOf(heard.join(' '))).toEqual(wordsOf(golden.text_timestamps.replace(/<\|[^>]*\|>/g, '')));
    await picture('transcribe');
  });

  test('a folder of the person becomes a model', async () => {
    await show(page, 'models');
    const input = await page.waitForSelector('input[webkitdirectory]');
    // The driver knows no folders, so the page gets the files of one, without its name.
    await input!.evaluate((element) => (element.multiple = true));
    const mine = join(ROOT, 'models', 'parley-chat');
    await upload(input, ...readdirSync(mine).map((name) => join(mine, name)));
    await page.waitForSelector('[data-model="local/model"][data-stored="yes"]');
    await click(page, '[data-model="local/model"] button', 'Load');
    // It takes the place of the one before it, which is still ready.
    await page.waitForSelector('.rail .state[data-task="chat"]:not([data-state="ready"])');
    await waitForState(page, 'chat', 'ready');
    await picture('models');
    await show(page, 'chat');
    expect(await ask(page, FOX)).toMatch(/fox/);
    expect(await ask(page, CAPITAL)).toMatch(/Paris/);
  });

  test('every kernel agrees with its CPU reference', async () => {
    await show(page, 'device');
    await click(page, 'main button', 'Test the kernels');
    await page.waitForSelector('.self-test-count[data-state="done"]');
    await picture('device');
    expect(await page.$$eval('.failures', (all) => all.map((one) => (one as HTMLElement).innerText))).toEqual([]);
    const report = await copyReport(page);
    writeFileSync(join(PICTURES, 'report.md'), report);
    expect(rowOfReport(report)).toMatchObject({
      where: expect.stringMatching(/^Firefox [\d.]+, /),
      date: expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
      cases: expect.stringMatching(/^(\d{3,}) of \1$/),
      models: 'chat, speech, transcription',
      speed: expect.stringMatching(/^[\d.]+ tokens\/s$/),
    });
    const verdict = await page.$eval('.device-page header p', (one) => (one as HTMLElement).innerText);
    expect(verdict).toMatch(/^All \d{3,} kernel cases agree/);
  });

  test('after a reload without a server, the conversation is there and the stored model answers', async () => {
    await page.evaluate(async () => void (await navigator.serviceWorker.ready));
    await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
    await show(page, 'chat');
    const before = await answers(page);
    await server.close();
    await page.reload();
    await page.waitForFunction(
      (count) => document.querySelectorAll('.message.assistant[data-status="done"]').length === count,
      {},
      before.length,
    );
    expect(await answers(page)).toEqual(before);
    expect(await ask(page, 'What can you do?')).not.toBe('');
    await picture('offline');
  });

  test('nothing was complained of', () => {
    expect(problems).toEqual([]);
  });
});
