/** A model that is dropped anywhere on the page is added to the list, copied into the browser, and one click from being talked to. */
import { copyFileSync, cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ROOT, buildPlayground, findChromium, launchChromium } from './chromium.ts';
import { ask, greedyContext, openPage, show, waitForState } from './playground.ts';
import { serveFolder } from './static-server.ts';
import type { StaticServer } from './static-server.ts';

const GGUF = join(ROOT, 'test', 'fixtures', 'gguf', 'tiny', 'qwen3-Q4_K_M.gguf');

describe.skipIf(findChromium() === undefined)('a model is dropped', () => {
  let server: StaticServer;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  let folder: string;

  beforeAll(async () => {
    server = await serveFolder(buildPlayground('dropped'));
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'parley-dropped-'));
    context = await greedyContext(browser);
    page = await openPage(context, server.url);
  });
  afterEach(async () => {
    await context.close();
    rmSync(folder, { recursive: true });
  });

  /** Drags files or folders of the disk over the page, as the system does; what is returned drops them there. */
  const drag = async (...files: string[]): Promise<() => Promise<void>> => {
    const session = await context.newCDPSession(page);
    const send = async (type: 'dragEnter' | 'dragOver' | 'drop'): Promise<void> =>
      void (await session.send('Input.dispatchDragEvent', { type, x: 300, y: 200, data: { items: [], files, dragOperationsMask: 1 } }));
    await send('dragEnter');
    await send('dragOver');
    return () => send('drop');
  };
  const hint = () => page.getByText('Drop a GGUF file or a model’s folder to add it.');

  test('a GGUF file on the chat: the page says that it takes it, shows it stored, and leads back to the chat', async () => {
    const drop = await drag(GGUF);
    await hint().waitFor();
    await drop();
    const model = page.locator('main.models [data-model="local/qwen3"][data-stored="yes"]');
    await model.waitFor();
    expect(await hint().count()).toBe(0);
    // Brought into sight below what stands above it.
    await expect.poll(() => model.evaluate((item) => item.getBoundingClientRect().bottom <= innerHeight)).toBe(true);
    await model.getByRole('button', { name: 'Load:' }).click();
    await waitForState(page, 'chat', 'ready');
    await model.getByRole('button', { name: 'Chat: local/qwen3' }).click();
    await page.waitForSelector('main.chat');
    await expect.poll(() => page.locator('.composer .place').innerText()).toMatch(/^local\/qwen3 in this tab/);
    expect(server.requests.filter((path) => path.includes('/models/parley-'))).toEqual([]);
    // Once it is deleted nothing can load it: the page's own model is meant again, and the files are asked for.
    await page.goto(`${server.url}#/models`);
    await model.getByRole('button', { name: 'Delete:' }).click();
    await page
      .locator('[data-model="local/qwen3"][data-stored="no"]')
      .getByText('Deleted. To have it again, open its files again.')
      .waitFor();
    await page.goto(`${server.url}#/chat`);
    await expect.poll(() => page.locator('.composer .place').innerText()).toMatch(/^parley-chat in this tab/);
    await page.getByText(/11 MB to download, once/).waitFor();
  });

  test('a folder, with the folders in it', async () => {
    cpSync(join(ROOT, 'models', 'parley-chat'), join(folder, 'my-chat'), { recursive: true });
    cpSync(GGUF, join(folder, 'my-chat', 'deep', 'down', 'no-part-of-it.gguf'));
    await (
      await drag(join(folder, 'my-chat'))
    )();
    const model = page.locator('[data-model="local/my-chat"][data-stored="yes"]');
    await model.getByRole('button', { name: 'Load:' }).click();
    await waitForState(page, 'chat', 'ready');
    await model.getByRole('button', { name: 'Chat: local/my-chat' }).click();
    expect(await ask(page, 'What is the capital of France?')).toMatch(/Paris/);
  });

  test('on the view that takes sound, it is a model all the same; what is none is said to be none', async () => {
    await page.goto(`${server.url}#/transcribe`);
    await page.waitForSelector('.intake');
    await (
      await drag(GGUF)
    )();
    await page.locator('main.models [data-model="local/qwen3"]').waitFor();
    await (
      await drag(join(ROOT, 'LICENSE'))
    )();
    await page.getByText('LICENSE is no GGUF file; models of several files are opened as a folder.').waitFor();
    await drag(join(ROOT, 'LICENSE'));
    await hint().waitFor();
    // What browsers say of a file that is dragged out of the window again, which the driver cannot do.
    await page.evaluate(() => document.body.dispatchEvent(new DragEvent('dragleave', { bubbles: true, relatedTarget: null })));
    await hint().waitFor({ state: 'detached' });
  });

  test('on the chat, a recording is taken to be transcribed; what is neither is told so', async () => {
    await (
      await drag(join(ROOT, 'LICENSE'))
    )();
    await page.getByText('LICENSE is neither a model nor a recording. Drop a GGUF file').waitFor();
    expect(await page.locator('main.chat').count()).toBe(1);
    await page.keyboard.press('Tab');
    await hint().waitFor({ state: 'detached' });
    await (
      await drag(join(ROOT, 'test', 'fixtures', 'parley-transcribe', 'clip.wav'))
    )();
    await page.locator('main.transcribe').getByText('clip.wav').first().waitFor();
    expect(await hint().count()).toBe(0);
    // The browser knows no type of this one.
    copyFileSync(join(ROOT, 'test', 'fixtures', 'parley-transcribe', 'clip.wav'), join(folder, 'Sound.CAF'));
    await show(page, 'chat');
    await (
      await drag(join(folder, 'Sound.CAF'))
    )();
    await page.locator('main.transcribe').getByText('Sound.CAF').first().waitFor();
  });

  /** Pastes a file into the focused element, with a text beside it or none. */
  const paste = (name: string, type: string, text?: string): Promise<boolean> =>
    page.evaluate(
      ({ name, type, text }) => {
        const clipboardData = new DataTransfer();
        clipboardData.items.add(new File(['?'], name, { type }));
        if (text !== undefined) clipboardData.items.add(text, 'text/plain');
        return document.activeElement!.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
      },
      { name, type, text },
    );

  test('a file that is pasted is taken as one that is dropped, and a text with its picture as the text', async () => {
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.evaluate(async () => {
      const canvas = new OffscreenCanvas(1, 1);
      canvas.getContext('2d');
      await navigator.clipboard.write([new ClipboardItem({ 'image/png': await canvas.convertToBlob() })]);
    });
    await page.locator('.composer textarea').press('Control+V');
    await page.getByText('image.png is neither a model nor a recording.').waitFor();
    await page.locator('.composer textarea').press('Shift');
    await hint().waitFor({ state: 'detached' });
    expect(await paste('image.png', 'image/png', 'A text')).toBe(true);
    expect(await paste('voice.ogg', 'audio/ogg', 'voice.ogg')).toBe(false);
    await page.locator('main.transcribe').getByText('voice.ogg').first().waitFor();
    expect(await paste('image.png', 'image/png')).toBe(false);
    await page.locator('main.transcribe').getByText('image.png: this browser cannot read the file as sound').waitFor();
    expect(await paste('chat.gguf', '')).toBe(false);
    await page.locator('main.models').waitFor();
  });
});
