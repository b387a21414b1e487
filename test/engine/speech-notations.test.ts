import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { Espeak } from '../../engine/text/espeak.ts';
import { normalizeIn } from '../../engine/text/languages/normalize-in.ts';
import { toIpa } from '../../engine/text/phonemes.ts';
import { splitSentences } from '../../engine/text/speech-text.ts';
import { differences } from '../support/edits.ts';
import { ONLY_ESPEAK } from '../support/espeak.ts';
import { marksSortedTogether } from '../support/normalizing.ts';

const LANGUAGES = ['es', 'fr', 'it', 'pt-br', 'hi'] as const;

/** What is written, its normal form, and what a person reads aloud, in words; figures that espeak-ng reads as people do stay figures in the normal form. */
const casesOf = (language: string) =>
  readFileSync(new URL(`../fixtures/speech-text/${language}.tsv`, import.meta.url), 'utf8')
    .split(/^# (?=[^\t\n]*$)/m)
    .slice(1)
    .map((group) => group.split('\n'))
    .map(
      ([name, ...lines]) =>
        [name!, lines.filter((line) => line !== '').map((line) => line.split('\t') as [string, string, string])] as const,
    );

/** IPA without stress, length and pauses. */
const alike = (ipa: string): string => ipa.replace(/[ˈˌː\s_|,.;:!?…"“”()—-]/g, '');

describe.each(LANGUAGES)('%s is read as people read it', (language) => {
  const groups = casesOf(language);

  test.each(groups)('%s', (_, cases) => {
    expect(cases.map(([written, , words]) => [written, normalizeIn(written, language), words])).toEqual(cases);
  });

  test('aloud, too', async () => {
    const espeak = await Espeak.start(await ONLY_ESPEAK.espeak!());
    const sounds = async (text: string) => alike(await toIpa(espeak, text, language));
    for (const [, cases] of groups)
      for (const [, normal, words] of cases) {
        const [heard, expected] = [await sounds(normal), await sounds(words)];
        // espeak-ng stresses and binds the words of a figure differently from the same words written out, and so reduces other vowels.
        expect(differences([...heard], [...expected]) / expected.length, `${normal}: ${heard}, ${expected}`).toBeLessThan(0.15);
      }
  });

  test('in 60 cases', () => {
    expect(groups.reduce((sum, [, cases]) => sum + cases.length, 0)).toBeGreaterThanOrEqual(60);
  });

  test('and what is in words already stays as it is', () => {
    for (const [, cases] of groups)
      for (const [, , words] of cases) expect(normalizeIn(words, language).replaceAll('"', '')).toBe(words.replaceAll('"', ''));
  });

  test('however long it is', () => {
    // Each would take minutes if a pattern looked at its beginnings again and again.
    for (const part of [
      '[',
      '![a](',
      '*a',
      '_',
      '`',
      '|',
      '1/',
      '1 1/',
      '$1-',
      '0',
      '1.',
      '1,',
      '1 000 ',
      'XI ',
      'a_',
      '<',
      'A. ',
      'क.',
      '1h',
      '€1',
      '+1',
    ])
      expect(normalizeIn(part.repeat(10_000 / part.length), language).length).toBeLessThan(120_000);
    // And these a quarter of an hour together.
    for (const part of [
      '\n ',
      'a-',
      '3-4-',
      '1',
      '-|',
      '<!--',
      '<b ',
      '111,',
      '1.',
      '$1/a ',
      '\\[',
      '1 000 ',
      'X y ',
      'a@',
      '1:00 ',
      '।',
      'ा',
    ])
      expect(normalizeIn(`${part.repeat(100_000 / part.length)}x`, language)).toMatch(/x$/);
  });

  test('with few marks on each letter, which otherwise take minutes to sort', () => {
    expect(marksSortedTogether(() => normalizeIn(`a${'\u0301\u0323'.repeat(1000)}`, language))).toBeLessThan(500);
  });
});

test('the danda of Hindi ends a sentence', () => {
  const normal = normalizeIn('नमस्ते। आप कैसे हैं? "मैं ठीक हूँ।" अच्छा॥ ए.पी.जे. अब्दुल कलाम आए।', 'hi');
  expect(splitSentences(normal).map(({ text }) => text)).toEqual(['नमस्ते.', 'आप कैसे हैं?', '"मैं ठीक हूँ."', 'अच्छा.', 'ए पी जे अब्दुल कलाम आए.']);
});
