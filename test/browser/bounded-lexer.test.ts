/** Markdown of answers that go round in a circle, as tokens. Without a browser. */
import { Lexer } from 'marked';
import type { Tokens } from 'marked';
import { describe, expect, test, vi } from 'vitest';
import { blocksOf } from '../../web/src/ui/bounded-lexer.ts';

describe('a line without an end', () => {
  /** The text that is shown of inline marks, and its line breaks. */
  const shown = (text: string): string => {
    const [paragraph] = blocksOf(text) as Tokens.Paragraph[];
    return paragraph!.tokens.map((token) => (token.type === 'br' ? '\n' : (token as Tokens.Text).text)).join('');
  };

  test.each(['_www.', '**a@b.', '_a@', '`---', '*的>'])(
    'is laid out in parts: of all of it the lexer would look through all, at each %s',
    (unit) => {
      const lexed = vi.spyOn(Lexer.prototype, 'inlineTokens');
      const text = unit.repeat(4000);
      const whole = shown(text);
      const longest = Math.max(...lexed.mock.calls.map(([part]) => part.length));
      lexed.mockRestore();
      expect(longest).toBeLessThanOrEqual(2000);
      // Some marks find another one.
      const withoutMarks = (marked: string): string => marked.replace(/[*_`]/g, '');
      expect(withoutMarks(whole)).toBe(withoutMarks(text));
    },
  );

  test('loses no character, no break and no mark that begins and ends in a line', () => {
    const line = `${'word '.repeat(60)}**strong** end.`;
    const lines = Array.from({ length: 20 }, () => line);
    expect(shown(lines.join('\n'))).toBe(lines.join('\n').replaceAll('**', ''));
    const sentences = Array.from({ length: 200 }, (_x, i) => `Sentence **${i}** is _here_.`).join(' ');
    expect(shown(sentences)).toBe(sentences.replace(/[*_]/g, ''));
    const faces = `a${'😀'.repeat(3000)}`;
    expect(shown(faces)).toBe(faces);
    // Of half a pair of surrogates it throws.
    const [paragraph] = blocksOf(faces) as Tokens.Paragraph[];
    for (const { raw } of paragraph!.tokens) expect(encodeURIComponent(raw)).not.toBe('');
  });
});
