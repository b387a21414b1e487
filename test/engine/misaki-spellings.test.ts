/** Phonemes of published Kokoro's voices against misaki's, in sentences that the rules were not written by (test/tools/dump_misaki.py, dump_misaki_languages.py). */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parseKokoroConfig } from '../../engine/models/kokoro/config.ts';
import { Phonemizer } from '../../engine/text/phonemizer.ts';
import { spellingsFor } from '../../engine/text/phonemes.ts';
import { KOKORO_82M } from '../../engine/weights/kokoro/kokoro-82m.ts';
import { differences } from '../support/edits.ts';
import { ONLY_ESPEAK } from '../support/espeak.ts';

const GOLDEN = JSON.parse(readFileSync(new URL('../fixtures/misaki-phonemes.json', import.meta.url), 'utf8')) as Record<'en-us' | 'en-gb', { text: string; misaki: string }[]>; // prettier-ignore
const OTHERS = JSON.parse(readFileSync(new URL('../fixtures/misaki-languages.json', import.meta.url), 'utf8')) as Record<'es' | 'fr' | 'it' | 'pt-br' | 'hi', { text: string; misaki: string }[]>; // prettier-ignore
const { vocab } = parseKokoroConfig(KOKORO_82M);
const phonemizer = new Phonemizer(ONLY_ESPEAK, spellingsFor(vocab), vocab);

test.each(['en-us', 'en-gb'] as const)('%s differs from misaki in at most one symbol of 25', async (accent) => {
  let [wrong, all] = [0, 0];
  for (const { text, misaki } of GOLDEN[accent]) {
    const { phonemes } = await phonemizer.ids(text, accent);
    wrong += differences([...phonemes], [...misaki]);
    all += misaki.length;
  }
  console.log(`${accent}: ${((100 * wrong) / all).toFixed(2)} %`);
  expect(wrong / all).toBeLessThanOrEqual(0.04);
});

test.each(Object.keys(OTHERS) as (keyof typeof OTHERS)[])(
  '%s is what misaki writes, but for symbols that the model lacks',
  async (language) => {
    expect(OTHERS[language].length).toBeGreaterThan(10);
    for (const { text, misaki } of OTHERS[language]) {
      const known = [...misaki].filter((symbol) => vocab.has(symbol)).join('').replace(/ +/g, ' ').trim(); // prettier-ignore
      expect((await phonemizer.ids(text, language)).phonemes, text).toBe(known);
    }
  },
);

test('a vocabulary of other symbols keeps the default spelling', async () => {
  const letters = new Map(' abdefhijklmnopstuvwzæðŋɑɔəɛɜɡɪɹʃʊʌʒˈˌː.,!'.split('').map((symbol, id) => [symbol, id]));
  expect(spellingsFor(letters).get('en-gb')).toBe(spellingsFor(letters).get('en-us'));
  expect(spellingsFor(vocab).get('en-gb')).not.toBe(spellingsFor(vocab).get('en-us'));
});
