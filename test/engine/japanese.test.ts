/** Phonemes of Japanese against misaki's (test/tools/dump_misaki_zh_ja.py), and how numbers and foreign words are read. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { openJapanese } from '../../engine/platform/lindera.ts';
import { createJapanese } from '../../engine/text/japanese.ts';
import { differences } from '../support/edits.ts';

interface Golden {
  readonly sentences: readonly { readonly text: string; readonly misaki: string }[];
}

const GOLDEN = JSON.parse(readFileSync(new URL('../fixtures/misaki-ja.json', import.meta.url), 'utf8')) as Golden;
const japanese = createJapanese(await openJapanese());
const read = (text: string): string => japanese(text).map((span) => ('latin' in span ? `[${span.latin}]` : span.phonemes)).join(' '); // prettier-ignore

test('217 sentences have the phonemes of misaki, but for one of a hundred, and most of its spaces', () => {
  let [symbols, wrong, spaced, wrongSpaced] = [0, 0, 0, 0];
  for (const { text, misaki } of GOLDEN.sentences) {
    const ours = read(text);
    const sounds = misaki.replaceAll(' ', '');
    symbols += sounds.length;
    wrong += differences([...ours.replaceAll(' ', '')], [...sounds]);
    spaced += misaki.length;
    wrongSpaced += differences([...ours], [...misaki]);
  }
  console.log(`${wrong} of ${symbols} phonemes, with spaces ${wrongSpaced} of ${spaced}`);
  expect(GOLDEN.sentences).toHaveLength(217);
  expect(wrong / symbols).toBeLessThanOrEqual(0.01);
  expect(wrongSpaced / spaced).toBeLessThanOrEqual(0.028);
});

test.each([
  ['1本、2本、3本、6本、10本、100本', 'iʔpoɴ, ɲi hoɴ, saɴ boɴ, ɾoʔpoɴ, ʥɨʔpoɴ, çaʔpoɴ'],
  ['1分、3分、4分、8分', 'iʔpɯɴ, saɴ pɯɴ, joɴ pɯɴ, haʔpɯɴ'],
  ['4時、7時、9時', 'jo ʥi, ɕiʨi ʥi, kɯ ʥi'],
  ['1人、2人、4人', 'çitoɾʲi, ɸɯtaɾʲi, jo ɲiɴ'],
  ['2日、8日、14日、20日、21日', 'ɸɯʦɨka, joːka, ʥɨːjoʔka, haʦɨka, ɲiʥɨːiʨi ɲiʨi'],
  ['3階、300円、800人、3000個', 'saɴ ɡai, sambʲakɯ eɴ, haʔpʲakɯ ɲiɴ, saɴʣeɴ ko'],
  ['2024年12月25日', 'ɲiseɴ ɲiʥɨːjo neɴ ʥɨːɲiɡaʦɨ ɲiʥɨːɡo ɲiʨi'],
  ['午後3:45', 'ɡoɡo saɴ ʥi joɲʥɨːɡo ɸɯɴ'],
  ['¥1,234、50%、-5℃', 'seɴ ɲiçakɯ saɲʥɨːjo eɴ, ɡoʥɨʔpaːsento, mainasɨ ɡodo'],
  ['3.14、03-1234-5678', 'saɴ teɴiʨijoɴ, ʣeɾo saɴ, iʨiɲisaɴjoɴ, ɡoɾokɯnanahaʨi'],
  ['三百二十一', 'sambʲakɯ ɲiʥɨːiʨi'],
])('%s is read %s', (text, phonemes) => {
  expect(read(text)).toBe(phonemes);
});

test('particles, long vowels and doubled consonants are those of speech', () => {
  expect(read('東京へは、学校の先生を見に行きましょう。')).toBe('toːkʲoː e βa, ɡaʔkoː no seɴseː o mʲi ɲi ikʲi maɕoː.');
  expect(read('招いて、人々は「おいしい」と言った！')).toBe('maneite, çitobʲito βa “oiɕiː” to iʔta!');
  expect(read('ﾃｽﾄと１２')).toBe('tesɨto to ʥɨːɲi');
});

test('words of Latin letters are spans of their own, and unknown characters are silent', () => {
  expect(japanese('GitHubでPythonを書く')).toEqual([{ latin: 'GitHub' }, { phonemes: 'de' }, { latin: 'Python' }, { phonemes: 'o kakɯ' }]);
  expect(read('彍。')).toBe('.');
  expect(japanese('')).toEqual([{ phonemes: '' }]);
});
