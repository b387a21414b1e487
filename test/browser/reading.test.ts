/** What is written is read as it is meant: in its own direction, its columns aligned, its code to be taken along, on small screens and in colours of the reader's own. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { FakeEngine } from '../support/fake-engine.ts';
import { findChromium } from './chromium.ts';
import { startFakeServers } from './fake-servers.ts';
import type { FakeServers } from './fake-servers.ts';
import { ask, openPage, textOf } from './playground.ts';

const CODE = 'if (a -> b) {\n  say("hi");\n}';

describe.skipIf(findChromium() === undefined)('reading', () => {
  const engine = new FakeEngine();
  let servers: FakeServers;
  let page: Page;

  beforeAll(async () => {
    servers = await startFakeServers('reading', engine);
    page = await openPage(await servers.context({ permissions: ['clipboard-read', 'clipboard-write'] }), servers.url);
  });
  afterAll(() => servers?.close());
  beforeEach(async () => {
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.locator('.conversations > button').first().click();
  });

  /** Asks, and gives the answer's box. */
  const answered = async (text: string, question = 'Hi') => {
    engine.options = { words: [text] };
    await ask(page, question);
    return page.locator('.message.assistant').last();
  };
  /** Ends of the first line of a box's text, and of the box itself. */
  const line = (selector: string) =>
    page
      .locator(selector)
      .last()
      .evaluate((element) => {
        const range = document.createRange();
        range.selectNodeContents(element);
        const [text, box] = [range.getClientRects()[0]!, element.getBoundingClientRect()];
        return { left: text.left - box.left, right: box.right - text.right };
      });

  test('Hebrew runs from the right, in questions, answers, lists, quotations and where it is typed; English beside it does not', async () => {
    await answered('פעם היה שועל.\n\n- אחד\n- שתיים\n\n> ציטוט\n\nAnd English.', 'ספר לי סיפור');
    expect((await line('.question')).right).toBeLessThan(1);
    expect((await line('.markdown > p >> nth=0')).right).toBeLessThan(1);
    expect((await line('.markdown > p >> nth=1')).left).toBeLessThan(1);
    const sides = (selector: string) =>
      page.locator(selector).evaluate((element) => {
        const { direction, borderRightWidth, paddingRight } = getComputedStyle(element);
        return { direction, border: parseFloat(borderRightWidth), padding: parseFloat(paddingRight) };
      });
    expect(await sides('.markdown ul')).toMatchObject({ direction: 'rtl', padding: expect.closeTo(20.4) as number });
    expect(await sides('.markdown blockquote')).toMatchObject({ direction: 'rtl', border: 1 });
    await page.fill('.composer textarea', 'שלום');
    expect(await page.locator('.composer textarea').evaluate((element) => getComputedStyle(element).direction)).toBe('rtl');
    await page.fill('.composer textarea', '');
  });

  test('columns of a table stand as the answer says', async () => {
    const answer = await answered('| a | b | c |\n|---|--:|:-:|\n| 1 | 2 | 3 |');
    const sides = await answer.locator('td').evaluateAll((cells) => cells.map((cell) => getComputedStyle(cell).textAlign));
    expect(sides).toEqual(['start', 'right', 'center']);
  });

  test('code is copied whole and shown as it is, and formulas keep their backslashes', async () => {
    const answer = await answered(`\`\`\`js\n${CODE}\n\`\`\`\n\nSo \\(a\\,b\\) and 2\\*3.`);
    await answer.locator('.code-block').getByRole('button', { name: 'Copy' }).click();
    await answer.locator('.code-block').getByText('Copied').waitFor();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(CODE);
    expect(await answer.locator('code').evaluate((element) => getComputedStyle(element).fontVariantLigatures)).toBe('none');
    expect(await textOf(answer.locator('.markdown > p'))).toBe('So \\(a\\,b\\) and 2*3.');
  });

  test.each(['> ', '1. ', '> - ', '>'])('an answer of nothing but "%s" is shown, and what follows it', async (mark) => {
    const marks = mark.repeat(3000);
    await answered(`Well:\n\n${marks}x`);
    expect((await textOf(page.locator('.message.assistant .markdown'))).replaceAll(/\s/g, '')).toMatch(/^Well:[\s\S]*x$/);
    expect(await answered('Sorry.').then((answer) => textOf(answer.locator('.markdown')))).toBe('Sorry.');
    await page.setViewportSize({ width: 320, height: 640 });
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(320);
  });

  test('a link is one once its address has come, and what is written before the end of an answer stays where it is', async () => {
    const items = Array.from({ length: 60 }, (_x, item) => `- item ${item} with some words\n`);
    engine.options = { words: ['See [here].\n\n', ...items, '\nEnd.\n\n', '[here]: https://example.org/\n'], holdAfter: 50 };
    await page.fill('.composer textarea', 'Hi');
    await page.press('.composer textarea', 'Enter');
    const written = page.locator('.message.assistant[data-status="writing"] .markdown');
    await written.locator('li').nth(40).waitFor({ state: 'attached' });
    const isLink = await written.evaluate((element) => {
      for (const item of [...element.querySelectorAll('li')].slice(0, 40)) item.dataset['seen'] = '';
      return element.querySelector('a') !== null;
    });
    expect(isLink).toBe(false);
    engine.release();
    const answer = page.locator('.message.assistant[data-status="done"] .markdown').last();
    await answer.waitFor();
    expect(await answer.locator('p > a').getAttribute('href')).toBe('https://example.org/');
    expect(await answer.locator('li').count()).toBe(60);
    expect(await answer.locator('li[data-seen]').count()).toBe(40);
  });

  test('the composer stands under the text it continues', async () => {
    const answer = await answered('Hello.');
    const left = (await answer.locator('.markdown').boundingBox())!.x;
    expect((await page.locator('.composer textarea').boundingBox())!.x).toBeCloseTo(left);
  });

  test('Esc leaves the editing of a question', async () => {
    await answered('Hello.');
    await page.locator('.message.user').getByRole('button', { name: 'Edit' }).focus();
    await page.keyboard.press('Enter');
    await page.getByLabel('Edit the question').press('Escape');
    expect(await page.locator('.editor').count()).toBe(0);
    expect(await page.locator('.question').innerText()).toBe('Hi');
  });

  test('a printed conversation is all of it, and nothing of the page around it', async () => {
    await answered('A line.\n\n'.repeat(100));
    await page.emulateMedia({ media: 'print' });
    const hidden = await page
      .locator('.dock, .side, .top, .rail, .actions')
      .evaluateAll((parts) => parts.filter((part) => part.checkVisibility()).length);
    expect(hidden).toBe(0);
    // On the screen the buttons of a question fill the gap below it, on paper nothing does.
    const [question, answer] = await page.locator('.message .content').evaluateAll((all) => all.map((one) => one.getBoundingClientRect()));
    expect(answer!.top - question!.bottom).toBeGreaterThan(8);
    const [last, all] = await page
      .locator('.markdown > p')
      .last()
      .evaluate((element) => [element.getBoundingClientRect().bottom + scrollY, document.documentElement.scrollHeight]);
    expect(last).toBeLessThanOrEqual(all);
    expect(all).toBeGreaterThan(3000);
    await page.emulateMedia({ media: 'screen' });
  });

  test('what scrolls on the screen is whole on paper: long lines of code and wide tables', async () => {
    const columns = Array.from({ length: 14 }, (_, i) => `Column${i}`);
    const answer = await answered(`\`\`\`\n${'word '.repeat(60)}\n\`\`\`\n\n| ${columns.join(' | ')} |\n|${'---|'.repeat(14)}\n`);
    await page.setViewportSize({ width: 794, height: 1123 });
    await page.emulateMedia({ media: 'print' });
    const cut = await answer.locator('pre, .scroll').evaluateAll((all) => all.map((one) => one.scrollWidth - one.clientWidth));
    expect(cut).toEqual([0, 0]);
    await page.emulateMedia({ media: 'screen' });
  });

  test('each Undo is in sight, however many there are and however long the names', async () => {
    for (const question of ['x'.repeat(48), 'One question more, of a length that is not unusual', 'Why is it so?']) {
      await page.locator('.conversations > button').first().click();
      await answered('Hello.', question);
    }
    for (let i = 0; i < 3; i++)
      await page
        .locator('.conversations')
        .getByRole('button', { name: /^Delete/ })
        .first()
        .click();
    const undo = page.locator('.undo button');
    expect(await undo.count()).toBeGreaterThan(2);
    await undo.last().evaluate((button) => (button.parentElement!.querySelector('.name')!.textContent = 'a name '.repeat(60)));
    for (const width of [390, 1280]) {
      await page.setViewportSize({ width, height: 800 });
      const boxes = await undo.evaluateAll((all) => all.map((one) => one.getBoundingClientRect()));
      for (const { left, right, bottom } of boxes) expect(left >= 0 && right <= width && bottom <= 800).toBe(true);
    }
    while ((await undo.count()) > 0) await undo.first().click();
  });

  test('a phone on its side shows more of the conversation than of the page around it', async () => {
    await answered('Hello.');
    await page.setViewportSize({ width: 740, height: 360 });
    expect((await page.locator('.scroller').boundingBox())!.height).toBeGreaterThan(180);
    for (const name of ['Send', 'Hold to talk']) expect(await page.getByRole('button', { name }).isVisible()).toBe(true);
  });

  test('at four times its size a page shows the conversation, and the whole of the field', async () => {
    await answered('Hello.');
    await page.setViewportSize({ width: 320, height: 256 });
    expect((await page.locator('.scroller').boundingBox())!.height).toBeGreaterThan(150);
    expect((await page.locator('.composer textarea').boundingBox())!.width).toBeGreaterThan(200);
    await page.getByRole('button', { name: 'Send' }).scrollIntoViewIfNeeded();
    const send = (await page.getByRole('button', { name: 'Send' }).boundingBox())!;
    expect(send.y + send.height).toBeLessThanOrEqual(256);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(320);
  });

  test('under a finger a conversation is opened without the keyboard', async () => {
    const phone = await servers.browser.newContext({ viewport: { width: 390, height: 700 }, hasTouch: true, isMobile: true });
    const opened = await openPage(phone, servers.url);
    const focused = (): Promise<string> => opened.evaluate(() => document.activeElement!.tagName);
    expect(await focused()).not.toBe('TEXTAREA');
    await opened.getByRole('button', { name: 'Conversations' }).tap();
    await opened.locator('.conversations .title').first().tap();
    await opened.locator('.side.left').waitFor({ state: 'hidden' });
    expect(await focused()).not.toBe('TEXTAREA');
    await phone.close();
  });

  test('a reader who scrolls up slowly while an answer is written stays where they are', async () => {
    engine.options = { words: Array.from({ length: 400 }, (_, i) => `Line ${i}.\n\n`), delay: 20 };
    await page.fill('.composer textarea', 'Hi');
    await page.press('.composer textarea', 'Enter');
    await page.waitForFunction(() => document.querySelector('.scroller')!.scrollTop > 100);
    /** Until two more lines are painted: the first may have come before the last move. */
    const grown = async (): Promise<void> => {
      const height = await page.locator('.scroller').evaluate((box) => box.scrollHeight);
      await page.waitForFunction((before) => document.querySelector('.scroller')!.scrollHeight > before + 60, height);
    };
    const up = (): Promise<number> => page.locator('.scroller').evaluate((box) => (box.scrollTop -= 8));
    const first = await up();
    for (let i = 0; i < 5; i++) {
      await grown();
      expect(await up()).toBe(first - 8 * (i + 1));
    }
    // Down again, it follows again.
    await page.locator('.scroller').evaluate((box) => (box.scrollTop = box.scrollHeight));
    await grown();
    await page.waitForFunction(() => {
      const box = document.querySelector('.scroller')!;
      return box.scrollHeight - box.scrollTop - box.clientHeight < 5;
    });
    await page.keyboard.press('Escape');
    await page.locator('.message.assistant[data-status="stopped"]').waitFor();
  });

  test('a pasted book is folded, and unfolds where its reading begins; on paper it is whole', async () => {
    const book = `It begins.\n${'Some words more. '.repeat(6000)}It ends.`;
    await answered('Long.', book);
    const message = page.locator('.message.user').last();
    const shown = (): Promise<string> => message.locator('.question').innerText();
    const height = async (): Promise<number> => (await message.boundingBox())!.height;
    expect(await shown()).toMatch(/^It begins/);
    expect((await shown()).length).toBeLessThan(700);
    expect(await height()).toBeLessThan(400);
    // The answer is in sight.
    const answer = (await page.locator('.message.assistant').last().boundingBox())!;
    expect(answer.y + answer.height).toBeLessThan((await page.locator('.composer').boundingBox())!.y);
    const all = message.getByRole('button', { name: `Show all ${book.length.toLocaleString('en')} characters` });
    expect(await all.getAttribute('aria-expanded')).toBe('false');
    await all.focus();
    await page.keyboard.press('Enter');
    await message.getByRole('button', { name: 'Show less', expanded: true }).waitFor();
    expect(await shown()).toBe(book);
    const [box, seen] = [(await page.locator('.scroller').boundingBox())!, message.getByRole('heading', { name: 'You' })];
    await expect.poll(async () => Math.abs((await seen.boundingBox())!.y - box.y)).toBeLessThan(60);
    expect(await seen.evaluate((heading) => heading === document.activeElement)).toBe(true);
    await message.getByRole('button', { name: 'Show less' }).click();
    expect(await height()).toBeLessThan(400);
    await page.emulateMedia({ media: 'print' });
    expect(await shown()).toBe(book);
    await page.emulateMedia({ media: 'screen' });
    // What is taken along is the whole of it.
    await message.hover();
    await message.getByRole('button', { name: 'Copy' }).click();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(book);
  });

  test.each([360, 390])('the line of the model is one line on a phone of %i px, however long its name is', async (width) => {
    await page.setViewportSize({ width, height: 800 });
    const place = page.locator('.composer .place');
    const lines = (await place.boundingBox())!.height / (await place.evaluate((line) => parseFloat(getComputedStyle(line).lineHeight)));
    expect(lines).toBeCloseTo(1, 1);
    // What is not seen is heard all the same.
    expect(await place.innerText()).toBe(`parley-chat on ${new URL(page.url()).host} · 1,024 tokens of context`);
    await place.locator('.name').evaluate((name) => (name.textContent = 'a-model-with-a-name-of-more-than-one-line-Q4_K_M'));
    const [line, part] = [(await place.boundingBox())!, (await place.locator('.part').first().boundingBox())!];
    expect(part.y).toBe(line.y);
    expect(part.x + part.width).toBeLessThanOrEqual(line.x + line.width);
    // The name gives way, the place does not.
    expect(await place.locator('.name').evaluate((name) => name.scrollWidth > name.clientWidth)).toBe(true);
    expect(part.height).toBeLessThanOrEqual(line.height + 1);
    await place.locator('.name').evaluate((name) => (name.textContent = 'parley-chat'));
  });

  test('a drawer says that it is open, and Esc closes it', async () => {
    await page.setViewportSize({ width: 390, height: 800 });
    await page.getByRole('button', { name: 'Settings' }).click();
    expect(await page.getByRole('button', { name: 'Close settings' }).getAttribute('aria-expanded')).toBe('true');
    await page.keyboard.press('Escape');
    expect(await page.getByRole('button', { name: 'Settings' }).getAttribute('aria-expanded')).toBe('false');
    expect(await page.locator('.side.right').isVisible()).toBe(false);
  });

  test('where the reader has colours of their own, what is chosen is seen', async () => {
    await page.emulateMedia({ forcedColors: 'active' });
    const colours = await page
      .locator('.where .segments label')
      .evaluateAll((labels) => labels.map((label) => getComputedStyle(label).backgroundColor));
    expect(new Set(colours).size).toBe(2);
    const sliders = await page
      .locator('input[type="range"]')
      .evaluateAll((inputs) => inputs.map((input) => getComputedStyle(input).appearance));
    expect(new Set(sliders)).toEqual(new Set(['auto']));
    await page.emulateMedia({ forcedColors: 'none' });
  });

  test('Enter that ends the composing of a word chooses no command', async () => {
    await page.keyboard.press('Control+k');
    const field = page.getByRole('combobox', { name: 'Find a command' });
    await field.dispatchEvent('keydown', { key: 'Enter', isComposing: true, bubbles: true, cancelable: true });
    expect(await field.isVisible()).toBe(true);
    await page.keyboard.press('Escape');
  });

  test('nor does it send the message, also where Safari says of it only that it was used', async () => {
    const field = page.locator('.composer textarea');
    await field.fill('にほん');
    for (const said of [{ isComposing: true }, { keyCode: 229 }]) {
      await field.dispatchEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true, ...said });
      expect(await field.inputValue()).toBe('にほん');
    }
    await field.fill('');
  });

  test('the list of commands follows the arrow keys, for eyes and for screen readers, and says when nothing is found', async () => {
    await page.focus('.composer textarea');
    await page.keyboard.press('Control+k');
    const field = page.getByRole('combobox', { name: 'Find a command' });
    for (let i = 0; i < 20; i++) await field.press('ArrowDown');
    const chosen = page.locator('[role="option"][aria-selected="true"]');
    expect(await chosen.getAttribute('id')).toBe(await field.getAttribute('aria-activedescendant'));
    const [list, option] = [(await page.locator('#commands').boundingBox())!, (await chosen.boundingBox())!];
    expect(option.y + option.height).toBeLessThanOrEqual(list.y + list.height + 1);
    await field.fill('no such thing');
    await page.getByText('Nothing has this name.').waitFor();
    await page.keyboard.press('Escape');
    expect(await page.evaluate(() => document.activeElement?.getAttribute('aria-label'))).toBe('Message');
  });

  test('a file that is dropped anywhere never takes the place of the page; where sound is heard it is taken', async () => {
    const drop = (): Promise<boolean> =>
      page.evaluate(() => {
        const dataTransfer = new DataTransfer();
        dataTransfer.items.add(new File(['no sound'], 'notes.txt'));
        return document.querySelector('.top')!.dispatchEvent(new DragEvent('drop', { dataTransfer, bubbles: true, cancelable: true }));
      });
    expect(await drop()).toBe(false);
    await page.getByRole('link', { name: 'Transcribe', exact: true }).click();
    await page.waitForSelector('.intake');
    expect(await drop()).toBe(false);
    await page.getByText(/^notes\.txt: this browser cannot read the file as sound; WAV/).waitFor();
    await page.getByRole('link', { name: 'Chat', exact: true }).click();
  });

  test('a text that is too long to be spoken says so and is not cut', async () => {
    await page.getByRole('link', { name: 'Speak', exact: true }).click();
    await page.getByLabel('Text').fill('a'.repeat(4100));
    await page.getByText('4,100 of 4,096 characters: too long').waitFor();
    expect(await page.getByRole('button', { name: 'Speak', exact: true }).isDisabled()).toBe(true);
    await page.getByLabel('Text').fill('a'.repeat(4096));
    expect(await page.getByRole('button', { name: 'Speak', exact: true }).isDisabled()).toBe(false);
    await page.getByRole('link', { name: 'Chat', exact: true }).click();
  });

  test('a browser without WebGPU is told why a server answers', async () => {
    await page.getByRole('heading', { name: 'Ask something.' }).waitFor();
    expect(await page.locator('.welcome').innerText()).toMatch(/offers no graphics adapter/);
  });
});
