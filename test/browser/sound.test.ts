/** What goes on with sound around the engine: microphone, player, what is kept. Against the listeners, with an engine as slow as a test wants. */
import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { FakeEngine } from '../support/fake-engine.ts';
import { wavFile } from '../support/wav-file.ts';
import { findChromium } from './chromium.ts';
import { startFakeServers } from './fake-servers.ts';
import type { FakeServers } from './fake-servers.ts';
import { ask, openPage, show, stored } from './playground.ts';

/** What the page under test notes of its media. */
interface Media {
  /** How often it has asked for the microphone. */
  asked: number;
  readonly streams: MediaStream[];
  readonly contexts: AudioContext[];
  /** Ends the browser's question whether the page may have the microphone. */
  allow: () => void;
}

const RATE = 16000;
const tone = (seconds: number, sampleRate = RATE): Buffer => {
  const samples = Float32Array.from({ length: sampleRate * seconds }, (_, i) => 0.3 * Math.sin(i / 20));
  return Buffer.from(wavFile(samples, { encoding: 's16', sampleRate }));
};

describe.skipIf(findChromium() === undefined)('sound around the engine', () => {
  const engine = new FakeEngine();
  let servers: FakeServers;
  let context: BrowserContext;
  let url: string;

  beforeAll(async () => {
    servers = await startFakeServers('sound', engine, { args: ['--use-fake-ui-for-media-stream', '--use-fake-device-for-media-stream'] });
    url = servers.url;
  });
  afterAll(() => servers?.close());
  beforeEach(async () => {
    engine.options = {};
    context = await servers.context();
    await context.addInitScript(() => {
      const media: Media = { asked: 0, streams: [], contexts: [], allow: () => undefined };
      const allowed = new Promise<void>((resolve) => (media.allow = resolve));
      const get = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
      navigator.mediaDevices.getUserMedia = async (constraints) => {
        media.asked++;
        await allowed;
        const stream = await get(constraints);
        media.streams.push(stream);
        return stream;
      };
      const Context = AudioContext;
      const Noted = class extends Context {
        constructor(options?: AudioContextOptions) {
          super(options);
          media.contexts.push(this);
        }
      };
      Object.assign(globalThis, { media, AudioContext: Noted });
    });
  });
  afterEach(() => context.close());

  /** The browser asks the person now. */
  const asked = async (page: Page): Promise<void> => {
    await page.waitForFunction(() => (globalThis as unknown as { media: Media }).media.asked > 0);
  };
  const allow = (page: Page): Promise<void> => page.evaluate(() => (globalThis as unknown as { media: Media }).media.allow());
  /** States of every track and every context at the microphone's rate. */
  const open = (page: Page): Promise<string[]> =>
    page.evaluate(() => {
      const { streams, contexts } = (globalThis as unknown as { media: Media }).media;
      const tracks = streams.flatMap((stream) => stream.getTracks().map(({ readyState }) => `track ${readyState}`));
      return [...tracks, ...contexts.filter(({ sampleRate }) => sampleRate === 16000).map(({ state }) => `context ${state}`)];
    });

  /** The page hears. One that never does says what it shows and has open instead. */
  const listening = async (page: Page): Promise<void> => {
    try {
      await page.getByText('Listening.').waitFor();
    } catch (cause) {
      throw new Error(`not listening: ${await page.locator('.dock').innerText()}; ${(await open(page)).join()}`, { cause });
    }
  };

  test('a microphone that is stopped while the browser still asks is closed as soon as it opens', async () => {
    const page = await openPage(context, url);
    await page.locator('.talk').click();
    await page.getByText('Opening the microphone').waitFor();
    await asked(page);
    await page.keyboard.press('Escape');
    await allow(page);
    await expect.poll(() => open(page)).toEqual(['track ended', 'context closed']);
    expect(await page.locator('.voice-strip').count()).toBe(0);
  });

  test('so is that of a recording whose view is left, and one that is asked for twice is open once', async () => {
    const page = await openPage(context, url, 'transcribe');
    await page.getByText('Record', { exact: true }).click();
    await asked(page);
    await show(page, 'device');
    await allow(page);
    await expect.poll(() => open(page)).toEqual(['track ended', 'context closed']);
    await page.reload();
    await show(page, 'transcribe');
    await page.getByText('Record', { exact: true }).dblclick();
    await allow(page);
    await page.getByText('Stop recording, 0:01').click();
    await page.waitForSelector('.transcript');
    await expect.poll(async () => new Set(await open(page))).toEqual(new Set(['track ended', 'context closed']));
    expect(await page.locator('.intake .failure').count()).toBe(0);
  });

  test('a microphone that is unplugged ends its recording, and says so', async () => {
    const page = await openPage(context, url, 'transcribe');
    await allow(page);
    const unplug = (): Promise<void> =>
      page.evaluate(() => {
        const [track] = (globalThis as unknown as { media: Media }).media.streams.at(-1)!.getTracks();
        track!.stop();
        track!.dispatchEvent(new Event('ended'));
      });
    await page.getByText('Record', { exact: true }).click();
    await page.getByText('Stop recording, 0:01').waitFor();
    await unplug();
    await page.getByText('The microphone has gone').waitFor();
    await page.locator('.transcript[data-status="done"]').waitFor();
    expect(await page.getByText('Record', { exact: true }).isVisible()).toBe(true);
    await show(page, 'chat');
    await page.locator('.talk').click();
    await listening(page);
    await unplug();
    await page.getByText('The microphone has gone').waitFor();
    expect(await page.locator('.talk').innerText()).toBe('Hold to talk');
    expect(await page.locator('.message').count()).toBe(0);
  });

  test('what presses for a person, with a click of no pointer and no key, begins to talk and ends it', async () => {
    const page = await openPage(context, url);
    await allow(page);
    const click = (): Promise<void> => page.locator('.talk').evaluate((button) => (button as HTMLElement).click());
    await click();
    await listening(page);
    await page.waitForFunction(() => Number(document.querySelector<HTMLElement>('.talk')!.dataset['seconds']) > 0.5);
    await click();
    await page.locator('.message.assistant[data-status="done"]').waitFor();
    // Keys and pointers press once.
    for (const press of [() => page.keyboard.press('Space'), () => page.keyboard.press('Enter'), () => page.locator('.talk').click()]) {
      await page.keyboard.press('Escape');
      await page.locator('.talk').focus();
      await press();
      await listening(page);
      await page.waitForFunction(() => Number(document.querySelector<HTMLElement>('.talk')!.dataset['seconds']) > 0.2);
      expect(await page.locator('.talk').innerText()).toBe('Listening');
    }
  });

  /** More than a second has been said: Chromium's microphone beeps twice in it. */
  const said = async (page: Page): Promise<void> => {
    await listening(page);
    await page.waitForFunction(() => Number(document.querySelector<HTMLElement>('.talk')!.dataset['seconds']) > 1);
  };

  test('a key that is held to talk and let go elsewhere ends it, and the next one is heard; a menu button does not talk', async () => {
    const page = await openPage(context, url);
    await allow(page);
    const talk = page.locator('.talk');
    await talk.click({ button: 'right' });
    expect(await talk.innerText()).toBe('Hold to talk');
    await talk.focus();
    await page.keyboard.down('Space');
    await said(page);
    await page.keyboard.press('Tab');
    await page.keyboard.up('Space');
    await page.locator('.message.assistant[data-status="done"]').waitFor();
    await page.keyboard.press('Escape');
    await talk.focus();
    await page.keyboard.down('Space');
    await said(page);
    await page.keyboard.up('Space');
    await expect.poll(() => page.locator('.message.assistant[data-status="done"]').count()).toBe(2);
  });

  test('a microphone that cannot be opened is explained, by the name of the error where that is all that it has', async () => {
    const page = await openPage(context, url);
    await page.evaluate(() => {
      navigator.mediaDevices.getUserMedia = () => Promise.reject(new OverconstrainedError('channelCount'));
    });
    await page.locator('.talk').click();
    await page.getByText('The microphone cannot be opened: OverconstrainedError').waitFor();
  });

  test('what was said in a conversation that is deleted is not asked there: it would bring it back', async () => {
    const page = await openPage(context, url);
    await allow(page);
    await ask(page, 'Hi');
    const asked = engine.chats.length;
    engine.options = { delay: 1e6 };
    await page.locator('.talk').click();
    await said(page);
    await page.locator('.talk').click();
    await page.getByText('Writing down').waitFor();
    await page.getByRole('button', { name: 'Delete Hi' }).click();
    await page.locator('.voice-strip').waitFor({ state: 'detached' });
    expect(engine.chats.length).toBe(asked);
  });

  test('a spoken answer has a button that silences it, while it is written and after that', async () => {
    const page = await openPage(context, url);
    await allow(page);
    const answer = { status: 200, headers: { 'access-control-allow-origin': '*' }, contentType: 'audio/wav', body: tone(60, 24000) };
    await page.route('**/audio/speech', (route) => route.fulfill(answer));
    // One answer that goes on, and one that ends.
    for (const [words, button] of [
      [1000, 'Stop'],
      [1, 'Stop speaking'],
    ] as const) {
      engine.options = { words: Array.from({ length: words }, () => 'This is a sentence of the answer. '), delay: 100 };
      await page.locator('.talk').click();
      await said(page);
      await page.locator('.talk').click();
      await page.getByText('Speaking.').waitFor();
      await page.getByRole('button', { name: button, exact: true }).click();
      await page.getByText('Speaking.').waitFor({ state: 'detached' });
    }
  });

  test('an answer that is read aloud is silent when it is replaced, and when its conversation is deleted', async () => {
    const page = await openPage(context, url);
    engine.options = { words: ['This is a sentence of the answer. '.repeat(100)] };
    await ask(page, 'Hi');
    for (const end of ['Regenerate', 'Delete Hi']) {
      await page.locator('.message.assistant').getByText('Speak', { exact: true }).click();
      await page.getByText('Speaking.').waitFor();
      await page.getByRole('button', { name: end }).click();
      await page.getByText('Speaking.').waitFor({ state: 'detached' });
    }
  });

  test('a server that fails in the middle of an answer that is spoken leaves no player that waits for the rest', async () => {
    const page = await openPage(context, url);
    engine.options = { words: ['This is the first sentence. ', 'This is the second one.'] };
    await ask(page, 'Hi');
    engine.options = {};
    let asked = 0;
    await page.route('**/audio/speech', (route) => (asked++ === 0 ? route.continue() : route.abort()));
    await page.locator('.message.assistant').getByText('Speak', { exact: true }).click();
    await page.getByText('It cannot be spoken').waitFor();
    await show(page, 'models');
    await page.getByText('Stop the sound').waitFor({ state: 'detached', timeout: 10_000 });
  });

  test('of two takes that are to be played the last one is heard, however long the first takes to read', async () => {
    const page = await openPage(context, url, 'speak');
    const body = tone(8, 24000);
    const answer = { status: 200, headers: { 'access-control-allow-origin': '*' }, contentType: 'audio/wav', body };
    await context.route('**/audio/speech', (route) => route.fulfill(answer));
    for (const [count, text] of ['Slow.', 'Quick.'].entries()) {
      await page.fill('main textarea', text);
      await page.locator('main form button').click();
      await stored(page, 'take', count + 1, 'done');
    }
    // The first reading of a sound lasts until it is let go.
    await context.addInitScript(() => {
      const { getAll } = IDBObjectStore.prototype;
      const reading = { isHeld: true, isOver: false };
      let isFirst = true;
      IDBObjectStore.prototype.getAll = function (...query) {
        const linger = (): void => void (reading.isHeld && (this.get(['nobody', 0]).onsuccess = linger));
        if (this.name === 'sounds' && isFirst) {
          isFirst = false;
          linger();
          this.transaction.addEventListener('complete', () => (reading.isOver = true));
        }
        return getAll.apply(this, query);
      };
      Object.assign(globalThis, { reading });
    });
    await page.reload();
    const [quick, slow] = [page.locator('.take').nth(0), page.locator('.take').nth(1)];
    await slow.getByText('Play', { exact: true }).click();
    await quick.getByText('Play', { exact: true }).click();
    await quick.getByText('Pause', { exact: true }).waitFor();
    await page.evaluate(() => ((globalThis as unknown as { reading: { isHeld: boolean } }).reading.isHeld = false));
    await page.waitForFunction(() => (globalThis as unknown as { reading: { isOver: boolean } }).reading.isOver);
    // What is played then is shown with the next frame.
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    expect([await quick.getByText('Pause', { exact: true }).count(), await slow.getByText('Pause', { exact: true }).count()]).toEqual([
      1, 0,
    ]);
  });

  test('reading a file ends with Cancel, though the browser goes on decoding it', async () => {
    await context.addInitScript(() => {
      OfflineAudioContext.prototype.decodeAudioData = () => new Promise(() => undefined);
    });
    const page = await openPage(context, url, 'transcribe');
    await page.locator('.intake input').setInputFiles({ name: 'x.mp3', mimeType: 'audio/mpeg', buffer: Buffer.from('ID3') });
    await page.getByText('Cancel', { exact: true }).click();
    await page.getByText('Cancel', { exact: true }).waitFor({ state: 'detached' });
    expect(await page.locator('.stack > .failure').count()).toBe(0);
  });

  test('of a recording that cannot be kept whole its beginning is kept, and it is said', async () => {
    await context.addInitScript(() => {
      const { put } = IDBObjectStore.prototype;
      IDBObjectStore.prototype.put = function (value: unknown, key?: IDBValidKey) {
        if (Array.isArray(key) && key[1] === 1) throw new DOMException('', 'QuotaExceededError');
        return put.call(this, value, ...(key === undefined ? [] : [key]));
      };
    });
    const page = await openPage(context, url, 'transcribe');
    await page.locator('.intake input').setInputFiles({ name: 'long.wav', mimeType: 'audio/wav', buffer: tone(150) });
    await page.waitForSelector('.transcript[data-status="done"]');
    await page.getByText('This cannot be kept for the next visit').waitFor();
    await stored(page, 'transcript', 1, 'done');
    await page.reload();
    await page.waitForSelector('.transcript[data-status="done"]');
    engine.transcriptions.length = 0;
    await page.getByText('Again', { exact: true }).click();
    // The first minute, after the silence that asks the server for its format; the last half minute is not put in the place of the second.
    const heard = (): number => engine.transcriptions.slice(1).reduce((sum, { samples }) => sum + samples.length, 0);
    await expect.poll(heard, { timeout: 30_000 }).toBe(60 * RATE);
  });

  test('a take that is made has the clock of its own sound, and not that of the one before', async () => {
    const page = await openPage(context, url, 'speak');
    await page.getByRole('button', { name: 'Speak', exact: true }).click();
    await page.locator('.take').getByRole('button', { name: 'Play' }).waitFor();
    const clock = page.locator('.take .number').nth(1);
    await expect.poll(() => clock.innerText()).not.toMatch(/^0:00\.0/);
    engine.options = { delay: 1e6 };
    await page.getByRole('button', { name: 'Speak', exact: true }).click();
    await page.waitForSelector('.take[data-status="making"]');
    expect(await clock.innerText()).toBe('0:00.0 / 0:00.0');
    await page.keyboard.press('Escape');
  });

  test('the recording that is open stays so when another tab adds one', async () => {
    const [first, second] = [await openPage(context, url, 'transcribe'), await openPage(context, url, 'transcribe')];
    const take = (page: Page, name: string) =>
      page.locator('.intake input').setInputFiles({ name, mimeType: 'audio/wav', buffer: tone(2) });
    await take(first, 'one.wav');
    await stored(first, 'transcript', 1, 'done');
    // As it is found at the next visit, and as it came from another tab.
    await first.reload();
    await first.waitForSelector('.transcript');
    await second.waitForSelector('.transcript');
    await second.waitForSelector('.transcript[data-status="done"]');
    await first.locator('.segments-list p').first().focus();
    const third = await openPage(context, url, 'transcribe');
    await take(third, 'two.wav');
    for (const page of [first, second]) {
      await page.locator('.recordings').getByText('two.wav').waitFor();
      expect(await page.locator('.transcript .number').first().innerText()).toBe('one.wav');
    }
    expect(await first.evaluate(() => document.activeElement!.role)).toBe('textbox');
  });

  test('a recording that another tab hears is shown as that, and not offered to be stopped or heard again here', async () => {
    const [first, second] = [await openPage(context, url, 'transcribe'), await openPage(context, url, 'transcribe')];
    engine.options = { holdAfter: 1 };
    await first.locator('.intake input').setInputFiles({ name: 'two.wav', mimeType: 'audio/wav', buffer: tone(2) });
    await second.getByText('transcribing in another tab').waitFor();
    const buttons = (page: Page): Promise<string[]> => page.locator('.transcript > .row').last().locator('button').allInnerTexts();
    expect(await buttons(second)).toEqual(['Play', 'Delete']);
    expect(await buttons(first)).toEqual(['Play', 'Stop', 'Delete']);
    engine.options = {};
    engine.release();
    await second.waitForSelector('.transcript[data-status="done"]');
    expect(await buttons(second)).toContain('Again');
  });
});
