/** Markdown that is written bit by bit has the tokens of the whole at every moment, and little of it is lexed again. Without a browser. */
import { Lexer } from 'marked';
import type { Token, Tokens } from 'marked';
import { describe, expect, test, vi } from 'vitest';
import { blocksOf } from '../../web/src/ui/bounded-lexer.ts';
import { GrowingMarkdown } from '../../web/src/ui/growing-markdown.ts';

/** Numbers from 0 to 1 that are the same every time. */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Lines that begin, go on with, end or change each other's blocks. */
const LINES = [
  ...['', '', '', '', ' ', '   ', '\t', '\u00A0', 'a\u2028b', '    ', '      x'],
  ...['word', 'two words', '  indented', '    code', '\tcode', 'a **b** `c`', '**a', 'b**', 'a\\', 'a  ', 'end.', '"title"', "'t", '"t', 't")', '(t'],
  ...['# H', '## H ##', '#no', '===', '---', '--', '- - -', '***', '___', '=', '-', '+', '*', '1.', '2)'],
  ...['- a', '- b', '* a', '+ a', '-\ta', '1. a', '2. b', '3) c', '10. d', '  - n', '   - n', '     - n', '    1. n', ' - a', '- [ ] t', '- [x] t', '- # h', '- > q'],
  ...['- ```', '  ```', '-     code', '- | a | b |', '  |---|---|', '  - - x', '  more', '   more'],
  ...['> q', '>', '> - a', '> ---', '> > n', '>> n', '> ```', '> [a]: /q', '> # h', '> | a | b |', '> |---|---|'],
  ...['```', '```js', '~~~', '~~~~', '``', '  ```', '````', '```a`b'],
  ...['| a | b |', '|---|---|', '| 1 | 2 |', 'a | b', '--|--', ':---', '---|', '| 1 \\| 2 | [a] |', '|', '| [b] |', '|---|'],
  ...['[a]', '[b][a]', '[c][]', '![a]', '[A ] and [1]', '[foo', 'bar]', 'bar]: /x', '[a]: /a', '[a]: /b "t"', '[b]: <x y>', '[1]: /1', '[c]:', '/c', '[c]: /c "t', '  [a]: /i', '[foo bar]: /f', '[foo', '\\[a]', '- [b]: /l', '[`a]`', '[^1]', '[^1]: note'],
  ...['<div>', '</div>', '<b>', '<!--', '-->', '<?php', '?>', '<pre>', '</pre>', '<script>', '</script>', '<a href="x">', '</a>', '<!X', '<br>', 'x <kbd> y', '<x-y>'],
  ...['https://example.org/a', 'www.example.org', '&amp; &#35;', '\\( x \\)', '$$', '\\[', '\\]'],
]; // prettier-ignore

/** A text of such lines, of which some kinds are more frequent than others, with several kinds of line ends. */
function randomText(random: () => number, lines: number): string {
  const some = Array.from({ length: 3 + Math.floor(random() * 12) }, () => LINES[Math.floor(random() * LINES.length)]!);
  const end = random() < 0.1 ? '\r\n' : random() < 0.05 ? '\r' : '\n';
  const blank = random() * 0.5;
  let text = '';
  for (let line = 0; line < lines; line++) {
    const from = random() < 0.15 ? LINES : some;
    text += (random() < blank ? '' : from[Math.floor(random() * from.length)]!) + (random() < 0.02 ? '\n' : end);
  }
  return text;
}

/** Cuts a text at random, often within lines. */
function randomPieces(random: () => number, text: string): string[] {
  const longest = 1 + Math.floor(random() * 30);
  const pieces: string[] = [];
  for (let at = 0; at < text.length; at += pieces.at(-1)!.length) pieces.push(text.slice(at, at + 1 + Math.floor(random() * longest)));
  return pieces;
}

/** Compares at every moment. */
function expectSame(pieces: readonly string[], long?: number): void {
  const growing = new GrowingMarkdown(long);
  let text = '';
  for (const piece of pieces) {
    text += piece;
    const blocks = growing.grow(text);
    if (JSON.stringify(blocks) !== JSON.stringify(blocksOf(text))) expect(blocks, JSON.stringify(text)).toEqual(blocksOf(text));
  }
}

/** Repeats something up to a length. */
function filled(unit: (index: number) => string, { begin = '', length = 40_000 } = {}): string {
  let text = begin;
  for (let index = 0; text.length < length; index++) text += unit(index);
  return text;
}

/** The most characters that are lexed for one piece of a text that comes in pieces of 40, and the blocks at the end. */
function grown(text: string): { most: number; blocks: readonly Token[] } {
  const lexed = vi.spyOn(Lexer.prototype, 'lex');
  const growing = new GrowingMarkdown();
  let most = 0;
  let blocks: readonly Token[] = [];
  for (let at = 40; at < text.length + 40; at += 40) {
    lexed.mockClear();
    blocks = growing.grow(text.slice(0, at))!;
    most = Math.max(
      most,
      lexed.mock.calls.reduce((sum, [source]) => sum + source.length, 0),
    );
  }
  lexed.mockRestore();
  return { most, blocks };
}

