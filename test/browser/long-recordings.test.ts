/** Long recordings in a real page: read without holding it up, refused in time, cut into pieces for the server. */
import { closeSync, ftruncateSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { FakeEngine } from '../support/fake-engine.ts';
import { wavFile } from '../support/wav-file.ts';
import { findChromium } from './chromium.ts';
import { startFakeServers } from './fake-servers.ts';
import type { FakeServers } from './fake-servers.ts';
import { longestTask, openPage } from './playground.ts';

const HOUR = 3600;
/** ms of processor time that one task of the page may take: what is felt as a pause. */
const LONGEST_TASK = 50;

interface Sound {
  readonly seconds: number;
  readonly sampleRate: number;
  readonly channels: number;
}

describe.skipIf(findChromium() === undefined)('long recordings', () => {
  const engine = new FakeEngine();
  let servers: FakeServers;
  let folder: string;
  let page: Page;
  let posts: number;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'parley-recordings-'));
    servers = await startFakeServers('recordings', engine);
  });
  afterAll(async () => {
    await servers?.close();
    rmSync(folder, { recursive: true, force: true });
  });
  beforeEach(async () => {
    page = await openPage(await servers.context(), servers.url, 'transcribe');
    posts = 0;
    page.on('request', (request) => (posts += Number(request.method() === 'POST')));
    engine.transcriptions.length = 0;
  });
  afterEach(async () => {
    await page.context().close();
  });

  /** A file of silence that takes no room on the disk. */
  const silence = (name: string, { seconds, sampleRate, channels }: Sound): string => {
    const path = join(folder, name);
    const bytes = seconds * sampleRate * channels * 2;
    const header = wavFile([], { encoding: 's16', sampleRate, channels, declaredSize: bytes });
    const file = openSync(path, 'w');
    writeSync(file, header);
    ftruncateSync(file, header.length + bytes);
    closeSync(file);
    return path;
  };
  const choose = (path: string): Promise<void> => page.locator('.intake input').setInputFiles(path);

  test('a day is refused at once, with the limit', async () => {
    const path = silence('day.wav', { seconds: 24 * HOUR, sampleRate: 8000, channels: 1 });
    const longest = await longestTask(servers.browser, page, async () => {
      await choose(path);
      await page.waitForSelector('.failure');
    });
    expect(await page.locator('.failure').innerText()).toBe(
      'day.wav: it lasts 24 hours, and at most 2 hours are transcribed at once; cut it into parts.',
    );
    expect(longest).toBeLessThan(LONGEST_TASK);
  });

  test('an hour is read without holding up the page', async () => {
    const path = silence('hour.wav', { seconds: HOUR, sampleRate: 16000, channels: 1 });
    const longest = await longestTask(servers.browser, page, async () => {
      await choose(path);
      await page.getByText('No speech was found in this recording.').waitFor();
      await page.getByRole('button', { name: 'Play' }).click();
      await page.getByRole('button', { name: 'Pause' }).click();
    });
    console.log(`an hour of sound: longest task of the page ${longest.toFixed(1)} ms`);
    expect(longest).toBeLessThan(LONGEST_TASK);
    expect(await page.locator('.transcript .trace .number').innerText()).toMatch(/ 60:00$/);
    expect(posts).toBe(0);
  });

  test('reading shows how far it is and can be cancelled', async () => {
    await choose(silence('stereo.wav', { seconds: 2 * HOUR, sampleRate: 48000, channels: 2 }));
    const reading = page.getByRole('region', { name: 'File' });
    await reading.getByText(/reading [1-9]\d* %/).waitFor();
    await reading.getByRole('button', { name: 'Cancel' }).click();
    await reading.waitFor({ state: 'detached' });
    expect(await page.locator('.transcript, .failure').count()).toBe(0);
  });

  test('other formats go through the decoders of the browser, and what is no sound is named', async () => {
    const encoder = await servers.codec.open('mp3', { from: 24000, to: 24000 });
    const tone = Float32Array.from({ length: 5 * 24000 }, (_, i) => 0.3 * Math.sin(i / 20));
    const buffer = Buffer.concat([await encoder.push(tone), (await encoder.finish()).bytes]);
    await page.locator('.intake input').setInputFiles({ name: 'tone.mp3', mimeType: 'audio/mpeg', buffer });
    await page.waitForSelector('.transcript[data-status="done"]');
    // The encoder adds a frame or two of silence.
    const seconds = engine.transcriptions.at(-1)!.samples.length / 16000;
    expect(seconds).toBeGreaterThan(4.95);
    expect(seconds).toBeLessThan(5.2);
    await page.locator('.intake input').setInputFiles({ name: 'x.mp3', mimeType: 'audio/mpeg', buffer: Buffer.from('no sound at all') });
    await page.waitForSelector('.failure');
    expect(await page.locator('.failure').innerText()).toBe(
      'x.mp3: this browser cannot read the file as sound; WAV, MP3, M4A, Ogg and FLAC usually work.',
    );
  });

  test('minutes are sent in pieces, each once, and keep their times', async () => {
    const samples = Float32Array.from({ length: 250 * 16000 }, (_, i) => (i % 48000 < 4000 ? 0 : 0.3 * Math.sin(i / 20)));
    const buffer = Buffer.from(wavFile(samples, { encoding: 's16', sampleRate: 16000 }));
    await page.locator('.intake input').setInputFiles({ name: 'talk.wav', mimeType: 'audio/wav', buffer });
    await page.waitForSelector('.transcript[data-status="done"]');
    const seconds = engine.transcriptions.map(({ samples }) => samples.length / 16000);
    // The first asks, with half a second of silence, whether the server gives times.
    expect(seconds[0]).toBe(0.5);
    expect(seconds.slice(1).reduce((sum, piece) => sum + piece, 0)).toBe(250);
    expect(Math.max(...seconds)).toBeLessThanOrEqual(60);
    expect(posts).toBe(seconds.length);
    const begins = seconds.slice(1).map((_, piece) => seconds.slice(1, piece + 1).reduce((sum, before) => sum + before, 0));
    // The fake engine hears something at the beginning of each and a second later.
    const starts = begins.flatMap((begin) => [begin, begin + 1]).map(Math.floor);
    const shown = starts.map((start) => `${Math.floor(start / 60)}:${String(start % 60).padStart(2, '0')}`);
    expect(await page.locator('.segments-list button').allInnerTexts()).toEqual(shown);
  });
});
