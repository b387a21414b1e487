/** Nothing that was made is lost: two tabs at once, changes of view, reloads, deletions. Against the listeners, with an engine as slow as a test wants. */
import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { FakeEngine } from '../support/fake-engine.ts';
import { wavFile } from '../support/wav-file.ts';
import { findChromium } from './chromium.ts';
import { startFakeServers } from './fake-servers.ts';
import type { FakeServers } from './fake-servers.ts';
import { ask, downloaded, openPage, show, stored, textOf } from './playground.ts';

/** An answer that takes some seconds, in a word every few milliseconds. */
const LONG = { words: Array.from({ length: 400 }, (_, i) => `w${i} `), delay: 10, holdAfter: 300 };

describe.skipIf(findChromium() === undefined)('work is kept', () => {
  const engine = new FakeEngine();
  let servers: FakeServers;
  let context: BrowserContext;
  let url: string;

  beforeAll(async () => {
    servers = await startFakeServers('work', engine);
    url = servers.url;
  });
  afterAll(() => servers?.close());
  beforeEach(async () => {
    engine.options = {};
    context = await servers.context();
  });
  afterEach(() => context.close());

  // Text as it is in the document: innerText leaves out what has not been painted yet (content-visibility).
  const questions = (page: Page): Promise<string[]> => page.locator('.message.user .question').allTextContents();
  const answers = (page: Page): Promise<string[]> => page.locator('.message.assistant[data-status="done"] .markdown').allInnerTexts();
  const openConversation = (page: Page, title: string): Promise<void> => page.locator('.conversations .title', { hasText: title }).click();
  const submit = async (page: Page, question: string): Promise<void> => {
    await page.fill('.composer textarea', question);
    await page.press('.composer textarea', 'Enter');
  };

  test('two tabs on one conversation: each sees what the other adds, and a reload has all of it', async () => {
    const [first, second] = [await openPage(context, url), await openPage(context, url)];
    await ask(first, 'One?');
    await openConversation(second, 'One?');
    await ask(second, 'Two?');
    // The next question is asked with both turns before it, though one was added elsewhere.
    await expect.poll(() => questions(first)).toEqual(['One?', 'Two?']);
    await ask(first, 'Three?');
    expect(engine.chats.at(-1)!.messages.map(({ content }) => content)).toEqual(['One?', 'Hello there!', 'Two?', 'Hello there!', 'Three?']);
    for (const page of [first, second]) {
      await expect.poll(() => answers(page)).toHaveLength(3);
      await page.reload();
      await openConversation(page, 'One?');
      await expect.poll(() => questions(page)).toEqual(['One?', 'Two?', 'Three?']);
      await expect.poll(() => answers(page)).toHaveLength(3);
    }
  });

  test('two tabs that ask at the same time both keep their turn', async () => {
    const [first, second] = [await openPage(context, url), await openPage(context, url)];
    await ask(first, 'Begin');
    await openConversation(second, 'Begin');
    engine.options = { words: LONG.words.slice(0, 100), delay: 10 };
    await Promise.all([submit(first, 'Left?'), submit(second, 'Right?')]);
    const whole = engine.options.words!.join('').trim();
    for (const page of [first, second]) await expect.poll(() => answers(page), { timeout: 60_000 }).toEqual(['Hello there!', whole, whole]);
    const asked = await questions(first);
    expect([...asked].sort()).toEqual(['Begin', 'Left?', 'Right?']);
    expect(await questions(second)).toEqual(asked);
    for (const page of [first, second]) {
      await page.reload();
      await openConversation(page, 'Begin');
      await expect.poll(() => questions(page)).toEqual(asked);
      await expect.poll(() => answers(page)).toHaveLength(3);
    }
  });

  test('an answer goes on while another view is open, and what a closed tab had written stays', async () => {
    const page = await openPage(context, url);
    engine.options = LONG;
    await submit(page, 'Go on');
    await page.waitForSelector('.message.assistant[data-status="writing"]');
    await show(page, 'models');
    const watching = await openPage(context, url);
    await openConversation(watching, 'Go on');
    // Still written, so not offered for a repetition; the other tab sees how far it is.
    await expect.poll(() => watching.locator('.message.assistant .markdown').innerText(), { timeout: 30_000 }).toMatch(/w5\b/);
    expect(await watching.locator('.message.assistant').getAttribute('data-status')).toBe('writing');
    await page.close();
    await watching.waitForSelector('.message.assistant[data-status="stopped"]');
    expect(await textOf(watching.locator('.message.assistant .markdown'))).toMatch(/^w0 w1 w2 /);
    await watching.reload();
    await openConversation(watching, 'Go on');
    await watching.waitForSelector('.message.assistant[data-status="stopped"]');
    expect(await textOf(watching.locator('.message.assistant .markdown'))).toMatch(/^w0 w1 w2 /);
    engine.options = {};
    await watching.getByText('Regenerate').click();
    await expect.poll(() => answers(watching)).toEqual(['Hello there!']);
  });

  test('an answer is complete after a visit to another view', async () => {
    const page = await openPage(context, url);
    engine.options = { words: LONG.words.slice(0, 50), delay: 10 };
    await submit(page, 'Go on');
    await page.waitForSelector('.message.assistant');
    await show(page, 'device');
    await show(page, 'chat');
    await page.waitForSelector('.message.assistant[data-status="done"]');
    expect(await answers(page)).toEqual([engine.options.words!.join('').trim()]);
  });

  test('what is typed and not sent is there after a reload, in each tab its own', async () => {
    const [first, second] = [await openPage(context, url), await openPage(context, url)];
    await first.fill('.composer textarea', 'half a thought');
    await second.fill('.composer textarea', 'another one');
    await show(first, 'speak');
    await first.fill('main textarea', 'A text to be spoken.');
    await show(first, 'chat');
    expect(await first.inputValue('.composer textarea')).toBe('half a thought');
    await stored(first, 'texts', 3);
    for (const page of [first, second]) await page.reload();
    await expect.poll(() => first.inputValue('.composer textarea')).toBe('half a thought');
    await expect.poll(() => second.inputValue('.composer textarea')).toBe('another one');
    await show(first, 'speak');
    await expect.poll(() => first.inputValue('main textarea')).toBe('A text to be spoken.');
  });

  test('what was typed at the last visit and is sent now does not come back in the next conversation', async () => {
    const page = await openPage(context, url);
    await page.fill('.composer textarea', 'half a thought');
    await stored(page, 'texts', 1);
    await page.reload();
    await expect.poll(() => page.inputValue('.composer textarea')).toBe('half a thought');
    await page.press('.composer textarea', 'Enter');
    await page.waitForSelector('.message.assistant[data-status="done"]');
    await page.getByText('New conversation').click();
    await page.waitForSelector('.welcome');
    expect(await page.inputValue('.composer textarea')).toBe('');
  });

  test('a duplicated tab types into texts of its own', async () => {
    const first = await openPage(context, url);
    await first.fill('.composer textarea', 'half a thought');
    await stored(first, 'texts', 1);
    // Opened by the page, it gets a copy of the session storage, as a duplicate does.
    const [second] = await Promise.all([context.waitForEvent('page'), first.evaluate(() => void window.open(location.href))]);
    await second.waitForSelector('.rail .state');
    await second.fill('.composer textarea', 'another one');
    await stored(first, 'texts', 2);
    for (const page of [first, second]) await page.reload();
    await expect.poll(() => first.inputValue('.composer textarea')).toBe('half a thought');
    await expect.poll(() => second.inputValue('.composer textarea')).toBe('another one');
  });

  test('takes are made while another view is open, and kept with their sound', async () => {
    const page = await openPage(context, url, 'speak');
    await page.waitForSelector('main.speak');
    engine.options = { holdAfter: 2 };
    await page.fill('main textarea', 'One. Two. Three.');
    await page.locator('main form button').click();
    await page.waitForSelector('.take[data-status="making"]');
    await show(page, 'models');
    await show(page, 'speak');
    expect(await page.locator('.take').getAttribute('data-status')).toBe('making');
    engine.release();
    await page.waitForSelector('.take[data-status="done"]');
    const before = await downloaded(page, 'Download WAV');
    expect(before.length).toBeGreaterThan(1000);
    await stored(page, 'take', 1, 'done');
    await page.reload();
    await page.waitForSelector('.take[data-status="done"]');
    expect((await downloaded(page, 'Download WAV')).equals(before)).toBe(true);
    await page.locator('.take').getByText('Delete').click();
    await expect.poll(() => page.locator('.take').count()).toBe(0);
    await page.locator('.rail').getByText('Undo').click();
    await page.waitForSelector('.take[data-status="done"]');
    expect((await downloaded(page, 'Download WAV')).equals(before)).toBe(true);
  });

  test('a transcript is heard while another view is open; corrections and earlier recordings stay', async () => {
    const page = await openPage(context, url, 'transcribe');
    const recording = async (name: string, seconds: number): Promise<void> => {
      const samples = Float32Array.from({ length: 16000 * seconds }, (_, i) => 0.3 * Math.sin(i / 20));
      const buffer = Buffer.from(wavFile(samples, { encoding: 's16', sampleRate: 16000 }));
      await page.locator('.intake input').setInputFiles({ name, mimeType: 'audio/wav', buffer });
    };
    engine.options = { holdAfter: 1 };
    await recording('two.wav', 2);
    await page.waitForSelector('.transcript[data-status="hearing"]');
    await show(page, 'chat');
    await show(page, 'transcribe');
    engine.options = {};
    engine.release();
    await page.waitForSelector('.transcript[data-status="done"]');
    const line = page.locator('.segments-list p').first();
    const said = async (): Promise<string> => (await page.locator('.segments-list p').allInnerTexts()).join(' ');
    expect(await said()).toBe('Heard 2.00 seconds.');
    // Typed and left without a click elsewhere.
    await line.fill('What was really said.');
    await show(page, 'chat');
    await show(page, 'transcribe');
    expect(await said()).toBe('What was really said. 2.00 seconds.');
    await recording('three.wav', 3);
    await expect.poll(said).toBe('Heard 3.00 seconds.');
    await stored(page, 'transcript', 2, 'done');
    await page.reload();
    await expect.poll(said).toBe('Heard 3.00 seconds.');
    await page.getByRole('button', { name: 'two.wav' }).click();
    await expect.poll(said).toBe('What was really said. 2.00 seconds.');
    // The recording itself is kept too.
    const heard = engine.transcriptions.length;
    await page.getByText('Again', { exact: true }).click();
    await expect.poll(said).toBe('Heard 2.00 seconds.');
    // A visit asks with half a second of silence whether the server gives times.
    expect(engine.transcriptions.slice(heard).map(({ samples }) => samples.length)).toEqual([8000, 32000]);
  });

  test('a deleted conversation comes back for ten seconds, in every tab, and then it is gone', async () => {
    const now = Date.now();
    await context.clock.setFixedTime(now);
    const [first, second] = [await openPage(context, url), await openPage(context, url)];
    await ask(first, 'Keep me');
    const listed = (page: Page) => page.locator('.conversations .title', { hasText: 'Keep me' });
    await listed(second).waitFor();
    const remove = (): Promise<void> => first.getByRole('button', { name: 'Delete Keep me' }).click();
    const undo = first.locator('.rail').getByRole('button', { name: /^Undo/ });
    await remove();
    await listed(first).waitFor({ state: 'detached' });
    await listed(second).waitFor({ state: 'detached' });
    await undo.click();
    await listed(second).waitFor();
    expect(await questions(first)).toEqual(['Keep me']);
    await remove();
    await undo.waitFor();
    await listed(second).waitFor({ state: 'detached' });
    // A reload does not bring it back by itself, and the Undo is still there.
    await first.reload();
    await undo.waitFor();
    expect(await listed(first).count()).toBe(0);
    await context.clock.setFixedTime(now + 11_000);
    await first.reload();
    await stored(first, 'conversations', 0);
    expect(await undo.count()).toBe(0);
    expect(await listed(first).count()).toBe(0);
  });

  test('what another tab deletes does not go without a word: its answer stops, and either tab brings it back', async () => {
    const [first, second] = [await openPage(context, url), await openPage(context, url)];
    await ask(first, 'Keep me');
    await openConversation(second, 'Keep me');
    engine.options = LONG;
    await submit(second, 'Go on');
    await second.waitForSelector('.message.assistant[data-status="writing"]');
    await first.getByRole('button', { name: 'Delete Keep me' }).click();
    const undo = (page: Page) => page.locator('.rail').getByRole('button', { name: 'Undo: bring back Keep me' });
    await undo(second).waitFor();
    expect(await second.locator('.message').count()).toBe(0);
    await undo(second).click();
    // It is open again where it was open, and nobody can bring it back once more.
    await expect.poll(() => questions(second)).toEqual(['Keep me', 'Go on']);
    await second.waitForSelector('.message.assistant[data-status="stopped"]');
    await first.locator('.conversations .title', { hasText: 'Keep me' }).waitFor();
    expect([await undo(first).count(), await undo(second).count()]).toEqual([0, 0]);
  });

  test('so does a take that another tab deletes while it is made: it does not come back by itself', async () => {
    const now = Date.now();
    await context.clock.install({ time: now });
    const [first, second] = [await openPage(context, url, 'speak'), await openPage(context, url, 'speak')];
    // It would still be made when the deletion can no longer be undone.
    engine.options = { holdAfter: 1 };
    const { aborted } = engine;
    await first.fill('main textarea', 'One. Two. Three.');
    await first.locator('main form button').click();
    await second.waitForSelector('.take[data-status="making"]');
    await second.locator('.take').getByText('Delete').click();
    const undo = (page: Page) => page.locator('.rail').getByRole('button', { name: /^Undo/ });
    await undo(first).waitFor();
    expect(await first.locator('.take').count()).toBe(0);
    await first.getByText('Speak', { exact: true }).last().waitFor();
    for (const page of [first, second]) await page.clock.runFor(11_000);
    for (const page of [first, second]) await undo(page).waitFor({ state: 'detached' });
    await stored(first, 'take', 0);
    expect(engine.aborted).toBe(aborted + 1);
    expect([await first.locator('.take').count(), await second.locator('.take').count()]).toEqual([0, 0]);
  });

  test('what a full browser does not keep is said above the composer, also on a phone, and no longer once it does', async () => {
    const page = await openPage(context, url);
    await page.setViewportSize({ width: 360, height: 740 });
    const session = await context.newCDPSession(page);
    const { origin } = new URL(url);
    await session.send('Storage.overrideQuotaForOrigin', { origin, quotaSize: 1 });
    await ask(page, 'Not kept');
    await page.locator('.composer').getByText('Conversations cannot be kept here: this browser has no more space').waitFor();
    await session.send('Storage.overrideQuotaForOrigin', { origin });
    await ask(page, 'Kept');
    await page.locator('.composer [role="alert"]').waitFor({ state: 'detached' });
    await page.reload();
    await expect.poll(() => questions(page)).toEqual(['Not kept', 'Kept']);
  });

  test('where other pages of the address have filled what a tab keeps, a question is answered and kept all the same', async () => {
    const page = await openPage(context, url);
    await page.evaluate(() => {
      for (let length = 1 << 20; length > 0;)
        try {
          sessionStorage.setItem(`other ${length} ${sessionStorage.length}`, 'x'.repeat(length));
        } catch {
          length >>= 1;
        }
    });
    await ask(page, 'Hi');
    await page.reload();
    await openConversation(page, 'Hi');
    await expect.poll(() => questions(page)).toEqual(['Hi']);
  });

  test('a turn that was refused in the middle of a conversation stays, and is kept with the next', async () => {
    await context.addInitScript(() => {
      const put = IDBObjectStore.prototype.put;
      IDBObjectStore.prototype.put = function (value: unknown) {
        if ('isFull' in globalThis) throw new DOMException('', 'QuotaExceededError');
        return put.call(this, value);
      };
    });
    const page = await openPage(context, url);
    await ask(page, 'One?');
    await page.evaluate(() => Object.assign(globalThis, { isFull: true }));
    await ask(page, 'Two?');
    await page.locator('.composer [role="alert"]').waitFor();
    await page.evaluate(() => Reflect.deleteProperty(globalThis, 'isFull'));
    await ask(page, 'Three?');
    expect(engine.chats.at(-1)!.messages.map(({ content }) => content)).toEqual(['One?', 'Hello there!', 'Two?', 'Hello there!', 'Three?']);
    await expect.poll(() => questions(page)).toEqual(['One?', 'Two?', 'Three?']);
    await page.reload();
    await expect.poll(() => questions(page)).toEqual(['One?', 'Two?', 'Three?']);
    expect(await answers(page)).toHaveLength(3);
  });

  test('what a browser refuses to keep at once is said with its reason', async () => {
    // As Firefox does of values of many megabytes.
    await context.addInitScript(() => {
      const put = IDBObjectStore.prototype.put;
      IDBObjectStore.prototype.put = function (value: { readonly messages?: readonly unknown[] }) {
        if (value.messages?.length === 2) throw new DOMException('too large for this', 'InvalidStateError');
        return put.call(this, value);
      };
    });
    const page = await openPage(context, url);
    const errors: string[] = [];
    page.on('pageerror', (error) => errors.push(error.message));
    await ask(page, 'Hi');
    await page.locator('.composer').getByText('Conversations cannot be kept here: too large for this').waitFor();
    await ask(page, 'Again');
    await page.locator('.composer [role="alert"]').waitFor({ state: 'detached' });
    expect(errors).toEqual([]);
  });
});
