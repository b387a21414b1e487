/** Chinese and Japanese text is cut into sentences and pieces like other text, once its punctuation is plain. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { openJapanese } from '../../engine/platform/lindera.ts';
import { cjkPhonemesAtMost, middleWordEnd, plainCjkPunctuation } from '../../engine/text/cjk-text.ts';
import { createJapanese } from '../../engine/text/japanese.ts';
import { loadMandarin } from '../../engine/text/mandarin.ts';
import { splitFirstClause, splitSentences } from '../../engine/text/speech-text.ts';
import { joinSpans } from '../../engine/text/spoken-spans.ts';
import type { SpokenSpan } from '../../engine/text/spoken-spans.ts';

const converters = { zh: await loadMandarin(), ja: createJapanese(await openJapanese()) } as const;
const length = (spans: readonly SpokenSpan[]): number => spans.reduce((sum, span) => sum + ('phonemes' in span ? span.phonemes.length : 0), 0); // prettier-ignore

function sentences(language: 'zh' | 'ja'): string[] {
  const path = new URL(`../fixtures/misaki-${language}.json`, import.meta.url);
  return (JSON.parse(readFileSync(path, 'utf8')) as { sentences: { text: string }[] }).sentences.map(({ text }) => text);
}

test.each([
  ['她说：“你好！”然后走了。「真的吗？」他问……是的。', '她说: “你好!” 然后走了. “真的吗?” 他问… 是的.'],
  ['彼は「本当？」と言った。『はい。』（笑）終わり！', '彼は “本当?” と言った. “はい.” (笑) 終わり!'],
  ['第一行。\n第二行：比分3：1。', '第一行.\n第二行: 比分3:1.'],
  ['《红楼梦》、【注】，测试——好', '“红楼梦”, “注”, 测试—好'],
  ['すごい〜！ロボット・アーム', 'すごい—! ロボット アーム'],
])('the punctuation of %s is %s', (text, plain) => {
  expect(plainCjkPunctuation(text)).toBe(plain);
  expect(plainCjkPunctuation(plain)).toBe(plain);
});

test('sentences and clauses end at full-width marks, behind closing quotes', () => {
  const texts = splitSentences(plainCjkPunctuation('他问：「真的吗？」我说是的。好！')).map(({ text }) => text);
  expect(texts).toEqual(['他问: “真的吗?”', '我说是的.', '好!']);
  const long = '这是一个很长的句子它的第一部分有三十个字左右所以可以先说出来听听，'.concat('后面的部分也很长'.repeat(6));
  expect(splitFirstClause(plainCjkPunctuation(long))?.[1]).toMatch(/^后面/);
});

test.each(['zh', 'ja'] as const)('no character of %s has more phonemes than is estimated', (language) => {
  const convert = converters[language];
  const atMost = (text: string): number => [...text].reduce((sum, character) => sum + (cjkPhonemesAtMost(character, language) ?? 2), 0); // prettier-ignore
  for (let code = 0x4e00; code < 0xa000; code++) {
    const character = String.fromCharCode(code);
    expect(length(convert(character)), character).toBeLessThan(cjkPhonemesAtMost(character, language)!);
  }
  for (const text of sentences(language)) expect(length(convert(text)), text).toBeLessThanOrEqual(atMost(text));
});

test('a text without spaces is halved between words', () => {
  expect(middleWordEnd('今天天气很好我们去公园散步吧', 'zh')).toBe(6);
  expect(middleWordEnd('好', 'zh')).toBeUndefined();
});

test('words of Latin letters are read among the others', async () => {
  const spans = converters.zh('他在GitHub、“Python”，好。');
  expect(await joinSpans(spans, async (latin) => latin.toUpperCase())).toBe('tʰa→ ʦai↘ GITHUB, “PYTHON”, xau↓.');
  expect(await joinSpans(converters.ja('GitHubを'), async (latin) => latin.toUpperCase())).toBe('GITHUB o');
});
