/** The page with servers of other products, and with what other versions of it have stored. */
import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { OPEN_MS } from '../../web/src/storage/database.ts';
import { FakeEngine } from '../support/fake-engine.ts';
import { wavFile } from '../support/wav-file.ts';
import { findChromium } from './chromium.ts';
import { startFakeServers } from './fake-servers.ts';
import type { FakeServers } from './fake-servers.ts';
import { ask, openPage, show, stored } from './playground.ts';

const MODELS = { data: [{ id: 'models--org--a_name_without_a_single_space_or_hyphen_as_files_have_them' }] };

describe.skipIf(findChromium() === undefined)('other servers', () => {
  let servers: FakeServers;
  beforeAll(async () => {
    servers = await startFakeServers('other-servers', new FakeEngine());
  });
  afterAll(() => servers?.close());

  test('a voice that the server has speaks from the first take on', async () => {
    const context = await servers.context();
    const voices: unknown[] = [];
    await context.route('**/v1/**', async (route) => {
      const request = route.request();
      if (request.url().endsWith('/models')) return route.fulfill({ json: MODELS });
      if (request.url().endsWith('/voices')) return route.fulfill({ json: { voices: [{ name: 'af_heart' }] } });
      voices.push((request.postDataJSON() as { voice: string }).voice);
      return route.fulfill({ body: Buffer.from(wavFile(new Float32Array(2400), { encoding: 's16', sampleRate: 24_000 })) });
    });
    const page = await openPage(context, servers.url, 'speak');
    await page.locator('main form button').click();
    await page.locator('.take[data-status="done"]').getByText('af_heart').waitFor();
    expect(voices).toEqual(['af_heart']);
    await context.close();
  });

  test('their words and names are read whole on a narrow screen', async () => {
    const context = await servers.context({ viewport: { width: 320, height: 640 } });
    const path = `/home/${'somebody_else_'.repeat(9)}`;
    const answers = { models: { json: MODELS }, voices: { json: { voices: [path, 'af_heart'] } } };
    await context.route('**/v1/**', (route) =>
      route.fulfill(answers[route.request().url().split('/').at(-1) as keyof typeof answers] ?? { status: 400, json: { detail: path } }),
    );
    const page = await openPage(context, servers.url, 'speak');
    await page.locator('main form button').click();
    await page.locator('.take .failure').getByText(path).waitFor();
    const wider = (selector: string): Promise<boolean> =>
      page.locator(selector).evaluate((element) => {
        const range = document.createRange();
        range.selectNodeContents(element);
        return range.getBoundingClientRect().right > innerWidth;
      });
    expect(await wider('.take .failure p, .take p.failure')).toBe(false);
    expect(await wider('#speak-place .name')).toBe(false);
    expect(await wider('fieldset:has(.voices) legend')).toBe(false);
    expect(await wider('.voices label:first-child')).toBe(false);
    await context.close();
  });

  test('one of several models is chosen, for each task and address, and remembered', async () => {
    const context = await keepingContext(servers);
    let listed = ['nomic-embed-text', 'llama3.2:3b', 'qwen3:4b'];
    const asked: string[] = [];
    await context.route('**/v1/**', async (route) => {
      const request = route.request();
      if (request.url().endsWith('/models')) return route.fulfill({ json: { data: listed.map((id) => ({ id })) } });
      if (!request.url().endsWith('/chat/completions')) return route.fulfill({ status: 404 });
      asked.push((request.postDataJSON() as { model: string }).model);
      return route.fulfill({ json: { choices: [{ message: { content: 'Hi' }, finish_reason: 'stop' }] } });
    });
    const page = await openPage(context, servers.url);
    const choice = page.getByRole('combobox', { name: 'Model', exact: true });
    await choice.waitFor();
    expect(await choice.locator('option').allInnerTexts()).toEqual(listed);
    expect(await ask(page, 'First?')).toBe('Hi');
    await choice.focus();
    await page.keyboard.press('l');
    await page.locator('#chat-place').getByText('llama3.2:3b').waitFor();
    expect(await ask(page, 'Second?')).toBe('Hi');
    await page.reload();
    await page.locator('#chat-place').getByText('llama3.2:3b').waitFor();
    expect(await choice.inputValue()).toBe('llama3.2:3b');
    // Another task, and another address, have choices of their own.
    await show(page, 'transcribe');
    expect(await choice.inputValue()).toBe('nomic-embed-text');
    await show(page, 'chat');
    await page.getByLabel('Address').fill(`${servers.addresses.speech}/`);
    await page.getByLabel('Address').blur();
    await page.locator('#chat-place').getByText('nomic-embed-text').waitFor();
    await page.getByLabel('Address').fill(`${servers.addresses.chat}/`);
    await page.getByLabel('Address').blur();
    await page.locator('#chat-place').getByText('llama3.2:3b').waitFor();
    listed = ['qwen3:4b', 'nomic-embed-text'];
    await page.reload();
    await page.getByText('The server does not list llama3.2:3b any more: qwen3:4b answers instead.').waitFor();
    expect(await ask(page, 'Third?')).toBe('Hi');
    expect(asked).toEqual(['nomic-embed-text', 'llama3.2:3b', 'qwen3:4b']);
    await choice.selectOption('nomic-embed-text');
    await page.getByText('The server does not list').waitFor({ state: 'detached' });
    await context.close();
  });

  test('what is being typed stays while the page hears from a server', async () => {
    const context = await servers.context();
    let answer = (): void => {};
    const answered = new Promise<void>((resolve) => (answer = resolve));
    await context.route('**/v1/**', async (route) => {
      await answered;
      await route.fulfill({ json: route.request().url().endsWith('/models') ? MODELS : { voices: ['af_heart'] } });
    });
    const page = await openPage(context, servers.url, 'speak');
    const address = page.getByLabel('Address');
    const typed = 'http://127.0.0.1:9/v';
    await address.fill(typed);
    answer();
    await page.getByText('Voice: af_heart').waitFor();
    expect(await address.inputValue()).toBe(typed);
    await address.press('1');
    await address.blur();
    await page.locator('#speak-place').getByText('127.0.0.1:9').waitFor();
    expect(await address.inputValue()).toBe(`${typed}1`);
    await context.close();
  });

  test('a server with one model offers no choice', async () => {
    const context = await servers.context();
    const page = await openPage(context, servers.url);
    await page.locator('#chat-place').getByText('parley-chat').waitFor();
    await page.getByLabel('API key').waitFor();
    expect(await page.getByRole('combobox', { name: 'Model', exact: true }).count()).toBe(0);
    await context.close();
  });

  test('an answer without any text is said to have none', async () => {
    const context = await servers.context();
    const call = { id: 'a', type: 'function', function: { name: 'search', arguments: '{}' } };
    const answers = [
      { message: { content: null, tool_calls: [call] }, finish_reason: 'tool_calls' },
      { message: { content: '' }, finish_reason: 'stop' },
    ];
    await context.route('**/v1/**', (route) =>
      route.fulfill({ json: route.request().url().endsWith('/models') ? MODELS : { choices: [answers.shift()] } }),
    );
    const page = await openPage(context, servers.url);
    expect(await ask(page, 'Search?')).toBe('');
    await page.getByText('No text: the model called a tool, and this page has none.').waitFor();
    expect(await ask(page, 'Anything?')).toBe('');
    await page.getByText('The model answered without any text.').waitFor();
    await context.close();
  });

  test('where the browser never opens its store, a question is answered, and the page says that it keeps nothing', async () => {
    const context = await servers.context();
    await context.addInitScript(() => (indexedDB.open = () => ({}) as IDBOpenDBRequest));
    await context.clock.install();
    const page = await openPage(context, servers.url);
    await page.clock.fastForward(OPEN_MS);
    expect(await ask(page, 'Hi')).toBe('Hello there!');
    await page.getByText('Conversations cannot be kept here: this browser does not open its store').waitFor();
    await show(page, 'speak');
    await page.locator('main form button').click();
    await page.locator('.take[data-status="done"]').waitFor();
    await page.getByText('This cannot be kept for the next visit: this browser does not open its store').waitFor();
    await context.close();
  });

  describe('conversations', () => {
    const titles = (page: Page): Promise<string[]> => page.locator('.conversations .title').allInnerTexts();
    const opened = async (context: BrowserContext): Promise<Page> => openPage(context, servers.url);

    test('that are imported stand in the order of the file, also after a reload', async () => {
      const context = await servers.context();
      const page = await opened(context);
      const names = Array.from({ length: 12 }, (_, at) => `number ${at}`);
      const conversations = names.map((title, at) => ({
        title,
        created: 1,
        updated: 1000 - at,
        messages: [{ role: 'user', text: title }],
      }));
      const buffer = Buffer.from(JSON.stringify({ format: 'parley-conversations', version: 1, conversations }));
      await page.locator('.conversations input[type="file"]').setInputFiles({ name: 'a.json', mimeType: 'application/json', buffer });
      await page.getByText('12 imported').waitFor();
      expect(await titles(page)).toEqual([...names, 'Untitled']);
      await page.locator('.message.user', { hasText: 'number 0' }).waitFor();
      await stored(page, 'conversations', 12);
      await page.reload();
      await page.locator('.conversations .title', { hasText: 'number 11' }).waitFor();
      expect(await titles(page)).toEqual(['Untitled', ...names]);
      await context.close();
    });

    test('of another version hide none of this one', async () => {
      const context = await servers.context();
      const page = await opened(context);
      await ask(page, 'Of this version');
      await stored(page, 'conversations', 1);
      await page.evaluate(
        () =>
          new Promise<void>((resolve) => {
            const opening = indexedDB.open('parley');
            opening.onsuccess = () => {
              const writing = opening.result.transaction('conversations', 'readwrite');
              const other = { title: 'Of another', created: 1, updated: 1, system: '' };
              writing.objectStore('conversations').put({ ...other, id: 'a', turns: [] });
              writing.objectStore('conversations').put({ ...other, id: 'b', messages: [{ id: 'c', role: 'user', parts: [] }] });
              writing.oncomplete = () => (opening.result.close(), resolve());
            };
          }),
      );
      await page.reload();
      await page.getByText('Some conversations are not shown').waitFor();
      expect(await titles(page)).toEqual(['Untitled', 'Of this version']);
      await stored(page, 'conversations', 3);
      await context.close();
    });
  });

  test.each([
    ['take', 'speak', '.takes > .take', ['parts', 'levels', 'text', 'voice', 'speed', 'seconds', 'work', 'status']],
    ['transcript', 'transcribe', '.recordings > li, section.transcript', ['segments', 'levels', 'name', 'duration', 'work', 'status']],
  ])('a %s of another version hides none of this one', async (kind, view, items, fields) => {
    const context = await servers.context();
    const page = await openPage(context, servers.url, view);
    const errors: string[] = [];
    page.on('pageerror', ({ message }) => errors.push(message));
    if (kind === 'take') await page.locator('main form button').click();
    else await page.locator('.intake input[type="file"]').setInputFiles(recording);
    await stored(page, kind, 1, 'done');
    await page.evaluate(storeOthers, { kind, fields });
    await page.reload();
    await page.getByText(`Some ${kind}s are not shown`).waitFor();
    await page.locator('[data-status="done"]').waitFor();
    expect(await page.locator(items).count()).toBe(1);
    // Nor does one that another tab, with another version, has just stored.
    await page.evaluate((message) => new BroadcastChannel('parley').postMessage(message), { kind, id: `another ${fields[0]}` });
    await show(page, 'chat');
    await show(page, view);
    expect(await page.locator(items).count()).toBe(1);
    await stored(page, kind, 2 + 2 * fields.length);
    expect(errors).toEqual([]);
    await context.close();
  });
});

