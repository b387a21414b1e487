/** Speech, transcription and the voice loop in a tab of Chromium, all computed there. Slow adapters make slow tests: the software one takes some ten seconds a second of speech. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseWav, wavToMono } from '../../engine/audio/wav.ts';
import { wavFile } from '../support/wav-file.ts';
import { ROOT, buildPlayground, findChromium, launchChromium } from './chromium.ts';
import { downloaded, greedyContext, longestTask, openPage, textOf, waitForState, wordsFound, wordsOf } from './playground.ts';
import { serveFolder } from './static-server.ts';
import type { StaticServer } from './static-server.ts';

const FIXTURES = join(ROOT, 'test', 'fixtures');
const CLIP = join(FIXTURES, 'parley-transcribe', 'clip.wav');
const MINUTES = 60_000;

/** What PyTorch hears in the clip when asked for times. */
function clipText(): string {
  const golden = JSON.parse(readFileSync(join(FIXTURES, 'parley-transcribe', 'golden.json'), 'utf8')) as { text_timestamps: string };
  return golden.text_timestamps.replace(/<\|[^>]*\|>/g, '');
}

const CLIP_RATE = 16000;

const clipSamples = (): Float32Array => wavToMono(parseWav(readFileSync(CLIP)));

/** A second before and two after. */
function withSilence(samples: Float32Array): Float32Array {
  const padded = new Float32Array(samples.length + 3 * CLIP_RATE);
  padded.set(samples, CLIP_RATE);
  return padded;
}

async function setInput(page: Page, name: string, buffer: Buffer): Promise<void> {
  await page.locator('.intake input').setInputFiles({ name, mimeType: 'audio/wav', buffer });
}

/** Speaks and returns the WAV file. */
async function speak(page: Page, text: string, seed: string): Promise<Buffer> {
  await page.fill('main textarea', text);
  await page.getByLabel('Seed').fill(seed);
  await page.getByLabel('Seed').blur();
  const takes = await page.locator('.take').count();
  await page.locator('main form button').click();
  await page.waitForFunction((before) => document.querySelectorAll('.take[data-status="done"]').length > before, takes, {
    timeout: 4 * MINUTES,
  });
  return downloaded(page, 'Download WAV');
}

/** What `expectSeeking` has the page note of a sound that plays. */
interface Shown {
  readonly places: number[];
  readonly marked: string[];
}

const shown = (page: Page): Promise<Shown> =>
  page.evaluate(() => {
    const { places, marked } = globalThis as unknown as Shown;
    return { places, marked };
  });

/** A segment's time plays from there and marks the segment; the waveform is a slider that the keyboard moves. */
async function expectSeeking(page: Page): Promise<void> {
  const slider = page.getByRole('slider', { name: 'Waveform' });
  const number = async (name: string): Promise<number> => Number(await slider.getAttribute(name));
  // A clip of a second is over before anybody could look: the page notes what was shown.
  await page.evaluate(() => {
    const places: number[] = [];
    const marked: string[] = [];
    Object.assign(globalThis, { places, marked });
    new MutationObserver(() => {
      places.push(Number(document.querySelector('.transcript [role="slider"]')!.getAttribute('aria-valuenow')));
      for (const segment of document.querySelectorAll('.segments-list .now')) marked.push(segment.textContent);
    }).observe(document.querySelector('.transcript')!, { subtree: true, attributes: true });
  });
  // On a slow machine the sound may be over before a frame showed its beginning: then it is played again.
  const playUntil = (play: () => Promise<void>, wanted: (page: Shown) => boolean): Promise<void> =>
    expect.poll(async () => (await play(), wanted(await shown(page))), { interval: 1000 }).toBe(true);
  const firstSegment = page.locator('.segments-list button').first();
  await playUntil(
    () => firstSegment.click(),
    ({ marked }) => marked.length > 0,
  );
  await slider.focus();
  await page.keyboard.press('End');
  await expect.poll(() => number('aria-valuenow')).toBe(await number('aria-valuemax'));
  expect(await slider.getAttribute('aria-valuetext')).toMatch(/^(0:0\d\.\d) of \1$/);
  await page.getByText('Play', { exact: true }).waitFor();
  await page.evaluate(() => ((globalThis as unknown as Shown).places.length = 0));
  await playUntil(
    () => page.keyboard.press('Home'),
    ({ places }) => places.some((place) => place < 0.5),
  );
  await page.getByText('Play', { exact: true }).waitFor();
}

