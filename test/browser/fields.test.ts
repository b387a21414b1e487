/** What is typed into fields and dropped into the page, where it is easily lost. Against the listeners, with an engine as slow as a test wants. */
import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { FakeEngine } from '../support/fake-engine.ts';
import { wavFile } from '../support/wav-file.ts';
import { findChromium } from './chromium.ts';
import { startFakeServers } from './fake-servers.ts';
import type { FakeServers } from './fake-servers.ts';
import { ask, openPage } from './playground.ts';

describe.skipIf(findChromium() === undefined)('fields', () => {
  const engine = new FakeEngine();
  let servers: FakeServers;
  let context: BrowserContext;

  beforeAll(async () => {
    servers = await startFakeServers('fields', engine);
  });
  afterAll(() => servers?.close());
  beforeEach(async () => {
    engine.options = {};
    engine.transcriptions.length = 0;
    context = await servers.context();
  });
  afterEach(() => context.close());

  const system = (page: Page) => page.getByLabel('System prompt');

  test('a system prompt is kept while it is typed: before the field is left, and over a reload', async () => {
    const [page, other] = [await openPage(context, servers.url), await openPage(context, servers.url)];
    await ask(page, 'Hello?');
    await other.locator('.conversations .title', { hasText: 'Hello?' }).click();
    await system(page).pressSequentially('Be brief, please.');
    await expect.poll(() => system(other).inputValue()).toBe('Be brief, please.');
    await page.reload();
    await expect.poll(() => system(page).inputValue()).toBe('Be brief, please.');
    await ask(page, 'Really?');
    expect(engine.chats.at(-1)!.messages[0]).toMatchObject({ role: 'system', content: 'Be brief, please.' });
  });

  test('a conversation with nothing but a system prompt can be deleted, and one whose prompt was taken back is not kept', async () => {
    const first = await openPage(context, servers.url);
    await system(first).fill('Be brief.');
    await first.getByRole('button', { name: 'Delete Untitled' }).waitFor();
    const second = await openPage(context, servers.url);
    const titles = second.locator('.conversations .title');
    await expect.poll(() => titles.count()).toBe(2);
    await second.getByRole('button', { name: 'Delete Untitled' }).click();
    await expect.poll(() => titles.count()).toBe(1);
    await second.getByRole('button', { name: 'Undo' }).click();
    await expect.poll(() => titles.count()).toBe(2);
    await second
      .locator('.conversations li', { has: second.getByRole('button', { name: 'Delete Untitled' }) })
      .locator('.title')
      .click();
    await expect.poll(() => system(second).inputValue()).toBe('Be brief.');
    await system(second).fill('');
    await expect.poll(() => second.getByRole('button', { name: 'Delete Untitled' }).count()).toBe(0);
    const third = await openPage(context, servers.url);
    await expect.poll(() => third.locator('.rail .state').count()).toBe(3);
    expect(await third.locator('.conversations .title').count()).toBe(1);
  });

  test('words that are to be expected are, too', async () => {
    const page = await openPage(context, servers.url, 'transcribe');
    await page.getByLabel('Names and words to expect').pressSequentially('Parley');
    expect(await page.evaluate(() => localStorage.getItem('parley.settings.1'))).toContain('"prompt":"Parley"');
  });

  /** A transcript of two segments, "Heard" and "2.00 seconds.". */
  const transcript = async (page: Page): Promise<void> => {
    const samples = Float32Array.from({ length: 32000 }, (_, i) => 0.3 * Math.sin(i / 20));
    const buffer = Buffer.from(wavFile(samples, { encoding: 's16', sampleRate: 16000 }));
    await page.locator('.intake input').setInputFiles({ name: 'two.wav', mimeType: 'audio/wav', buffer });
    await page.waitForSelector('.transcript[data-status="done"]');
  };
  const segment = (page: Page, index: number) => page.locator('.segments-list p').nth(index);

  test('a correction that is typed or pasted as several lines is one line, and is shown once', async () => {
    const page = await openPage(context, servers.url, 'transcribe');
    await transcript(page);
    const other = await openPage(context, servers.url, 'transcribe');
    await segment(page, 0).click();
    await page.keyboard.press('End');
    await page.keyboard.press('Enter');
    await page.keyboard.type('every');
    await page.keyboard.insertText('\nword');
    const shown = (of: Page): Promise<string> => segment(of, 0).evaluate((element) => element.innerHTML);
    await expect.poll(() => shown(other)).toBe('Heard every word');
    await segment(page, 1).click();
    await expect.poll(() => shown(page)).toBe('Heard every word');
    // A text that is all deleted leaves nodes of the browser's own.
    await segment(page, 0).fill('');
    await segment(page, 1).click();
    await expect.poll(() => shown(page)).toBe('');
    await segment(page, 0).pressSequentially('Said');
    await segment(page, 1).click();
    await expect.poll(() => shown(other)).toBe('Said');
    expect(await shown(page)).toBe('Said');
  });

  test('what another tab corrects in a transcript leaves the caret of one who types where it is', async () => {
    const page = await openPage(context, servers.url, 'transcribe');
    await transcript(page);
    const other = await openPage(context, servers.url, 'transcribe');
    await segment(page, 1).click();
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.type('Two');
    await expect.poll(() => segment(other, 1).innerText()).toBe('Two');
    await segment(other, 0).fill('They heard');
    await expect.poll(() => segment(page, 0).innerText()).toBe('They heard');
    await page.keyboard.type(' seconds');
    for (const tab of [page, other]) await expect.poll(() => segment(tab, 1).innerText()).toBe('Two seconds');
  });

  test('Alt and an arrow key walk the messages from the composer, and are left to other fields', async () => {
    const page = await openPage(context, servers.url);
    await ask(page, 'Hello?');
    const focused = (): Promise<string> => page.evaluate(() => document.activeElement!.tagName);
    await system(page).press('Alt+ArrowUp');
    expect(await focused()).toBe('TEXTAREA');
    await page.locator('.composer textarea').press('Alt+ArrowUp');
    expect(await focused()).toBe('H2');
  });

  test('of several recordings that are dropped at once the first is shown, and the others are heard after it', async () => {
    const page = await openPage(context, servers.url, 'transcribe');
    engine.options = { delay: 1e6 };
    const lengths = { 'one.wav': 1, 'two.wav': 2, 'three.wav': 3 };
    const files = Object.entries(lengths).map(([name, seconds]) => {
      const samples = Float32Array.from({ length: 16000 * seconds }, (_, i) => 0.3 * Math.sin(i / 20));
      return { name, bytes: [...wavFile(samples, { encoding: 's16', sampleRate: 16000 })] };
    });
    files.splice(1, 0, { name: 'none.wav', bytes: [1, 2, 3] });
    await page.evaluate((dropped) => {
      const dataTransfer = new DataTransfer();
      for (const { name, bytes } of dropped) dataTransfer.items.add(new File([new Uint8Array(bytes)], name, { type: 'audio/wav' }));
      document.body.dispatchEvent(new DragEvent('drop', { dataTransfer, bubbles: true, cancelable: true }));
    }, files);
    await page.waitForSelector('.transcript[data-status="hearing"]');
    await page.getByText('then none.wav, two.wav, three.wav').waitFor();
    engine.options = {};
    engine.release();
    await expect.poll(() => page.locator('.recordings button').allInnerTexts()).toEqual(['three.wav', 'two.wav']);
    await expect.poll(() => engine.transcriptions.map(({ samples }) => samples.length / 16000).filter((seconds) => seconds >= 1)).toEqual([1, 2, 3]); // prettier-ignore
    expect(await page.locator('.transcript').getAttribute('aria-label')).toBe('Transcript of one.wav');
    expect(await page.locator('.failure').innerText()).toMatch(/^none\.wav: /);
    await page.locator('.recordings button').first().click();
    await page.waitForSelector('.transcript[data-status="done"]');
    await expect.poll(async () => (await page.locator('.segments-list p').allInnerTexts()).join(' ')).toBe('Heard 3.00 seconds.');
  });
});
