/** Recordings of the microphone and files beside each other, and what may go wrong with either. Against the listeners of an engine that computes nothing. */
import { fileURLToPath } from 'node:url';
import type { BrowserContext } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { FakeEngine } from '../support/fake-engine.ts';
import { wavFile } from '../support/wav-file.ts';
import { findChromium, launchChromium } from './chromium.ts';
import { startFakeServers } from './fake-servers.ts';
import type { FakeServers } from './fake-servers.ts';
import { openPage, stored } from './playground.ts';

const RATE = 16000;

describe.skipIf(findChromium() === undefined)('recordings', () => {
  const engine = new FakeEngine();
  let servers: FakeServers;
  let context: BrowserContext;

  beforeAll(async () => {
    servers = await startFakeServers('microphone', engine, {
      args: ['--use-fake-ui-for-media-stream', '--use-fake-device-for-media-stream'],
    });
  });
  afterAll(() => servers?.close());
  beforeEach(async () => {
    context = await servers.context();
  });
  afterEach(() => context.close());

  test('one that is as long as recordings may be ends there, and says so; what was recorded is transcribed', async () => {
    // A second of it counts as more than two hours, until it is closed.
    await context.addInitScript(() => {
      Object.defineProperty(AudioContext.prototype, 'sampleRate', {
        get(this: AudioContext) {
          return this.state === 'closed' ? 16000 : 2;
        },
      });
    });
    const page = await openPage(context, servers.url, 'transcribe');
    await page.getByText('Record', { exact: true }).click();
    await page.getByText('2 hours are recorded, and no more are transcribed at once. What was heard before is transcribed.').waitFor();
    await page.locator('.transcript[data-status="done"]').waitFor();
    expect(await page.getByText('Record', { exact: true }).isVisible()).toBe(true);
    expect(engine.transcriptions.at(-1)!.samples.length).toBeGreaterThan(0.5 * RATE);
  });

  test('a file that is read while the microphone is recorded takes neither its place nor its transcription', async () => {
    await context.addInitScript(() => {
      const read = new Promise<void>((resolve) => Object.assign(globalThis, { letRead: resolve }));
      OfflineAudioContext.prototype.decodeAudioData = async () => {
        await read;
        return new AudioBuffer({ length: 16000, sampleRate: 16000 });
      };
    });
    const page = await openPage(context, servers.url, 'transcribe');
    let letHear = (): void => undefined;
    const heard = new Promise<void>((resolve) => (letHear = resolve));
    await page.route('**/audio/transcriptions', async (route) => {
      await heard;
      await route.continue();
    });
    await page.locator('.intake input').setInputFiles({ name: 'x.mp3', mimeType: 'audio/mpeg', buffer: Buffer.from('ID3') });
    await page.getByText('Cancel', { exact: true }).waitFor();
    await page.getByText('Record', { exact: true }).click();
    await page.getByText('Stop recording, 0:01').click();
    await page.locator('.transcript[data-status="hearing"]').waitFor();
    await page.evaluate(() => (globalThis as unknown as { letRead: () => void }).letRead());
    await page.locator('.recordings').waitFor();
    expect(await page.locator('.recordings').innerText()).toMatch(/^x\.mp3/);
    expect(await page.locator('.transcript').getAttribute('data-status')).toBe('hearing');
    letHear();
    await stored(page, 'transcript', 2, 'done');
  });

  test.each(['wav-16000-opposite.wav', 'flac-16000-opposite.flac'])('%s, whose channels cancel each other, is heard', async (name) => {
    const page = await openPage(context, servers.url, 'transcribe');
    const before = engine.transcriptions.length;
    await page.locator('.intake input').setInputFiles(fileURLToPath(new URL(`../fixtures/audio-formats/${name}`, import.meta.url)));
    await page.locator('.transcript[data-status="done"]').waitFor();
    const heard = engine.transcriptions.slice(before).flatMap(({ samples }) => [...samples]);
    expect(Math.max(...heard)).toBeGreaterThan(0.01);
  });

  test('one that is deleted for good while its sound is still being stored leaves none of it behind', async () => {
    // The first piece is being stored until it is let go.
    await context.addInitScript(() => {
      const { put } = IDBObjectStore.prototype;
      const storing = { isHeld: true, isOver: false };
      IDBObjectStore.prototype.put = function (value: unknown, key?: IDBValidKey) {
        const linger = (): void => void (storing.isHeld && (this.get(['nobody', 0]).onsuccess = linger));
        if (Array.isArray(key) && key[1] === 0) {
          linger();
          this.transaction.addEventListener('complete', () => (storing.isOver = true));
        }
        return put.call(this, value, ...(key === undefined ? [] : [key]));
      };
      Object.assign(globalThis, { storing });
    });
    await context.clock.install();
    const page = await openPage(context, servers.url, 'transcribe');
    const buffer = Buffer.from(wavFile(new Float32Array(150 * RATE).fill(0.1), { encoding: 's16', sampleRate: RATE }));
    await page.locator('.intake input').setInputFiles({ name: 'long.wav', mimeType: 'audio/wav', buffer });
    await page.locator('.transcript').getByText('Delete', { exact: true }).click();
    await page.getByText('Undo').waitFor();
    await page.clock.fastForward(10_000);
    await page.getByText('Undo').waitFor({ state: 'detached' });
    await page.evaluate(() => ((globalThis as unknown as { storing: { isHeld: boolean } }).storing.isHeld = false));
    await page.waitForFunction(() => (globalThis as unknown as { storing: { isOver: boolean } }).storing.isOver);
    await stored(page, 'sounds', 0);
    await stored(page, 'transcript', 0);
  });

  test('a microphone that was only not allowed this time is not said to be blocked', async () => {
    // The other one allows every microphone.
    const browser = await launchChromium({ webgpu: false, args: ['--use-fake-device-for-media-stream'] });
    try {
      const page = await openPage(await browser.newContext(), servers.url);
      const { targetInfo } = await (await page.context().newCDPSession(page)).send('Target.getTargetInfo');
      const session = await browser.newBrowserCDPSession();
      const to = { origin: new URL(servers.url).origin, browserContextId: targetInfo.browserContextId! };
      await session.send('Browser.setPermission', { permission: { name: 'microphone' }, setting: 'denied', ...to });
      await page.locator('.talk').click();
      await page.getByText('The microphone is blocked for this page. Allow it with the icon beside the address').waitFor();
      await session.send('Browser.setPermission', { permission: { name: 'microphone' }, setting: 'prompt', ...to });
      // As the browser answers where its question is closed, which the driver cannot do.
      await page.evaluate(() => {
        navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException('Permission dismissed', 'NotAllowedError'));
      });
      await page.locator('.talk').click();
      await page.getByText('The microphone was not allowed. Try again, and allow it when the browser asks.').waitFor();
    } finally {
      await browser.close();
    }
  });
});