const MIXED = (index: number): string =>
  `## Part ${index}\n\nA **paragraph** here,\nof two lines.\n- an item\n- another\n\n  and its text\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n` +
  `Then code:\n\`\`\`js\nfor (;;) {}\n\n\n\`\`\`\n1. one\n2. two\n\n> A quotation,\nand more.\n\nUnderlined\n---\n\n    indented\n\n<div>\nx\n</div>\n\n`;
/** Texts that are one block. */
const OPEN: Readonly<Record<string, string>> = {
  'a table': filled((index) => `| ${index} | **b** | [c] |\n`, { begin: 'So:\n| a | b | c |\n|---|---|---|\n' }),
  'a list': filled((index) => `- item **${index}**\n  - inner\n`),
  'a list with blank lines': filled((index) => `- [ ] item ${index}\n\n  goes on\n\n`),
  code: filled((index) => `  const x${index} = [a];\n\n`, { begin: '  ```js\n' }),
};

describe('a text that grows', () => {
  test.each([0, 40, 1000])('has the blocks of the whole at every moment, open blocks being divided from %i characters', (long) => {
    for (let seed = 0; seed < 1500; seed++) {
      const random = randomNumbers(seed);
      expectSame(randomPieces(random, randomText(random, 1 + Math.floor(random() * 25))), long);
    }
  });

  test.each([
    '- a\n- b\n   \n\n\u00A0\n- c\n\nx\n',
    '    code\nend\n<b>\n---|\n<b>\n<b>\n',
    '--|--\n[c]: /c "t\n--|--\n> q\n- a\n--|--\n"\n',
    'A\n-\tb\n===\n',
  ])('has them where a line changes what came before: %j', (text) => expectSame([...text], 0));

  test.each(Object.keys(OPEN))('is %s of any length, and what follows it', (name) => {
    const text = OPEN[name]!.slice(0, 4000);
    const end = name === 'code' ? '```\n' : '\n';
    const random = randomNumbers(1);
    for (const more of ['', `${end}after\n\nit`, `${end}- [a]\n* [b]\n\n[a]: /x\n\n[c]: /c\n`])
      expectSame(randomPieces(random, `${text}\n${more}`));
  });

  test('is lexed block by block', () => {
    const { most, blocks } = grown(filled(MIXED));
    expect(most).toBeLessThan(1000);
    expect(blocks.length).toBeGreaterThan(1000);
  });

  test.each(Object.keys(OPEN))('is lexed bit by bit where it is %s', (name) => {
    const { most, blocks } = grown(OPEN[name]!);
    expect(most).toBeLessThan(2500);
    expect(blocks.length).toBeLessThan(3);
  });

  test('has links whose addresses come last, of which each changes only what it is for', () => {
    const text = filled((index) => `Words of [${index}][].\n\n`) + filled((index) => `[${index}]: https://example.org/${index}\n`);
    const { most, blocks } = grown(text);
    expect(most).toBeLessThan(1000);
    expect(blocks).toEqual(blocksOf(text));
    expect((blocks[0] as Tokens.Paragraph).tokens[1]).toMatchObject({ type: 'link', href: 'https://example.org/0' });
  });

  test('keeps its blocks, and the rows, items and lines of an open one', () => {
    const growing = new GrowingMarkdown();
    const [first] = growing.grow('One.\n\n- two')!;
    expect(growing.grow('One.\n\n- two\n- three')![0]).toBe(first);
    const begin = OPEN['a list']!.slice(0, 3000).trimEnd();
    const before = (new GrowingMarkdown().grow(begin)![0] as Tokens.List).items.length;
    const list = new GrowingMarkdown();
    const item = (list.grow(begin)![0] as Tokens.List).items[3];
    const after = list.grow(`${begin}\n- last`)![0] as Tokens.List;
    expect(after.items.length).toBeGreaterThan(before);
    expect(after.items[3]).toBe(item);
  });

  test('is not taken for another text', () => {
    const growing = new GrowingMarkdown();
    growing.grow('One.\n\nTwo.');
    expect(growing.grow('One.')).toBeUndefined();
  });

  test('has no definition that takes back the blocks behind it, and no tag that spoils the links of other blocks', () => {
    expect(blocksOf('[a]: /x\n"title\n\n# H\n\n"').map(({ type }) => type)).toEqual([
      'def',
      'paragraph',
      'space',
      'heading',
      'space',
      'paragraph',
    ]);
    const last = blocksOf('An <a href="x"> here.\n\nwww.example.org').at(-1) as Tokens.Paragraph;
    expect(last.tokens[0]!.type).toBe('link');
  });
});
