/**
 * Takes a picture of every view of the playground at two widths, light and dark, with real answers, speech and a transcript in them:
 * `npx tsx test/tools/screenshots.ts [folder]` (default test/screenshots, which git ignores). For people to look at.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { ROOT, buildPlayground, launchChromium } from '../browser/chromium.ts';
import { ask, downloaded, openPage, show, waitForState } from '../browser/playground.ts';
import { serveFolder } from '../browser/static-server.ts';

const WIDTHS = [1280, 390] as const;
const SCHEMES = ['light', 'dark'] as const;
const MARKDOWN = [
  'Three things, with **weight** and `code`:',
  '1. a list,\n2. a [link](https://example.org),\n3. a table:',
  '| kernel | ms |\n|---|---:|\n| gemv | 0.42 |\n| rms_norm | 0.03 |',
  '```js\nfor (const token of answer) console.log(token);\n```',
  '> And a quotation to end with.',
].join('\n\n');

/** A conversation that shows what answers may hold. */
function exampleConversation(): string {
  const message = (role: string, text: string) => ({ id: role + text.length, role, text, status: 'done' });
  const messages = [message('user', 'Show me what you can print.'), message('assistant', MARKDOWN)];
  const conversation = { id: 'example', title: 'What an answer may hold', created: 1, updated: 1, system: '', messages };
  return JSON.stringify({ format: 'parley-conversations', version: 1, conversations: [conversation] });
}

/** Fills the views: two conversations, a spoken sentence, its transcript. Returns to the chat. */
async function fill(page: Page): Promise<void> {
  await page
    .locator('.plain-file input')
    .setInputFiles({ name: 'x.json', mimeType: 'application/json', buffer: Buffer.from(exampleConversation()) });
  await page.evaluate(() => document.querySelector<HTMLElement>('.conversations > button')!.click());
  await ask(page, 'What is the capital of France?');
  await ask(page, 'Tell me a short story about a fox.');
}

async function speakAndHear(page: Page): Promise<Buffer> {
  await show(page, 'speak');
  await page.fill('main textarea', 'Good morning. The train leaves at nine.');
  await page.locator('form button').first().click();
  await page.waitForSelector('.take[data-status="done"]', { timeout: 120_000 });
  return downloaded(page, 'Download WAV');
}

const folder = process.argv[2] ?? join(ROOT, 'test', 'screenshots');

async function main(): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const server = await serveFolder(buildPlayground('screenshots'));
  const browser = await launchChromium();
  try {
    const context = await browser.newContext({ viewport: { width: WIDTHS[0], height: 860 } });
    const page = await openPage(context, server.url);
    const shoot = async (name: string): Promise<void> => {
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: width > 800 ? 860 : 844 });
        for (const colorScheme of SCHEMES) {
          await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
          await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
          writeFileSync(join(folder, `${name}-${width}-${colorScheme}.png`), await page.screenshot());
        }
      }
      await page.setViewportSize({ width: WIDTHS[0], height: 860 });
    };
    await shoot('chat-empty');
    await fill(page);
    await shoot('chat');
    await page.locator('.conversations .title', { hasText: 'What an answer' }).click();
    await shoot('chat-markdown');
    const wav = await speakAndHear(page);
    await shoot('speak');
    await show(page, 'transcribe');
    await page.locator('.intake input').setInputFiles({ name: 'good-morning.wav', mimeType: 'audio/wav', buffer: wav });
    await page.waitForSelector('.transcript[data-status="done"]', { timeout: 120_000 });
    await shoot('transcribe');
    for (const view of ['models', 'device']) {
      await show(page, view);
      await shoot(view);
    }
    await page.keyboard.press('Control+k');
    await shoot('commands');
    await waitForState(page, 'chat', 'ready');
  } finally {
    await browser.close();
    await server.close();
  }
}

await main();
