/** What the browser tests do with the page, in words. */
import { expect, vi } from 'vitest';
import { errors } from 'playwright-core';
import type { Browser, BrowserContext, Locator, Page } from 'playwright-core';

/** A context whose chat picks the likeliest token, because what it answers is compared; what the page remembers stays over a reload. */
export async function greedyContext(browser: Browser): Promise<BrowserContext> {
  const context = await browser.newContext();
  await context.addInitScript(() => {
    const key = 'parley.settings.1';
    if (localStorage.getItem(key) === null) localStorage.setItem(key, JSON.stringify({ chat: { temperature: 0 } }));
  });
  return context;
}

/** Opens the page and waits until it knows where it runs. */
export async function openPage(context: BrowserContext, url: string, route = 'chat'): Promise<Page> {
  const page = await context.newPage();
  // Against hangs, as the tests' own limits are.
  page.setDefaultTimeout(120_000);
  // A page that fails silently would look like one that is slow.
  if (process.env['PG_DEBUG']) page.on('console', (m) => console.log('console', m.text()));
  page.on('pageerror', (error) => console.error(`page error: ${error.message}`));
  await page.goto(`${url}#/${route}`);
  await page.waitForSelector('.rail .state');
  return page;
}

/** Shows another view, as a link does. */
export async function show(page: Page, route: string): Promise<void> {
  await page.evaluate((hash) => (location.hash = hash), `#/${route}`);
  await page.waitForSelector(`main.${route}`);
}

/** The file that the first button of these words downloads. */
export async function downloaded(page: Page, button: string): Promise<Buffer> {
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByText(button, { exact: true }).first().click()]);
  const chunks: Buffer[] = [];
  for await (const chunk of await file.createReadStream()) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/**
 * Waits for a task's state in the status rail, however slow the machine is; the test's own limit ends it. A long wait says what the page shows
 * instead, because a state that never comes would tell nothing else.
 */
export async function waitForState(page: Page, task: 'chat' | 'speech' | 'transcription', state: string): Promise<void> {
  const shown = page.locator(`.rail .state[data-task="${task}"]`);
  for (let told = ''; ;) {
    try {
      return await shown.and(page.locator(`[data-state="${state}"]`)).waitFor({ timeout: 20_000 });
    } catch (error) {
      if (!(error instanceof errors.TimeoutError)) throw error;
    }
    const seen = `${await shown.getAttribute('data-state')} ${(await page.locator('.notice').allInnerTexts()).join(' ')}`;
    if (seen !== told) console.error(`waiting for ${task} to be ${state}: ${(told = seen)}`);
  }
}

/** Sends a question and returns the finished answer's text. */
export async function ask(page: Page, question: string): Promise<string> {
  const before = await page.locator('.message').count();
  await page.fill('.composer textarea', question);
  await page.press('.composer textarea', 'Enter');
  const answer = page.locator('.message').nth(before + 1);
  await answer.and(page.locator('[data-status="done"], [data-status="failed"], [data-status="stopped"]')).waitFor({ timeout: 0 });
  // An answer that failed would otherwise be waited for until the test's limit.
  expect(await answer.getAttribute('data-status'), await answer.innerText()).toBe('done');
  return textOf(answer.locator('.markdown'));
}

/** The text of a part of a message that is on the screen. Messages have `content-visibility: auto`, under which text reads as empty until its first frame. */
export async function textOf(part: Locator): Promise<string> {
  const isShown = (): Promise<boolean> => part.evaluate((element) => element.checkVisibility({ contentVisibilityAuto: true }));
  // Not `expect.poll`: a hook may ask too.
  await vi.waitUntil(isShown, { timeout: 60_000 });
  return part.innerText();
}

/** Waits until a store holds so many records; with `status`, so many of that status. What the page shows as done is stored a little later. */
export async function stored(page: Page, store: string, count: number, status?: string): Promise<void> {
  const read = (name: string): Promise<{ readonly status?: string }[]> =>
    new Promise((resolve, reject) => {
      const opening = indexedDB.open(name === 'conversations' ? 'parley' : 'parley-work');
      opening.onerror = reject;
      opening.onsuccess = () => {
        const reading = opening.result.transaction(name).objectStore(name).getAll();
        reading.onsuccess = () => (opening.result.close(), resolve(reading.result));
      };
    });
  const found = async () => (await page.evaluate(read, store)).filter((record) => status === undefined || record.status === status).length;
  await expect.poll(found).toBe(count);
}

/**
 * Sends a question and returns once its answer is being written. One that ended before anybody looked, as a busy machine may let it, is asked for again. What else
 * came instead is in the message: a lost adapter, an answer that failed.
 */
