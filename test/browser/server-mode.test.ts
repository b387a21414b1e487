/** The playground against the three listeners (with an engine that answers at once), served by the chat listener itself. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { EngineError } from '../../engine/errors.ts';
import { createChatApp } from '../../server/chat.ts';
import { CodecPool } from '../../server/codec-pool.ts';
import { listen } from '../../server/listen.ts';
import type { Listener } from '../../server/listen.ts';
import { createSpeechApp } from '../../server/speech.ts';
import { createTranscriptionApp } from '../../server/transcription.ts';
import { FakeEngine } from '../support/fake-engine.ts';
import { wavFile } from '../support/wav-file.ts';
import { buildPlayground, findChromium, launchChromium } from './chromium.ts';
import { ask, openPage, waitForState } from './playground.ts';

describe.skipIf(findChromium() === undefined)('server mode', () => {
  const engine = new FakeEngine();
  const codec = new CodecPool();
  const listeners: Listener[] = [];
  let browser: Browser;
  let page: Page;
  let url: string;

  beforeAll(async () => {
    const host = { host: '127.0.0.1', port: 0 };
    const staticFolder = buildPlayground('server');
    listeners.push(await listen(createChatApp({ engine, modelId: 'parley-chat', staticFolder }), host));
    listeners.push(await listen(createSpeechApp({ engine, modelId: 'tts-1', codec }), host));
    listeners.push(await listen(createTranscriptionApp({ engine, modelId: 'parley-transcribe', codec }), host));
    url = `http://127.0.0.1:${listeners[0]!.port}/`;
    browser = await launchChromium({ webgpu: false });
    page = await openPage(await browser.newContext(), url);
    await waitForState(page, 'chat', 'server');
  });
  afterAll(async () => {
    await browser?.close();
    for (const listener of listeners) listener.destroy();
    await codec.close();
  });

  /** Goes to a view and points it at its listener: free ports are not the ones the page guesses. */
  const open = async (route: string, listener: number): Promise<void> => {
    await page.goto(`${url}#/${route}`);
    await page.waitForSelector(`main.${route}`);
    await page.getByLabel('Address').fill(`http://127.0.0.1:${listeners[listener]!.port}/v1`);
    await page.getByLabel('Address').blur();
  };

  test('the page guesses that its own server does the chat', async () => {
    expect(await ask(page, 'Hi')).toBe('Hello there!');
    expect(engine.chats.at(-1)).toMatchObject({
      messages: [{ role: 'user', content: 'Hi' }],
      sampling: { temperature: 0 },
      maxTokens: 512,
    });
    await page.locator('.stats summary').last().click();
    expect(await page.locator('.stats dl').last().innerText()).toMatch(/3 tokens[\s\S]*10 tokens, 3 from cache/);
  });

  test('the page opens again without a network and without its server', async () => {
    const context = await browser.newContext();
    const first = await openPage(context, url);
    await first.evaluate(async () => (await navigator.serviceWorker.ready).active?.state);
    await first.waitForFunction(() => navigator.serviceWorker.controller !== null);
    await context.setOffline(true);
    for (const route of ['chat', 'models']) {
      await first.goto(`${url}#/${route}`);
      await first.reload();
      await first.waitForSelector(`main.${route} h1`);
    }
    await context.close();
  });

  test('stop reaches the server', async () => {
    engine.options = { words: Array<string>(1000).fill('x '), delay: 5 };
    await page.fill('.composer textarea', 'Go on');
    await page.press('.composer textarea', 'Enter');
    await page.waitForSelector('.message.assistant[data-status="writing"]');
    await page.getByText('Stop', { exact: true }).click();
    await page.waitForSelector('.message.assistant[data-status="stopped"]');
    await expect.poll(() => engine.aborted).toBe(1);
    engine.options = {};
  });

  test('a refusal is shown with its reason, and trying again works', async () => {
    engine.options = { failAfter: 0, failWith: new EngineError('context_length_exceeded', 'the prompt has 9000 tokens; 1024 fit') };
    await page.fill('.composer textarea', 'Too long');
    await page.press('.composer textarea', 'Enter');
    const failed = page.locator('.message.assistant[data-status="failed"]');
    await failed.waitFor();
    expect(await failed.locator('.failure').innerText()).toMatch(/9000 tokens.*context_length_exceeded/);
    engine.options = {};
    await failed.getByText('Try again').click();
    await page.locator('.message.assistant[data-status="done"]').last().waitFor();
    expect(await page.locator('.message.assistant .markdown').last().innerText()).toBe('Hello there!');
  });

  test('speech comes with its seed and all of its samples', async () => {
    await open('speak', 1);
    await page.fill('main textarea', 'One. Two.');
    await page.getByText('oni', { exact: true }).click();
    await page.locator('main form button').click();
    const take = page.locator('.take[data-status="done"]');
    await take.waitFor();
    expect(await take.innerText()).toMatch(/oni · 1\.00× · seed 7/);
    expect(engine.speeches.at(-1)).toMatchObject({ text: 'One. Two.', voice: 'oni' });
    expect(await take.innerText()).toMatch(/0\.2 s/);
  });

  test('a recording of another rate is sent as 16 kHz, and its text comes back', async () => {
    await open('transcribe', 2);
    const samples = Float32Array.from({ length: 44100 * 2 }, (_, i) => 0.3 * Math.sin(i / 20));
    const buffer = Buffer.from(wavFile(samples, { encoding: 's16', sampleRate: 44100 }));
    await page.locator('.intake input').setInputFiles({ name: 'two.wav', mimeType: 'audio/wav', buffer });
    await page.waitForSelector('.transcript[data-status="done"]');
    expect((await page.locator('.segments-list p').allInnerTexts()).join(' ')).toBe('Heard 2.00 seconds.');
    expect(engine.transcriptions.at(-1)!.samples.length).toBe(32000);
  });

  test('a server that is not there is named', async () => {
    await page.goto(`${url}#/chat`);
    await page.getByLabel('Address').fill('http://127.0.0.1:9/v1');
    await page.getByLabel('Address').blur();
    await page.fill('.composer textarea', 'Anybody?');
    await page.press('.composer textarea', 'Enter');
    const failed = page.locator('.message.assistant[data-status="failed"]').last();
    await failed.waitFor();
    expect(await failed.innerText()).toMatch(/http:\/\/127\.0\.0\.1:9/);
  });
});
