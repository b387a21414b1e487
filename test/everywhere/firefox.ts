/** Firefox, driven over WebDriver BiDi, and what its tests do with the page, in words. */
import puppeteer from 'puppeteer-core';
import type { Browser, ElementHandle, Page } from 'puppeteer-core';
import { findFirefox, firefoxEnvironment } from '../setup-browsers.mjs';
import { SHORT_VECTORS } from '../support/drivers.ts';

export { findFirefox };

/** What Firefox 153 on Linux wants before it offers WebGPU, software adapters and workers with WebGPU. */
const PREFERENCES = { 'dom.webgpu.enabled': true, 'gfx.webgpu.ignore-blocklist': true, 'dom.webgpu.workers.enabled': true };

/** A headless Firefox on the graphics driver that Node has. */
export async function launchFirefox(): Promise<Browser> {
  const executablePath = findFirefox()!;
  return puppeteer.launch({
    browser: 'firefox',
    executablePath,
    headless: true,
    env: { ...firefoxEnvironment(executablePath), ...SHORT_VECTORS },
    extraPrefsFirefox: PREFERENCES,
    // Against hangs, as the tests' own limits are.
    protocolTimeout: 300_000,
  });
}

/** A page whose chat picks the likeliest token; what goes wrong in it is added to `problems`. */
export async function openPage(browser: Pick<Browser, 'newPage'>, url: string, problems: string[]): Promise<Page> {
  const page = await browser.newPage();
  page.setDefaultTimeout(300_000);
  page.on('console', (message) => void (message.type() === 'error' && problems.push(message.text())));
  page.on('pageerror', (error) => void problems.push(String(error)));
  await page.evaluateOnNewDocument(() => {
    // The blank page before the first has no storage.
    if (!location.protocol.startsWith('http')) return;
    const key = 'parley.settings.1';
    if (localStorage.getItem(key) === null) localStorage.setItem(key, JSON.stringify({ chat: { temperature: 0 } }));
  });
  // One in the background draws nothing, and what is not drawn does not go on.
  await page.bringToFront();
  await page.goto(url);
  await page.waitForSelector('.rail .state');
  return page;
}

/** Shows another view. */
export async function show(page: Page, route: string): Promise<void> {
  await page.evaluate((hash) => void (location.hash = hash), `#/${route}`);
  await page.waitForSelector(`main .${route}, main.${route}`);
}

/** Clicks the first control of the selector that says this, once it is there. */
export async function click(page: Page, selector: string, text: string): Promise<void> {
  const press = (within: string, said: string): boolean => {
    const found = [...document.querySelectorAll<HTMLElement>(within)].find((element) => element.innerText.startsWith(said));
    found?.click();
    return found !== undefined;
  };
  await page.waitForFunction(press, {}, selector, text);
}

/** Gives files to an input. */
export async function upload(input: ElementHandle | null, ...paths: string[]): Promise<void> {
  await (input as ElementHandle<HTMLInputElement>).uploadFile(...paths);
}

export async function waitForState(page: Page, task: 'chat' | 'speech' | 'transcription', state: string): Promise<void> {
  await page.waitForSelector(`.rail .state[data-task="${task}"][data-state="${state}"]`);
}

/** Sends a question and returns the finished answer's text. */
export async function ask(page: Page, question: string): Promise<string> {
  const before = (await page.$$('.message')).length;
  await page.locator('.composer textarea').fill(question);
  await page.focus('.composer textarea');
  await page.keyboard.press('Enter');
  const answer = await page.waitForFunction((at) => {
    const message = document.querySelectorAll<HTMLElement>('.message')[at];
    const status = message?.dataset['status'];
    if (status === 'done') return { text: message!.querySelector<HTMLElement>('.markdown')!.innerText };
    return status === 'failed' || status === 'stopped' ? { problem: message!.innerText } : undefined;
  }, {}, before + 1); // prettier-ignore
  const { text, problem } = (await answer.jsonValue()) as { readonly text?: string; readonly problem?: string };
  if (text === undefined) throw new Error(`the answer failed: ${problem}`);
  return text;
}

/** What the Device page's button copies. */
export async function copyReport(page: Page): Promise<string> {
  await page.evaluate(() => {
    // A page without a person's click may not write to the clipboard.
    navigator.clipboard.writeText = async (text) => void Object.assign(globalThis, { copied: text });
  });
  await click(page, 'main button', 'Copy report');
  const copied = await page.waitForFunction(() => (globalThis as { copied?: string }).copied);
  return (await copied.jsonValue())!;
}