describe.skipIf(findChromium() === undefined)('sound in the tab', () => {
  let folder: string;
  let server: StaticServer;
  let browser: Browser;
  /** The tests up to the voice loop share a page and what it has loaded: loading is most of a software adapter's work. */
  let page: Page;

  beforeAll(async () => {
    server = await serveFolder(buildPlayground('audio'));
    // The microphone of the voice loop hears the clip, once, after a second of silence: a busy machine opens it late.
    folder = mkdtempSync(join(tmpdir(), 'parley-microphone-'));
    const heard = join(folder, 'clip.wav');
    writeFileSync(heard, wavFile(withSilence(clipSamples()), { encoding: 's16', sampleRate: CLIP_RATE }));
    const microphone = [
      '--use-fake-ui-for-media-stream',
      '--use-fake-device-for-media-stream',
      `--use-file-for-fake-audio-capture=${heard}%noloop`,
    ];
    browser = await launchChromium({ args: microphone });
    const context = await greedyContext(browser);
    // The browser's noise suppression and level control bend a clip of one second differently at each run, and the recogniser hears that.
    await context.addInitScript(() => {
      const microphone = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };
      localStorage.setItem('parley.settings.1', JSON.stringify({ microphone }));
    });
    page = await openPage(context, server.url, 'speak');
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Goes to a view and loads its model, with the network. */
  async function load(task: 'chat' | 'speech' | 'transcription', route: string): Promise<void> {
    await page.context().setOffline(false);
    await page.goto(`${server.url}#/${route}`);
    await page.waitForSelector(`main.${route}`);
    await page.click('text=Load the model');
    await waitForState(page, task, 'ready');
  }

  /** The buttons that lead in the view. */
  const leading = () => page.locator('main .primary').allInnerTexts();

  test(
    'a seeded sentence is spoken with the network cut, and again the same',
    async () => {
      await load('speech', 'speak');
      await expect.poll(leading).toEqual(['Speak']);
      await page.context().setOffline(true);
      expect(await page.locator('.voices input').count()).toBe(19);
      let first: Buffer = Buffer.alloc(0);
      const longest = await longestTask(browser, page, async () => (first = await speak(page, 'Good morning.', '7')));
      console.log(`speech: longest task of the page ${longest.toFixed(1)} ms`);
      expect(longest).toBeLessThan(50);
      expect((await speak(page, 'Good morning.', '7')).equals(first)).toBe(true);
      const wav = parseWav(first);
      const samples = wavToMono(wav);
      expect(wav.sampleRate).toBe(24000);
      expect(samples.length / 24000).toBeGreaterThan(0.5);
      expect(Math.max(...samples.map(Math.abs))).toBeGreaterThan(0.05);
    },
    8 * MINUTES,
  );

  test(
    'a clip is transcribed as PyTorch does, with the network cut, and saved with times',
    async () => {
      await load('transcription', 'transcribe');
      await expect.poll(leading).toEqual(['Choose files']);
      await page.context().setOffline(true);
      const longest = await longestTask(browser, page, async () => {
        await setInput(page, 'clip.wav', readFileSync(CLIP));
        await page.waitForSelector('.transcript[data-status="done"]', { timeout: 0 });
      });
      console.log(`transcription: longest task of the page ${longest.toFixed(1)} ms`);
      expect(longest).toBeLessThan(50);
      const heard = await page.locator('.segments-list p').allInnerTexts();
      expect(wordsOf(heard.join(' '))).toEqual(wordsOf(clipText()));
      expect((await downloaded(page, 'SRT')).toString()).toMatch(/^1\n00:00:0\d,\d{3} --> 00:00:\d\d,\d{3}\n\S/);
      await expectSeeking(page);
      await setInput(page, 'picture.jpg', Buffer.from([0xff, 0xd8, 0xff, 0xe0, 1, 2, 3]));
      await page.getByText(/cannot read the file as sound/).waitFor();
    },
    6 * MINUTES,
  );

  test('hold to talk: what was said becomes a question, and its answer is spoken', { timeout: 10 * MINUTES }, async () => {
    await load('chat', 'chat');
    const talk = page.locator('.talk');
    await talk.focus();
    await page.keyboard.down('Space');
    await page.getByText('Listening. To send, let go or press again.').waitFor();
    // The clip is over when the microphone has heard silence for a while.
    await page.waitForFunction(() => Number((document.querySelector('.talk') as HTMLElement).dataset['seconds']) > 4);
    await page.keyboard.up('Space');
    await page.waitForSelector('.message.user', { timeout: 3 * MINUTES });
    const question = await textOf(page.locator('.message.user .question'));
    expect(wordsFound(clipText(), question), question).toBeGreaterThan(0.5);
    await page.waitForSelector('.message.assistant[data-status="done"]', { timeout: MINUTES });
    await page.getByText('Speaking. Talk to interrupt.').waitFor({ timeout: 4 * MINUTES });
    await talk.click();
    await page.getByText('Speaking. Talk to interrupt.').waitFor({ state: 'detached' });
    await page.context().close();
  });
});
