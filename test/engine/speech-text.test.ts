import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parseKokoroConfig } from '../../engine/models/kokoro/config.ts';
import { Phonemizer } from '../../engine/text/phonemizer.ts';
import { englishOnly, parsePhonemeRules } from '../../engine/text/phonemes.ts';
import { halveText, normalizeText, phonemesAtMost, splitFirstClause, splitSentences } from '../../engine/text/speech-text.ts';
import { ONLY_ESPEAK } from '../support/espeak.ts';
import { marksSortedTogether } from '../support/normalizing.ts';

const read = (path: string): unknown => JSON.parse(readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8'));

describe('normalizeText spells out', () => {
  test.each([
    ['Dr. Smith met Mr. Jones.', 'Doctor Smith met Mister Jones.'],
    ['Mrs. Lee lives on Main St. now.', 'Missus Lee lives on Main Street now.'],
    ['It costs $5.50, not $1.', 'It costs 5 dollars and 50 cents, not 1 dollar.'],
    ['A $3.2 million deal for £0.99', 'A 3 point 2 million dollars deal for 99 pence'],
    ['$1,250,000', '1250000 dollars'],
    ['At 12:00 and 9:05 pm and 7:30.', "At 12 o'clock and 9 oh 5 PM and 7 30."],
    ['Open 9am-5pm', 'Open 9 AM to 5 PM'],
    ['In 1984 and 2024, not 2005.', 'In 19 84 and 20 24, not 2005.'],
    ['the 1980s and 1905', 'the 19 eighties and 19 oh 5'],
    ['on 2024-03-09', 'on March 9, 20 24'],
    ['pi is 3.14159', 'pi is 3 point 1 4 1 5 9'],
    ['1,234,567 people', '1234567 people'],
    ['pages 10-12', 'pages 10 to 12'],
    ['-5°C outside, 20 km away at 1 km', 'minus 5 degrees Celsius outside, 20 kilometers away at 1 kilometer'],
    ['R&D grew 12%', 'R and D grew 12 percent'],
    ['I live in the U.S. He lives in the U.K. They met in D.C.', 'I live in the US. He lives in the UK. They met in DC.'],
    ['The U.S. Army of the U.S.A. ', 'The US Army of the USA.'],
    ['e.g. the U.S. economy', 'for example, the US economy'],
    ['“Curly” ‘quotes’ — and… more...', "“Curly” 'quotes' — and… more…"],
    ['Call 555-1234 now', 'Call 5 5 5, 1 2 3 4 now'],
    ['on Jan. 5th, version 1.2.3', 'on January 5th, version 1 point 2 point 3'],
    ['the 80s, 3/4 cup, a Ph.D.', 'the eighties, 3 quarters cup, a PhD.'],
    ['See https://example.com/a?b=1 or me@x.org.', 'See example dot com slash a question mark b equals 1 or me at x dot org.'],
    ['no space.Here,or there', 'no space. Here, or there'],
    ['9 Main St., then 5\'10"', '9 Main Street, then 5 foot 10'],
    ['plain words stay as they are', 'plain words stay as they are'],
  ])('%s', (written, spoken) => {
    expect(normalizeText(written)).toBe(spoken);
  });
});

/** What is written, and what a person reads aloud, group by group; figures that espeak-ng reads as people do stay figures. */
const groups = readFileSync(new URL('../fixtures/speech-text/cases.tsv', import.meta.url), 'utf8')
  .split(/^# (?=[^\t\n]*$)/m)
  .slice(1)
  .map((group) => group.split('\n'))
  .map(([name, ...lines]) => [name!, lines.filter((line) => line !== '').map((line) => line.split('\t') as [string, string])] as const);

describe('text is read as people read it', () => {
  test.each(groups)('%s', (_, cases) => {
    expect(cases.length).toBeGreaterThan(4);
    expect(cases.map(([written]) => [written, normalizeText(written)])).toEqual(cases);
  });

  test('in 300 cases', () => {
    expect(groups.reduce((sum, [, cases]) => sum + cases.length, 0)).toBeGreaterThanOrEqual(300);
  });

  test('however long it is', () => {
    // Each would take minutes if a pattern looked at its beginnings again and again.
    for (const part of ['[', '![a](', '*', '*a', '_', '`', '|', '1/', '1 1/', '$1-', '0', '1.', 'I', 'Part I', 'a_', '<', 'Mon, '])
      expect(normalizeText(part.repeat(10_000 / part.length)).length).toBeLessThan(100_000);
    // And these a quarter of an hour together.
    for (const part of ['\n ', 'a-', '3-4-', '[', '1', '-|', '<!--', '<b ', '1h1m ', '111,', '1.', '$1/a ', '\\['])
      expect(normalizeText(`${part.repeat(300_000 / part.length)}x`)).toMatch(/x$/);
  });
});

describe('splitSentences', () => {
  test('ends at . ! ? … and at line breaks, not at initials', () => {
    const texts = splitSentences('One. Two! "Three?" Four… J. R. Smith came.\nNew line').map((s) => s.text);
    expect(texts).toEqual(['One.', 'Two!', '"Three?"', 'Four…', 'J. R. Smith came.', 'New line']);
  });

  test('at initials of any alphabet, and behind words that end in a letter with a mark', () => {
    const texts = splitSentences('Vino É. Zola. Es un PAÍS. Luego se fue.').map((s) => s.text);
    expect(texts).toEqual(['Vino É. Zola.', 'Es un PAÍS.', 'Luego se fue.']);
  });

  test('of Chinese and Japanese, behind full-width marks', () => {
    const texts = (text: string, language: 'ja' | 'zh') => splitSentences(normalizeText(text, language)).map((s) => s.text);
    expect(texts('你好。今天天气很好！**我们**去公园吧？「好」', 'zh')).toEqual(['你好.', '今天天气很好!', '我们去公园吧?', '“好”']);
    expect(texts('はい。価格は3.5円です、そうですか。', 'ja')).toEqual(['はい.', '価格は3.5円です, そうですか.']);
  });

  test('marks paragraphs', () => {
    expect(splitSentences('A b. C d.\n\nE f.').map((s) => s.endsParagraph)).toEqual([false, true, true]);
  });
});

test('Chinese is halved at a word, and its first clause is as long as one of English', () => {
  expect(halveText('今天天气很好我们去公园', 'zh')).toEqual(['今天天气很好', '我们去公园']);
  const [clause, rest] = ['今天早上雨停了以后, ', '我们沿着河边走了很久才回到家里吃饭.'];
  expect(splitFirstClause(clause + rest, 'zh')).toEqual([clause.trim(), rest]);
  expect(splitFirstClause('雨停了, 我们回家.', 'zh')).toBeUndefined();
});

test('a long sentence is cut behind its first clause, where both parts are more than a few words', () => {
  const rest = 'we walked along the river until the sun went down, and then went home.';
  expect(splitFirstClause(`When the rain had stopped, ${rest}`)).toEqual(['When the rain had stopped,', rest]);
  // "However," would be a piece of half a second with a pause behind it.
  expect(splitFirstClause(`However, when the rain had stopped, ${rest}`)).toEqual(['However, when the rain had stopped,', rest]);
  expect(splitFirstClause('We walked along the river, and then went home.')).toBeUndefined();
  expect(splitFirstClause('We walked along the river until the sun went down and the last birds were quiet, too.')).toBeUndefined();
  expect(splitFirstClause('At 10:30 the 1,250 people who had waited in front of the gate since morning came in.')).toBeUndefined();
});

test('halveText loses nothing and prefers clauses near the middle', () => {
  expect(halveText('The long first clause, the long second clause')).toEqual(['The long first clause,', 'the long second clause']);
  expect(halveText('Oh, this clause mark is far too early to be useful here')).toEqual([
    'Oh, this clause mark is far',
    'too early to be useful here',
  ]);
  expect(halveText('abcd')).toEqual(['ab', 'cd']);
  expect(halveText('a')).toBeUndefined();
});

test('marks without end on one letter, which take minutes to sort, are sorted a few at a time', () => {
  const sorted = marksSortedTogether(() => normalizeText(`a${'\u0301\u0323'.repeat(1000)}`));
  expect(sorted).toBeLessThan(500);
});

describe('phonemesAtMost', () => {
  test('is never below what a text has, and lets 4096 characters of prose through', async () => {
    const { vocab } = parseKokoroConfig(read('models/parley-speech/config.json'));
    const rules = parsePhonemeRules(read('models/parley-speech/phoneme_rules.json'));
    const phonemizer = new Phonemizer(ONLY_ESPEAK, englishOnly(rules), vocab);
    const prose = 'It was a bright cold day in April, and the clocks were striking thirteen. Nobody knew "why", or cared; ';
    for (const text of [prose, '😀😀', '123456 7', '1987, 2001', 'WWW USA', 'xkcd tsk', '100% of $1.23', '漢 ﷺ Ω', 'a b c d', 'Ω≈ç√']) {
      const normal = normalizeText(text);
      expect(phonemesAtMost(normal), text).toBeGreaterThanOrEqual((await phonemizer.ids(normal)).ids.length);
    }
    expect(phonemesAtMost(prose.repeat(40).slice(0, 4096))).toBeLessThan(8192);
  });
});

describe('phonemes', () => {
  const { vocab } = parseKokoroConfig(read('models/parley-speech/config.json'));
  const rules = parsePhonemeRules(read('models/parley-speech/phoneme_rules.json'));
  const phonemizer = new Phonemizer(ONLY_ESPEAK, englishOnly(rules), vocab);
  const golden = read('test/fixtures/parley-speech/golden.json') as { phonemize_examples: { text: string; tokens: string }[] };

  test.each(golden.phonemize_examples.map(({ text, tokens }) => [text, tokens] as const))('%s', async (text, tokens) => {
    const { phonemes, ids, speakable } = await phonemizer.ids(normalizeText(text));
    expect(phonemes).toBe(tokens);
    expect(ids).toEqual([...tokens].map((symbol) => vocab.get(symbol)));
    expect(speakable).toBe(true);
  });

  test('punctuation alone is not speakable', async () => {
    expect((await phonemizer.ids('... !')).speakable).toBe(false);
  });
});
