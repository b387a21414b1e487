/** The playground against the three listeners (with an engine that answers at once), served by the chat listener itself. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { EngineError } from '../../engine/errors.ts';
import type { ModelTask } from '../../engine/model-types.ts';
import { createChatApp } from '../../server/chat/routes.ts';
import { listen } from '../../server/listener/listen.ts';
import { VIEW_OF } from '../../web/src/router.ts';
import { FakeEngine } from '../support/fake-engine.ts';
import { wavFile } from '../support/wav-file.ts';
import { findChromium } from './chromium.ts';
import { startFakeServers } from './fake-servers.ts';
import type { FakeServers } from './fake-servers.ts';
import { ask, openPage, textOf, waitForState } from './playground.ts';

describe.skipIf(findChromium() === undefined)('server mode', () => {
  const engine = new FakeEngine();
  let servers: FakeServers;
  let page: Page;
  let url: string;

  beforeAll(async () => {
    servers = await startFakeServers('server', engine);
    url = servers.url;
    // With nothing chosen, unlike the contexts of `servers`: what the page makes of that is tested here.
    page = await openPage(await servers.browser.newContext(), url);
    await waitForState(page, 'chat', 'server');
  });
  afterAll(() => servers?.close());
  beforeEach(() => {
    engine.options = {};
  });

  /** Goes to a task's view and points it at its listener, or at another address: free ports are not the ones the page guesses. */
  const open = async (task: ModelTask, address = servers.addresses[task]): Promise<void> => {
    const route = VIEW_OF[task];
    await page.goto(`${url}#/${route}`);
    await page.waitForSelector(`main.${route}`);
    await page.getByLabel('Address').fill(address);
    await page.getByLabel('Address').blur();
  };

  test('no view, and no answer, puts a warning or an error into the console', async () => {
    const context = await servers.context();
    const visit = await context.newPage();
    const said: string[] = [];
    visit.on('console', (message) => ['warning', 'error'].includes(message.type()) && said.push(message.text()));
    // Chromium's own, of the browser of these tests.
    const ofNoAdapter = 'No available adapters.';
    await visit.goto(url);
    expect(await ask(visit, 'Hi')).toBe('Hello there!');
    for (const route of ['speak', 'transcribe', 'models', 'device'] as const) {
      await visit.goto(`${url}#/${route}`);
      await visit.waitForSelector(`main.${route}`);
    }
    await context.close();
    expect(said.filter((text) => text !== ofNoAdapter)).toEqual([]);
  });

  test('the page guesses that its own server does the chat', async () => {
    expect(await ask(page, 'Hi')).toBe('Hello there!');
    expect(engine.chats.at(-1)).toMatchObject({
      messages: [{ role: 'user', content: 'Hi' }],
      sampling: { temperature: 0.7 },
      maxTokens: 512,
    });
    await page.locator('.stats summary').last().click();
    expect(await textOf(page.locator('.stats dl').last())).toMatch(
      /answer\s+3 tokens\s+prompt\s+10 tokens, 3 from cache\s+ended\s+by itself$/,
    );
  });

  test('a question that is asked before the page knows its own server waits for it', async () => {
    const context = await servers.browser.newContext();
    let answerProbe = (): void => {};
    const probed = new Promise<void>((resolve) => (answerProbe = resolve));
    await context.route(url, async (route) => {
      if (route.request().method() === 'HEAD') await probed;
      await route.continue();
    });
    const early = await openPage(context, url);
    await waitForState(early, 'chat', 'server');
    const answer = ask(early, 'Hi');
    await early.waitForSelector('.message.assistant[data-status="waiting"]');
    answerProbe();
    expect(await answer).toBe('Hello there!');
    await context.close();
  });

  test('the name and place of the model stand above the composer', async () => {
    expect(await page.locator('.composer .place').innerText()).toBe(`parley-chat on ${new URL(url).host} · 1,024 tokens of context`);
  });

  const focused = (): Promise<string | null | undefined> => page.evaluate(() => document.activeElement?.getAttribute('aria-label'));

  test('the keyboard is in the composer after a suggestion was picked', async () => {
    await page.locator('.conversations > button').first().click();
    await page.getByRole('button', { name: 'What can you do?' }).focus();
    await page.keyboard.press('Enter');
    await page.waitForSelector('.message.assistant[data-status="done"]');
    await expect.poll(focused).toBe('Message');
  });

  test('words of a table stay whole on a narrow screen, and a task has its box only', async () => {
    const table = '| Responsibilities | Internationalisation | Considerable |\n|---|---|---|\n| one considerable word | two | three |';
    engine.options = { words: ['- [x] washed\n- [ ] ironed\n\n1. [x] first\n\n2. [ ] second\n\n', table] };
    await page.setViewportSize({ width: 320, height: 640 });
    await page.fill('.composer textarea', 'What is done?');
    await page.press('.composer textarea', 'Enter');
    const answer = page.locator('.message.assistant[data-status="done"] .markdown').last();
    await answer.locator('table').waitFor();
    const split = await answer.locator('table').evaluate((element) => {
      const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
      const found: string[] = [];
      for (let node = texts.nextNode(); node; node = texts.nextNode()) {
        for (const { index, 0: word } of node.textContent!.matchAll(/\S+/g)) {
          const range = document.createRange();
          range.setStart(node, index);
          range.setEnd(node, index + word.length);
          if (range.getClientRects().length > 1) found.push(word);
        }
      }
      return found;
    });
    expect(split).toEqual([]);
    expect(await answer.locator('li').allInnerTexts()).toEqual(
      [' washed', ' ironed', ' first', ' second'].map((text) => expect.stringMatching(`^\\s*${text.trim()}$`)),
    );
    expect(await answer.locator('li input').evaluateAll((boxes) => boxes.map((box) => (box as HTMLInputElement).checked))).toEqual([
      true,
      false,
      true,
      false,
    ]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(320);
    await page.setViewportSize({ width: 1280, height: 720 });
  });

  test('a table is a named group, and stands where its script begins', async () => {
    const side = async (table: string): Promise<number> => {
      engine.options = { words: [table] };
      await ask(page, 'A table?');
      const box = page.locator('.message.assistant').last().locator('.scroll');
      return box.evaluate((element) => element.firstElementChild!.getBoundingClientRect().left - element.getBoundingClientRect().left);
    };
    expect(await side('| Kernel | ms |\n|---|---|\n| gemv | 1 |')).toBe(0);
    expect(await page.getByRole('group', { name: 'Table: Kernel, ms' }).count()).toBe(1);
    expect(await side('| العمود | القيمة |\n|---|---|\n| واحد | 1 |')).toBeGreaterThan(100);
  });

  test('what a model thinks first is folded away, can be read while it thinks, and is kept', async () => {
    const deltas = [...Array.from({ length: 50 }, () => ({ reasoning: 'Hm. ' })), { text: 'It is 4.' }];
    // Thinks until it is released.
    const thinker = new FakeEngine({ deltas, holdAfter: 2 });
    const app = createChatApp({ engine: thinker, modelId: 'parley-chat', staticFolder: servers.staticFolder });
    const listener = await listen(app, { host: '127.0.0.1', port: 0 });
    const own = await openPage(await servers.browser.newContext(), `http://127.0.0.1:${listener.port}/`);
    await waitForState(own, 'chat', 'server');
    await own.fill('.composer textarea', 'What is 2 + 2?');
    await own.press('.composer textarea', 'Enter');
    const answer = own.locator('.message.assistant').first();
    const thoughts = answer.locator('.thoughts');
    await thoughts.getByText('Thinking, 4 characters').click();
    expect(await textOf(thoughts.locator('.markdown'))).toBe('Hm.');
    thinker.options = { deltas };
    thinker.release();
    await answer.and(own.locator('[data-status="done"]')).waitFor();
    await thoughts.getByText('Thoughts, 200 characters').click();
    await thoughts.locator('.markdown').waitFor({ state: 'detached' });
    expect(await textOf(answer.locator('.markdown'))).toBe('It is 4.');
    await own.reload();
    await answer.getByText('Thoughts, 200 characters').waitFor();
    // They are no part of what is said to the model.
    await ask(own, 'Sure?');
    expect(thinker.chats.at(-1)!.messages.at(-2)).toEqual({ role: 'assistant', content: 'It is 4.' });
    await own.context().close();
    listener.destroy();
  });

  test('Esc stops what is read aloud, wherever the focus is', async () => {
    await page.locator('.conversations > button').first().click();
    engine.options = { words: 'This is a sentence. '.repeat(20).split(/(?<= )/) };
    await ask(page, 'Go on');
    engine.options = { holdAfter: 2 };
    await open('speech');
    await page.goto(`${url}#/chat`);
    await page.locator('.message.assistant').getByText('Speak').click();
    const stop = page.locator('.message.assistant').getByText('Stop speaking');
    await stop.waitFor();
    await page.locator('.wordmark').click();
    await page.keyboard.press('Escape');
    await page.locator('.message.assistant').getByText('Speak', { exact: true }).waitFor();
    expect(await stop.count()).toBe(0);
  });

  test('the page opens again without a network and without its server', async () => {
    const context = await servers.browser.newContext();
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
    // What was read aloud before may be stopped only now.
    await expect.poll(() => engine.status().running).toBe(0);
    const before = engine.aborted;
    engine.options = { words: Array<string>(1000).fill('x '), holdAfter: 20 };
    await page.fill('.composer textarea', 'Go on');
    await page.press('.composer textarea', 'Enter');
    await page.waitForSelector('.message.assistant[data-status="writing"]');
    await page.getByText('Stop', { exact: true }).click();
    await page.waitForSelector('.message.assistant[data-status="stopped"]');
    await expect.poll(() => engine.aborted).toBe(before + 1);
    const answer = page.locator('.message.assistant').last();
    await answer.locator('.stats summary').click();
    // The server would have counted the prompt at the end.
    expect(await textOf(answer.locator('.stats dl'))).toMatch(/^answer\s+\d+ tokens\s+ended\s+by you$/);
  });

  test('a refusal is shown with its reason, and trying again works', async () => {
    engine.options = { failAfter: 0, failWith: new EngineError('invalid_request', 'the sampler is out of order') };
    await page.fill('.composer textarea', 'Hello');
    await page.press('.composer textarea', 'Enter');
    const failed = page.locator('.message.assistant[data-status="failed"]');
    await failed.waitFor();
    expect(await failed.locator('.failure').innerText()).toMatch(/out of order.*HTTP 400/);
    engine.options = {};
    await failed.getByText('Try again').click();
    // Of the last answer: others were done before.
    const status = () => page.locator('.message.assistant').last().getAttribute('data-status');
    await expect.poll(status).toBe('done');
    expect(await textOf(page.locator('.message.assistant .markdown').last())).toBe('Hello there!');
  });

  test('where a conversation has no more room, a new one is offered instead of the same again', async () => {
    engine.options = { failAfter: 0, failWith: new EngineError('context_length_exceeded', 'the prompt has 9000 tokens; 1024 fit') };
    await page.fill('.composer textarea', 'Too long');
    await page.press('.composer textarea', 'Enter');
    const failure = page.locator('.message.assistant[data-status="failed"] .failure');
    await failure.waitFor();
    expect(await failure.innerText()).toMatch(/9000 tokens.*context_length_exceeded/);
    expect(await failure.locator('button').allInnerTexts()).toEqual(['New conversation', 'Manage models']);
    engine.options = {};
    await failure.getByText('New conversation').click();
    await expect.poll(() => page.locator('.message').count()).toBe(0);
    // What comes next goes there, without another click.
    await page.keyboard.type('Hi');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('.message.assistant .markdown').allInnerTexts()).toEqual(['Hello there!']);
  });

  test('the settings stay in their place while an answer is written', async () => {
    await ask(page, 'Hi');
    const place = () => page.locator('.side.right .where').evaluate((element) => element.getBoundingClientRect().top);
    const [before, context] = [await place(), await page.getByText(/^\d+ of 1,024$/).innerText()];
    engine.options = { words: Array<string>(1000).fill('x '), holdAfter: 20 };
    await page.fill('.composer textarea', 'Go on');
    await page.press('.composer textarea', 'Enter');
    await page.waitForSelector('.message.assistant[data-status="writing"]');
    expect(await place()).toBe(before);
    await page.getByText('Stop', { exact: true }).click();
    await page.locator('.message.assistant').last().and(page.locator('[data-status="stopped"]')).waitFor();
    // Of the last answer that was counted: this one was not.
    expect([await place(), await page.getByText(/^\d+ of 1,024$/).innerText()]).toEqual([before, context]);
  });

  test('speech comes with its seed and all of its samples', async () => {
    await open('speech');
    await page.fill('main textarea', 'One. Two.');
    await page.getByText('oni', { exact: true }).click();
    await page.locator('main form button').click();
    const take = page.locator('.take[data-status="done"]');
    await take.waitFor();
    expect(await take.innerText()).toMatch(/oni · 1\.00× · seed 7/);
    expect(engine.speeches.at(-1)).toMatchObject({ text: 'One. Two.', voice: 'oni' });
    expect(await take.innerText()).toMatch(/0\.2 s/);
    expect(await page.locator('.place').innerText()).toBe(`tts-1 on ${new URL(servers.addresses.speech).host} · 19 voices · 24 kHz`);
  });

  test('what is known of the server stays known when another setting changes, and the waveform has the colours of the theme', async () => {
    const place = await page.locator('.place').innerText();
    const canvas = page.locator('.take canvas').first();
    const drawn = () =>
      canvas.evaluate((element: HTMLCanvasElement) => {
        const { data } = element.getContext('2d')!.getImageData(0, 0, element.width, element.height);
        const inked = data.findIndex((value, at) => at % 4 === 3 && value > 200);
        return [data[inked - 3]! > 128 ? 'light' : 'dark', inked >= 0];
      });
    await page.getByRole('button', { name: 'Theme: auto' }).click();
    await page.getByRole('button', { name: 'Theme: light' }).click();
    await page.getByRole('button', { name: 'Theme: dark' }).waitFor();
    await expect.poll(drawn).toEqual(['light', true]);
    await page.getByRole('button', { name: 'Theme: dark' }).click();
    await page.getByRole('button', { name: 'Theme: auto' }).click();
    await page.getByRole('button', { name: 'Theme: light' }).waitFor();
    await expect.poll(drawn).toEqual(['dark', true]);
    expect(await page.locator('.place').innerText()).toBe(place);
  });

  test('a recording of another rate is sent as 16 kHz, and its text comes back', async () => {
    await open('transcription');
    const samples = Float32Array.from({ length: 44100 * 2 }, (_, i) => 0.3 * Math.sin(i / 20));
    const buffer = Buffer.from(wavFile(samples, { encoding: 's16', sampleRate: 44100 }));
    await page.locator('.intake input').setInputFiles({ name: 'two.wav', mimeType: 'audio/wav', buffer });
    await page.waitForSelector('.transcript[data-status="done"]');
    expect((await page.locator('.segments-list p').allInnerTexts()).join(' ')).toBe('Heard 2.00 seconds.');
    expect(engine.transcriptions.at(-1)!.samples.length).toBe(32000);
  });

  test('a take is stopped by Esc, also before its first sound and with the focus nowhere', async () => {
    await open('speech');
    engine.options = { delay: 60_000 };
    await page.fill('main textarea', 'One. Two.');
    await page.locator('main form button').click();
    await page.waitForSelector('.take[data-status="making"]');
    await page.evaluate(() => (document.activeElement as HTMLElement).blur());
    await page.keyboard.press('Escape');
    await page.waitForSelector('.take[data-status="stopped"]');
    expect(await page.locator('.take').first().innerText()).toMatch(/stopped before the first sound\s+One\. Two\./);
  });

  test('a server that is killed in the middle of an answer is named, and what it said stays', async () => {
    const mortal = await listen(createChatApp({ engine, modelId: 'parley-chat' }), { host: '127.0.0.1', port: 0 });
    await open('chat', `http://127.0.0.1:${mortal.port}/v1`);
    engine.options = { words: Array<string>(1000).fill('x '), holdAfter: 20 };
    await page.fill('.composer textarea', 'Go on');
    await page.press('.composer textarea', 'Enter');
    const answer = page.locator('.message.assistant').last();
    await answer.locator('.markdown', { hasText: 'x x' }).waitFor();
    mortal.destroy();
    await answer.locator('.failure').waitFor();
    expect(await textOf(answer.locator('.failure'))).toContain(
      `The server at http://127.0.0.1:${mortal.port}/v1 went away before its answer was complete.`,
    );
    expect(await textOf(answer.locator('.markdown'))).toMatch(/^x x/);
    expect(await answer.locator('.failure button').allInnerTexts()).toEqual(['Try again', 'Compute in this tab']);
  });

  describe('a server that takes connections and says nothing', () => {
    const silent = createServer(() => {});
    const host = (): string => `127.0.0.1:${(silent.address() as AddressInfo).port}`;
    const address = (): string => `http://${host()}/v1`;

    beforeAll(async () => new Promise<void>((resolve) => void silent.listen(0, '127.0.0.1', resolve)));
    afterAll(() => silent.close());

    test('a question waits for it by its name, says so after a while, and is stopped at once', async () => {
      await page.clock.install();
      await open('chat', address());
      await page.fill('.composer textarea', 'Anybody?');
      await page.press('.composer textarea', 'Enter');
      const answer = page.locator('.message.assistant').last();
      await answer.getByText(`Waiting for ${host()}`).waitFor();
      const quiet = answer.getByText(`Nothing has come from ${host()} for 15 seconds. It may be busy, or gone.`);
      expect(await quiet.count()).toBe(0);
      await page.clock.fastForward(15_000);
      await quiet.waitFor();
      await page.getByText('Stop', { exact: true }).click();
      await answer.and(page.locator('[data-status="stopped"]')).waitFor();
      expect(await textOf(answer)).not.toContain(host());
    });

    test('so is speech', async () => {
      await open('speech', address());
      await page.fill('main textarea', 'One.');
      await page.locator('main form button').click();
      const take = page.locator('.take').first();
      await take.and(page.locator('[data-status="making"]')).waitFor();
      await page.locator('main form').getByText('Stop', { exact: true }).click();
      await take.and(page.locator('[data-status="stopped"]')).waitFor();
    });

    test('so is a transcript', async () => {
      await open('transcription', address());
      const buffer = Buffer.from(wavFile(new Float32Array(32000).fill(0.1), { encoding: 's16', sampleRate: 16000 }));
      await page.locator('.intake input').setInputFiles({ name: 'unheard.wav', mimeType: 'audio/wav', buffer });
      const transcript = page.getByRole('region', { name: 'Transcript of unheard.wav' });
      await transcript.getByText('Stop', { exact: true }).click();
      await transcript.and(page.locator('[data-status="stopped"]')).waitFor();
    });
  });

  test('a server that is not there is named', async () => {
    await open('chat', 'http://127.0.0.1:9/v1');
    await page.fill('.composer textarea', 'Anybody?');
    await page.press('.composer textarea', 'Enter');
    // The answers before it may have failed too.
    await page.locator('.message.assistant[data-status="failed"]', { hasText: 'http://127.0.0.1:9' }).waitFor();
  });
});