/** A context whose page has all tasks computed by the servers, and whose settings stay over a reload. */
async function keepingContext({ browser, addresses }: FakeServers): Promise<BrowserContext> {
  const context = await browser.newContext();
  const where = { chat: 'server', speech: 'server', transcription: 'server' };
  await context.addInitScript(
    (text) => {
      const key = 'parley.settings.1';
      if (localStorage.getItem(key) === null) localStorage.setItem(key, text);
    },
    JSON.stringify({ where, servers: addresses }),
  );
  return context;
}

const sound = wavFile(new Float32Array(16_000).fill(0.1), { encoding: 's16', sampleRate: 16_000 });
const recording = { name: 'a.wav', mimeType: 'audio/wav', buffer: Buffer.from(sound) };

/** Stores copies of the one stored record: without each of these fields, with another type in each, and with a part that has no text. */
function storeOthers({ kind, fields }: { readonly kind: string; readonly fields: readonly string[] }): Promise<void> {
  type Record = { readonly [field: string]: unknown };
  return new Promise((resolve) => {
    const opening = indexedDB.open('parley-work');
    opening.onsuccess = () => {
      const writing = opening.result.transaction(kind, 'readwrite');
      const store = writing.objectStore(kind);
      const reading = store.getAll() as IDBRequest<Record[]>;
      reading.onsuccess = () => {
        const [record] = reading.result;
        for (const field of fields) {
          const { [field]: _, ...others } = record!;
          store.put({ ...others, id: `no ${field}` });
          store.put({ ...others, id: `another ${field}`, [field]: { of: 'another type' } });
        }
        const [list] = fields as [string];
        store.put({ ...record, id: 'without words', [list]: (record![list] as Record[]).map(({ text: _, ...others }) => others) });
      };
      writing.oncomplete = () => (opening.result.close(), resolve());
    };
  });
}
