/** What a person does before the model is there: asks at once, gives up waiting, tries again when the network is back. */
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { buildPlayground, findChromium, launchChromium } from './chromium.ts';
import { greedyContext, openPage, textOf, waitForState } from './playground.ts';
import { serveFolder } from './static-server.ts';
import type { StaticServer } from './static-server.ts';

const CAPITAL = 'What is the capital of France?';

describe.skipIf(findChromium() === undefined)('before the model is there', () => {
  let server: StaticServer;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;

  beforeAll(async () => {
    server = await serveFolder(buildPlayground('first-visit'));
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });
  beforeEach(async () => {
    context = await greedyContext(browser);
    page = await openPage(context, server.url);
  });
  afterEach(async () => {
    server.intercept = undefined;
    await context.close();
  });

  const send = async (text: string): Promise<void> => {
    await page.fill('.composer textarea', text);
    await page.press('.composer textarea', 'Enter');
  };
  const answer = (status: string): Promise<unknown> => page.waitForSelector(`.message.assistant[data-status="${status}"]`);
  const hold = (): void => {
    server.intercept = (path) => (path.endsWith('parley-chat/model.safetensors') ? 'hang' : undefined);
  };

  test.each([
    ['speak', 'Speak'],
    ['transcribe', 'Choose files'],
  ])('in %s one button leads: the one that loads the model', async (view, own) => {
    await page.goto(`${server.url}#/${view}`);
    await page.getByText(own, { exact: true }).last().waitFor();
    expect(await page.locator('main .primary').allInnerTexts()).toEqual(['Load the model']);
  });

  test.each([
    { width: 360, height: 740 },
    { width: 1280, height: 720 },
  ])('$width x $height px: what the page is and its one button are in sight', async (size) => {
    const fresh = await browser.newContext({ viewport: size });
    const page = await openPage(fresh, server.url);
    await page.getByText(/11 MB to download, once, in about \d+ s at 20\sMbit\/s/).waitFor();
    for (const seen of [
      page.getByRole('heading', { name: 'Ask something.' }),
      page.getByText(/Nothing you write or say leaves this page/),
      page.getByRole('button', { name: 'Load the model' }),
    ]) {
      const [box, place] = [(await seen.boundingBox())!, (await page.locator('.scroller').boundingBox())!];
      expect(box.y).toBeGreaterThanOrEqual(place.y);
      expect(box.y + box.height).toBeLessThanOrEqual(place.y + place.height);
    }
    await fresh.close();
  });

  test('a model that has gone from the browser gives its place, and its name, to the one that is loaded instead', async () => {
    await page.evaluate(() => {
      const key = 'parley.settings.1';
      const settings = JSON.parse(localStorage.getItem(key)!) as object;
      localStorage.setItem(key, JSON.stringify({ ...settings, models: { chat: 'local/gone' } }));
    });
    await page.reload();
    hold();
    await page.click('text=Load the model');
    await waitForState(page, 'chat', 'downloading');
    expect(await page.locator('.composer .place').innerText()).toMatch(/^parley-chat in this tab/);
  });

  test('on a phone the state of a download has room on the line that is there', async () => {
    await page.setViewportSize({ width: 360, height: 740 });
    const height = () => page.locator('.rail').evaluate((rail) => rail.getBoundingClientRect().height);
    const before = await height();
    hold();
    await page.click('text=Load the model');
    await waitForState(page, 'chat', 'downloading');
    await page.locator('.rail .state[data-task="chat"]').getByText('%').waitFor();
    expect(await height()).toBe(before);
  });

  test('a question that is asked while the model is loaded waits for it, and says so', async () => {
    hold();
    await page.click('text=Load the model');
    await waitForState(page, 'chat', 'downloading');
    await send(CAPITAL);
    await answer('waiting');
    expect(await textOf(page.locator('.message.assistant .content'))).toBe('Waiting for the model');
    server.intercept = undefined;
    await answer('done');
    expect(await textOf(page.locator('.message.assistant .markdown'))).toMatch(/Paris/);
  });

  test('speech that is asked for while its model is loaded is made once it is there', async () => {
    server.intercept = (path) => (path.endsWith('parley-speech/model.safetensors') ? 'hang' : undefined);
    await page.goto(`${server.url}#/speak`);
    await page.click('text=Load the model');
    await waitForState(page, 'speech', 'downloading');
    await page.fill('main textarea', 'Good morning.');
    await page.locator('main form button').click();
    await page.waitForSelector('.take[data-status="making"]');
    server.intercept = undefined;
    await page.waitForSelector('.take[data-status="done"]');
  });

  test('Esc gives the question up at once, and the model goes on loading', async () => {
    hold();
    await send(CAPITAL);
    await waitForState(page, 'chat', 'downloading');
    await page.keyboard.press('Escape');
    await answer('stopped');
    await waitForState(page, 'chat', 'downloading');
    expect(await page.locator('.composer button').last().innerText()).toBe('Send');
  });

  test('cancelling the load stops the question; nothing has failed', async () => {
    hold();
    await send(CAPITAL);
    await waitForState(page, 'chat', 'downloading');
    await page.getByRole('button', { name: 'Cancel' }).click();
    await answer('stopped');
    expect(await page.locator('.failure').count()).toBe(0);
  });

  test('a model that could not be fetched is said once, and one click brings the answer when the network is back', async () => {
    await context.setOffline(true);
    await send(CAPITAL);
    await waitForState(page, 'chat', 'failed');
    await answer('failed');
    expect(await page.getByText('could not be fetched').count()).toBe(1);
    await context.setOffline(false);
    await page.getByRole('button', { name: 'Try again' }).click();
    await answer('done');
    expect(await page.locator('.message').count()).toBe(2);
    expect(await textOf(page.locator('.message.assistant .markdown'))).toMatch(/Paris/);
  });

  test('a second tab that wants the model while the first one downloads it waits for it, and fetches nothing again', async () => {
    hold();
    await page.click('text=Load the model');
    await waitForState(page, 'chat', 'downloading');
    const second = await openPage(context, server.url);
    await second.fill('.composer textarea', CAPITAL);
    await second.press('.composer textarea', 'Enter');
    await waitForState(second, 'chat', 'elsewhere');
    await second.locator('.notice').getByText('perhaps in another tab').waitFor();
    await second.getByRole('button', { name: 'Cancel' }).click();
    await waitForState(second, 'chat', 'idle');
    await second.click('text=Load the model');
    await waitForState(second, 'chat', 'elsewhere');
    server.requests.length = 0;
    server.intercept = undefined;
    await waitForState(page, 'chat', 'ready');
    await waitForState(second, 'chat', 'ready');
    // The request that hung was answered, to the tab that had it.
    expect(server.requests.filter((path) => path.endsWith('parley-chat/model.safetensors'))).toEqual([]);
  });

  test('the profiler says why it could not be loaded, and measures what was chosen when it began', async () => {
    await page.goto(`${server.url}#/device`);
    const panel = page.getByRole('region', { name: 'Profiler' });
    const measure = async (): Promise<void> => {
      await panel.getByLabel('Task').selectOption('chat');
      await panel.getByRole('button', { name: 'Measure' }).click();
      await panel.getByLabel('Task').selectOption('speech');
    };
    server.intercept = (path) => (path.endsWith('parley-chat/model.safetensors') ? 'cut' : undefined);
    await measure();
    await expect.poll(() => panel.getByRole('alert').allInnerTexts()).toEqual([expect.stringMatching(/^The download of parley-chat/)]);
    server.intercept = undefined;
    await measure();
    const ended = panel
      .getByRole('alert')
      .or(panel.locator('table.profile tbody tr', { hasText: 'linear' }))
      .first();
    expect(await ended.innerText()).toMatch(/^linear/);
  });

  test('another question after such a failure loads the model again', async () => {
    await context.setOffline(true);
    await send(CAPITAL);
    await waitForState(page, 'chat', 'failed');
    await context.setOffline(false);
    await send(CAPITAL);
    await answer('done');
  });
});
