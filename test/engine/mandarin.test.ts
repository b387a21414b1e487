/** Phonemes of Mandarin against misaki's (test/tools/dump_misaki_zh_ja.py), and how figures, symbols and foreign words are read. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { normalizeMandarin } from '../../engine/text/mandarin-numbers.ts';
import { syllablePhonemes } from '../../engine/text/mandarin-syllables.ts';
import { loadMandarin } from '../../engine/text/mandarin.ts';
import { differences } from '../support/edits.ts';

interface Golden {
  readonly sentences: readonly { readonly text: string; readonly misaki: string }[];
  readonly syllables: Readonly<Record<string, string>>;
}

const GOLDEN = JSON.parse(readFileSync(new URL('../fixtures/misaki-zh.json', import.meta.url), 'utf8')) as Golden;
const mandarin = await loadMandarin();
const read = (text: string): string => mandarin(text).map((span) => ('latin' in span ? `[${span.latin}]` : span.phonemes)).join(''); // prettier-ignore

/** Syllables without their tones and the spaces between words, and their tones. */
function syllables(phonemes: string): { readonly toneless: string[]; readonly tones: string[] } {
  const marked = phonemes.replace(/\s/g, '');
  return { toneless: [...marked.replace(/[→↗↓↘]/g, '')], tones: [...marked.replace(/[^→↗↓↘]/g, '')] };
}

test('every syllable is written as misaki writes it', () => {
  expect(Object.keys(GOLDEN.syllables).length).toBeGreaterThan(400);
  const written = Object.keys(GOLDEN.syllables).map((pinyin) => [pinyin, syllablePhonemes(`${pinyin}4`)]);
  expect(Object.fromEntries(written)).toEqual(GOLDEN.syllables);
  expect(['ma1', 'ma2', 'ma3', 'ma4', 'ma5', 'bing1'].map(syllablePhonemes)).toEqual(['ma→', 'ma↗', 'ma↓', 'ma↘', 'ma', 'pi→ŋ']);
});

test('300 sentences have the sounds and tones of misaki, but for one of a thousand, and most of its spaces', () => {
  let [sounds, wrongSounds, tones, wrongTones, symbols, wrongSymbols] = [0, 0, 0, 0, 0, 0];
  for (const { text, misaki } of GOLDEN.sentences) {
    const [ours, theirs] = [syllables(read(text)), syllables(misaki)];
    sounds += theirs.toneless.length;
    wrongSounds += differences(ours.toneless, theirs.toneless);
    tones += theirs.tones.length;
    wrongTones += differences(ours.tones, theirs.tones);
    symbols += misaki.length;
    wrongSymbols += differences([...read(text)], [...misaki.replace(/ +/g, ' ')]);
  }
  console.log(`sounds ${wrongSounds} of ${sounds}, tones ${wrongTones} of ${tones}, symbols with spaces ${wrongSymbols} of ${symbols}`);
  expect(GOLDEN.sentences).toHaveLength(300);
  expect(wrongSounds / sounds).toBeLessThanOrEqual(0.001);
  expect(wrongTones / tones).toBeLessThanOrEqual(0.001);
  // Spaces are at the words of the segmenter of the platform, and misaki's at jieba's.
  expect(wrongSymbols / symbols).toBeLessThanOrEqual(0.03);
});

test.each([
  ['2024年5月6日下午3:45', '二零二四年五月六日下午三点四十五分'],
  ['2023-12-31，1990-2000年', '二零二三年十二月三十一日，一九九零到二零零零年'],
  ['早上08:05到12:00，02:00睡觉', '早上八点零五分到十二点，两点睡觉'],
  ['我有2个苹果和2.5公斤香蕉，价格是¥12.5元。', '我有两个苹果和二点五公斤香蕉，价格是十二点五元。'],
  ['￥1,234.56万，$5，HK$20，€3', '一千二百三十四点五六万元，五美元，二十港元，三欧元'],
  ['电话是13812345678，或者010-12345678，请拨打120。', '电话是幺三八幺二三四五六七八，或者零幺零幺二三四五六七八，请拨打幺二零。'],
  ['50%的人，3.5‰，3/4的学生', '百分之五十的人，千分之三点五，四分之三的学生'],
  ['气温是-5℃到12°C，-3', '气温是零下五摄氏度到十二摄氏度，负三'],
  ['120km/h，100m²，5kg，6-10个', '每小时一百二十公里，一百平方米，五公斤，六到十个'],
  ['比分是3:1，1+1=2，300+人', '比分是三比一，一加一等于二，三百多人'],
  ['2楼第2个房间，2月2号，2天', '二楼第二个房间，二月二号，两天'],
  ['版本3.10.2，房间0305', '版本三点十点二，房间零三零五'],
  ['０，10，110，10010，105000，100000001', '零，十，一百一十，一万零一十，十万五千，一亿零一'],
  ['1020030040，1000000000000，12345678901234567890', '十亿二千零三万零四十，一万亿，一二三四五六七八九零一二三四五六七八九零'],
])('%s is read %s', (text, spoken) => {
  expect(normalizeMandarin(text)).toBe(spoken);
});

test('words of Latin letters are spans of their own', () => {
  expect(mandarin('他在GitHub上写Python代码，用的是A4纸。')).toEqual([
    { phonemes: 'tʰa→ ʦai↘' },
    { latin: 'GitHub' },
    { phonemes: 'ʂa↘ŋ ɕje↓' },
    { latin: 'Python' },
    { phonemes: 'tai↘ma↓, jʊ↘ŋ tɤʂɨ↘' },
    { latin: 'A' },
    { phonemes: 'sɨ↘ ꭧɨ↓.' },
  ]);
  expect(mandarin('I love 北京')).toEqual([{ latin: 'I love' }, { phonemes: ' pei↓ʨi→ŋ' }]);
});

test('punctuation becomes that of the alphabet, and unknown characters are silent', () => {
  expect(read('「你好」，她说：《再见》（真的）……')).toBe('“ni↓xau↓”, tʰa→ ʂwo→: “ʦai↘ʨjɛ↘n” (ꭧə→n tɤ)…');
  expect(read('𠀀')).not.toMatch(/[→↗↓↘]/);
  expect(read('')).toBe('');
});
