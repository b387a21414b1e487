/**
 * Every view with content in it, light and dark, wide and narrow: axe-core finds no serious or critical violation, and the Tab key alone visits every
 * control, visibly.
 */
import axe from 'axe-core';
import type { AxeResults } from 'axe-core';
import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FakeEngine } from '../support/fake-engine.ts';
import { wavFile } from '../support/wav-file.ts';
import { findChromium } from './chromium.ts';
import { startFakeServers } from './fake-servers.ts';
import type { FakeServers } from './fake-servers.ts';
import { ask, openPage } from './playground.ts';

const ANSWER =
  'Some **bold** words, `code`, a [link](https://example.org) and\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```js\nlet x;\n```\n\n- one\n- two';

/** What brings content into a view. */
const VIEWS: readonly (readonly [string, (page: Page) => Promise<unknown>])[] = [
  ['chat', (page) => ask(page, 'Hi')],
  [
    'speak',
    async (page) => {
      await page.fill('main textarea', 'One. Two.');
      await page.locator('main form button').click();
      await page.waitForSelector('.take[data-status="done"]');
      // While it is heard, the rail has a button more.
      await page.getByText('Stop the sound').waitFor({ state: 'detached' });
    },
  ],
  [
    'transcribe',
    async (page) => {
      const samples = Float32Array.from({ length: 32000 }, (_, i) => 0.3 * Math.sin(i / 20));
      const buffer = Buffer.from(wavFile(samples, { encoding: 's16', sampleRate: 16000 }));
      await page.locator('.intake input').setInputFiles({ name: 'two.wav', mimeType: 'audio/wav', buffer });
      await page.waitForSelector('.transcript[data-status="done"]');
    },
  ],
  ['models', (page) => page.waitForSelector('.model')],
  ['device', (page) => page.waitForSelector('main.device h2')],
];
const LOOKS = [
  { scheme: 'light', width: 1280 },
  { scheme: 'dark', width: 1280 },
  { scheme: 'light', width: 390 },
  { scheme: 'dark', width: 390 },
  { scheme: 'light', width: 320 },
] as const;

describe.skipIf(findChromium() === undefined)('accessibility', () => {
  const engine = new FakeEngine();
  let servers: FakeServers;

  beforeAll(async () => {
    engine.options = { words: ANSWER.split(/(?<= )/) };
    servers = await startFakeServers('axe', engine, { webgpu: true });
  });
  afterAll(() => servers?.close());

  const open = async (route: string, { scheme, width }: (typeof LOOKS)[number]): Promise<{ context: BrowserContext; page: Page }> => {
    const context = await servers.context({ colorScheme: scheme, viewport: { width, height: 800 }, reducedMotion: 'reduce' });
    const page = await openPage(context, servers.url, route);
    await page.waitForSelector(`main.${route}`);
    return { context, page };
  };

  describe.each(VIEWS)('%s', (route, fill) => {
    let context: BrowserContext;
    let page: Page;
    beforeAll(async () => {
      ({ context, page } = await open(route, LOOKS[0]));
      await fill(page);
    });
    afterAll(() => context?.close());

    test.each(LOOKS)('$scheme, $width px', async ({ scheme, width }) => {
      await page.emulateMedia({ colorScheme: scheme });
      await page.setViewportSize({ width, height: 800 });
      expect(await violations(page)).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
    });

    test('Tab visits every control, in order, and shows where it is', async () => {
      await page.setViewportSize({ width: LOOKS[0].width, height: 800 });
      const expected = await page.evaluate(markTabStops);
      expect(expected.length).toBeGreaterThan(8);
      // From wherever the focus is, through the browser's own bars, to the first stop.
      const next = async (): Promise<[string, boolean]> => {
        await page.keyboard.press('Tab');
        return page.evaluate(focusedStop);
      };
      let [stop, isSeen] = await next();
      for (let i = 0; stop !== expected[0] && i < expected.length + 2; i++) [stop, isSeen] = await next();
      const visited: string[] = [];
      const invisible: string[] = [];
      for (let i = 0; i < expected.length; i++) {
        visited.push(stop);
        if (!isSeen) invisible.push(stop);
        [stop, isSeen] = await next();
      }
      expect(visited).toEqual(expected);
      expect(invisible).toEqual([]);
    });
  });

  test.each(['light', 'dark'] as const)('the command list and a message being edited, %s', async (scheme) => {
    const { context, page } = await open('chat', { scheme, width: 1280 });
    await ask(page, 'Hi');
    await page.locator('.message.user').getByText('Edit').click();
    await page.waitForSelector('.editor textarea');
    expect(await violations(page)).toEqual([]);
    await page.keyboard.press('Control+k');
    await page.waitForSelector('dialog[open]');
    expect(await violations(page)).toEqual([]);
    await context.close();
  });
});

/** Serious and critical violations, with the first element of each. */
async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const results = await page.evaluate(() => (globalThis as unknown as { axe: { run(): Promise<AxeResults> } }).axe.run());
  const bad = results.violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  return bad.map(
    ({ id, impact, nodes }) => `${impact} ${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join('\n')}`,
  );
}

/** Names every element that Tab should reach, in order of the document; a radio group is one stop. Runs in the page. */
function markTabStops(): string[] {
  const candidates = 'a[href], button, input, select, textarea, summary, [tabindex="0"], [contenteditable]:not([contenteditable="false"])';
  const groups = new Set<string>();
  const stops: string[] = [];
  for (const element of document.querySelectorAll<HTMLElement>(candidates)) {
    const input = element as HTMLInputElement;
    if (
      input.disabled ||
      (element.tabIndex < 0 && !element.isContentEditable) ||
      !element.checkVisibility({ visibilityProperty: true }) ||
      element.closest('[inert]')
    )
      continue;
    if (input.type === 'radio') {
      const group = [...document.querySelectorAll<HTMLInputElement>(`input[type="radio"][name="${input.name}"]`)];
      if (groups.has(input.name) || (group.some((radio) => radio.checked) && !input.checked)) continue;
      groups.add(input.name);
    }
    const name = `${stops.length} ${element.tagName} ${(element.getAttribute('aria-label') ?? element.textContent ?? '').trim().slice(0, 30)}`;
    element.dataset['stop'] = name;
    stops.push(name);
  }
  return stops;
}

/** The stop that has the focus, and whether an outline shows it, its own or its label's (hidden inputs). Runs in the page. */
function focusedStop(): [string, boolean] {
  const element = document.activeElement as HTMLElement;
  const shown = [element, element.closest('label'), element.nextElementSibling, element.parentElement];
  const isSeen = shown.some((part) => {
    const style = part && getComputedStyle(part);
    return style && ((style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1) || style.boxShadow !== 'none');
  });
  return [element.dataset['stop'] ?? `unexpected ${element.outerHTML.slice(0, 80)}`, Boolean(isSeen)];
}