export async function beginAnswer(page: Page, question: string): Promise<void> {
  const notice = page.locator('.document > .notice');
  for (let seen = ['done']; seen.join() === 'done';) {
    const before = await page.locator('.message').count();
    await page.fill('.composer textarea', question);
    await page.press('.composer textarea', 'Enter');
    const answer = page.locator('.message').nth(before + 1);
    await answer.and(page.locator(':not([data-status="waiting"])')).or(notice).first().waitFor({ timeout: 0 });
    seen = [(await answer.getAttribute('data-status')) ?? '', ...(await notice.allInnerTexts())];
    if (seen.join() !== 'done') expect(seen).toEqual(['writing']);
  }
}

interface TraceEvent {
  readonly name: string;
  readonly ph: string;
  readonly pid: number;
  readonly tid: number;
  /** Microseconds. */
  readonly ts: number;
  readonly args: { readonly name?: string; readonly chrome_mojo_event_info?: { readonly watcher_notify_interface_tag?: string } };
  readonly dur?: number;
  /** Processor time, microseconds. */
  readonly tdur?: number;
}

/**
 * Milliseconds of processor time that the longest task of the page's thread took while `act` went on. Not the wall time that
 * PerformanceObserver's longtask gives: on a machine that others use, that one counts their turns too. Tasks in which Chromium starts a worker's thread
 * are not the page's: no script runs in them, and where processors are busy one of them took 74 ms instead of 1.
 */
export async function longestTask(browser: Browser, page: Page, act: () => Promise<unknown>): Promise<number> {
  await browser.startTracing(page, { categories: ['toplevel', 'devtools.timeline', 'v8'] });
  await act();
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString()) as { readonly traceEvents: readonly TraceEvent[] };
  const threadOf = ({ pid, tid }: TraceEvent): string => `${pid} ${tid}`;
  const named = traceEvents.filter(({ name, args }) => name === 'thread_name' && args.name === 'CrRendererMain');
  const threads = new Set(named.map(threadOf));
  const tasks = traceEvents.filter((event) => event.ph === 'X' && event.name.endsWith('RunTask') && threads.has(threadOf(event)));
  const startsWorker = ({ args }: TraceEvent): boolean =>
    args.chrome_mojo_event_info?.watcher_notify_interface_tag === 'blink.mojom.DedicatedWorkerHostFactoryClient';
  const starts = traceEvents.filter(startsWorker);
  const isOwn = (task: TraceEvent): boolean =>
    !starts.some((start) => threadOf(start) === threadOf(task) && start.ts >= task.ts && start.ts <= task.ts + task.dur!);
  // Fewer would mean that the trace has another form than this reads.
  expect(tasks.filter(({ tdur }) => tdur !== undefined).length).toBeGreaterThan(50);
  const longest = tasks.filter(isOwn).reduce((most, task) => ((task.tdur ?? 0) > (most.tdur ?? 0) ? task : most));
  if (longest.tdur! > TOLD) console.log(`a task of ${inMs(longest)}: ${partsOf(longest, traceEvents).join(', ')}`);
  return longest.tdur! / 1000;
}

/** Processor time, microseconds, of a task whose parts are told: one that fails a test is rarely seen twice. */
const TOLD = 40_000;
const inMs = ({ tdur = 0 }: TraceEvent): string => `${(tdur / 1000).toFixed(1)} ms`;

/** What goes on in a task, the longest first. */
function partsOf(task: TraceEvent, events: readonly TraceEvent[]): string[] {
  const isPart = ({ pid, tid, ts }: TraceEvent): boolean =>
    pid === task.pid && tid === task.tid && ts >= task.ts && ts <= task.ts + task.dur!;
  const parts = events.filter((event) => event !== task && (event.tdur ?? 0) > 1000 && isPart(event));
  return parts.toSorted((a, b) => b.tdur! - a.tdur!).slice(0, 8).map((part) => `${part.name} ${inMs(part)}`); // prettier-ignore
}

/** Words of a text, lower case, without punctuation. */
export function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[a-z']+/g) ?? [];
}

/** Share of the expected words that were found, in order. */
export function wordsFound(expected: string, actual: string): number {
  const want = wordsOf(expected);
  const have = wordsOf(actual);
  let at = 0;
  let found = 0;
  for (const word of want) {
    const next = have.indexOf(word, at);
    if (next < 0) continue;
    found++;
    at = next + 1;
  }
  return found / want.length;
}

/** Fails when anything on the page can be reached but not named. */
export async function expectNamedControls(page: Page): Promise<void> {
  const unnamed = await page.evaluate(() => {
    const nameOf = (element: Element): string => {
      const labels = (element as HTMLInputElement).labels;
      const text = element.getAttribute('aria-label') ?? (labels?.length ? labels[0]!.textContent : element.textContent);
      return (text ?? '').trim();
    };
    const controls = [...document.querySelectorAll('button, a[href], input, textarea, select, [tabindex="0"]')];
    return controls.filter((element) => nameOf(element) === '').map((element) => element.outerHTML.slice(0, 120));
  });
  expect(unnamed).toEqual([]);
}
