/** Marks of pronunciation, stress and pauses: what is read of a text that has them, with the alphabets of published Kokoro and of the bundled model. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parseKokoroConfig } from '../../engine/models/kokoro/config.ts';
import { openJapanese } from '../../engine/platform/lindera.ts';
import { parsePhonemeRules, spellingsFor } from '../../engine/text/phonemes.ts';
import { Phonemizer } from '../../engine/text/phonemizer.ts';
import { withStressLevel, withoutMarks } from '../../engine/text/speech-marks.ts';
import { normalizeText } from '../../engine/text/speech-text.ts';
import type { SpeechLanguage } from '../../engine/util/speech-languages.ts';
import { KOKORO_82M } from '../../engine/weights/kokoro/kokoro-82m.ts';
import { ONLY_ESPEAK } from '../support/espeak.ts';

const { vocab } = parseKokoroConfig(KOKORO_82M);
const published = new Phonemizer({ ...ONLY_ESPEAK, openJapanese }, spellingsFor(vocab), vocab);
const rules = parsePhonemeRules(
  JSON.parse(readFileSync(new URL('../../models/parley-speech/phoneme_rules.json', import.meta.url), 'utf8')),
);
const bundled = new Phonemizer(ONLY_ESPEAK, new Map([['en-us', rules]]), vocab);

async function read(text: string, language: SpeechLanguage = 'en-us', phonemizer = published): Promise<string> {
  const { text: marked, marks } = phonemizer.marks(text, language);
  return (await phonemizer.ids(normalizeText(marked, language), language, marks)).phonemes;
}

describe('phonemes', () => {
  test.each([
    ['The [Kokoro](/kˈOkəɹO/) model.', 'ðə kˈOkəɹO mˈɑdəl.'],
    ['A *[Kokoro](/kˈOkəɹO/)*, of the [Kokoro](/kˈOkəɹO/)-like kind', 'ə kˈOkəɹO, ʌv ðə kˈOkəɹOlˈIk kˈInd'],
    ['Mr. [Kokoro](/kˈOkəɹO/) spent $5.', 'mˈɪstəɹ kˈOkəɹO spˈɛnt fˈIv dˈɑləɹz.'],
    ['Say [hello there, world](/həlˈO ðˈɛɹ, wˈɜɹld/)!', 'sˈA həlˈO ðˈɛɹ, wˈɜɹld!'],
    ['say [the](/ðə/)', 'sˈA ðə'],
  ])('are read as they are written: %s', async (text, phonemes) => {
    expect(await read(text)).toBe(phonemes);
  });

  test('are those of the language in every language, and words beside them are read as within a sentence', async () => {
    expect(await read('the [air](/ˈɛɹ/) and a [car](/kˈɑɹ/) for a')).toMatch(/^ði ˈɛɹ ænd ɐ kˈɑɹ f/);
    expect(await read("l'[eau](/ˈo/) et les [amis](/amˈi/)", 'fr')).toBe('lˈo e lez amˈi');
    expect(await read('La [pizza](/pˈitsa/) y [Kokoro](/kˈokoɾo/)', 'es')).toBe('la pˈiʦa i kˈokoɾo');
    // Portuguese joins the last vowel of a word with the next.
    expect(await read('Um [Kokoro](/kˈokoɾu/) e outro [pão](/pˈɐ̃ʊ̃/).', 'pt-br')).toBe('ũŋ kˈokoɾu i ˈowtrʊ pˈɐ̃ʊ̃.'.normalize('NFD'));
    expect(await read('यह [Kokoro](/kˈoːkoɾoː/) है।', 'hi')).toBe('jˌəh kˈoːkoɾoː hɛː.');
    expect(await read('我叫[Kokoro](/kˈOkəɹO/)。你好[世界](/ʂɨ↘ʨje↘/)', 'zh')).toBe('wo↓ ʨjau↘ kˈOkəɹO. ni↓xau↓ ʂɨ↘ʨje↘');
    expect(await read('私は[東京](/toːkʲoː/)です。', 'ja')).toBe('βataɕi βa toːkʲoː desɨ.');
  });

  test('stand where a text itself has the word that is read in their place', async () => {
    expect(await read('A zavuzo [Kokoro](/kˈOkəɹO/) here.')).toBe('ə zævjˈuzO kˈOkəɹO hˈɪɹ.');
  });

  test.each(['en-us', 'en-gb', 'es', 'fr', 'it', 'pt-br', 'hi'] as const)('stand in any place of a sentence: %s', async (language) => {
    const [file, each] = language.startsWith('en') ? ['cases', 24] : [language, 6];
    const rows = readFileSync(new URL(`../fixtures/speech-text/${file}.tsv`, import.meta.url), 'utf8')
      .trim()
      .split('\n');
    let places = 0;
    for (const row of rows.filter((_, i) => i % each === 0)) {
      const words = normalizeText(row.split('\t').at(-1)!, language).split(' ');
      for (const i of words.keys()) {
        const { text, marks } = published.marks([...words.slice(0, i), '[x](/ʒˈɨʒ/) [y](/ɨʒˈɨ/)', ...words.slice(i)].join(' '), language);
        const { phonemes } = await published.ids(text, language, marks);
        expect(phonemes.match(/ʒˈɨʒ ɨʒˈɨ(?![^\s;:,.!?—…"“”()])/g), `${words.join(' ')} at ${i}`).toHaveLength(1);
        places++;
      }
    }
    expect(places).toBeGreaterThan(60);
  });

  test('may be IPA: its diphthongs, affricates and stress before the syllable are written as the model has them', async () => {
    expect(await read('[a](/təˈmeɪ.toʊ/) [b](/ˈt͡ʃeɪndʒ/) [c](/ˈbɝːd/) [d](/ˈbʌɾɚ/) [e](/ˈɡoʊ/) [f](/ˈgoʊ/)')).toBe(
      'təmˈAtO ʧˈAnʤ bˈɜɹd bˈʌTəɹ ɡˈO ɡˈO',
    );
    expect(await read('[a](/ɡˈəʊ/) [b](/ˈbɝd/) [c](/ˈbɜːd/)', 'en-gb')).toBe('ɡˈQ bˈɜːd bˈɜːd');
  });

  test('may be those of published Kokoro or IPA for the bundled model too', async () => {
    expect(await read('[a](/bˈʌTəɹ/) [b](/bˈɜɹd/) [c](/ɡˈQ/) [d](/əkwˈAntᵊns/) [e](/təˈmeɪ.toʊ/)', 'en-us', bundled)).toBe(
      'bˈʌtəɹ bˈɚd ɡˈO əkwˈAntəns təmˈAtO',
    );
  });

  test('take the ending of a genitive or plural in English', async () => {
    expect(await read("[Nguyen](/wˈɪn/)'s [cat](/kˈæt/)s, [Bush](/bˈʊʃ/)’s [day](/dˈA/)sun")).toMatch(/^wˈɪnz kˈæts, bˈʊʃəz dˈA /);
    expect(await read("[Bush](/bˈʊʃ/)'s", 'en-gb')).toBe('bˈʊʃɪz');
  });

  test.each([
    '[docs](/docs/)', '[français](/français/)', '[file](/src/ə.ts/)', '[x](/ˈ/)', '[home](https://example.org/ə/)', '[ɗan](/ɗan-adam/)', '[Hawaiʻi](/hawaiʻi/)',
  ])('are not taken for those of a link: %s', async (link) => {
    expect(published.marks(link, 'en-us')).toEqual({ text: link, marks: new Map() });
  }); // prettier-ignore

  test('that the model lacks are refused, and so are more than a word has', async () => {
    const refused = (message: string): object => expect.objectContaining({ code: 'invalid_request', param: 'text', message });
    expect(() => published.marks('[Bach](/bˈɑʁ7/)', 'en-us')).toThrow(
      refused("the model has no phoneme '7', which is in '[Bach](/bˈɑʁ7/)'"),
    );
    expect(() => bundled.marks('[Bach](/bˈɑʁ/)', 'en-us')).toThrow(refused("the model has no phoneme 'ʁ', which is in '[Bach](/bˈɑʁ/)'"));
    expect(published.marks(`[x](/ˈ${'a'.repeat(59)}/)`, 'en-us').marks.size).toBe(1);
    expect(() => published.marks(`[x](/ˈ${'a'.repeat(60)}/)`, 'en-us')).toThrow('has a word of 61 phonemes; at most 60 are spoken');
    expect(() => published.marks('[a](/ə/)'.repeat(4001), 'en-us')).toThrow('at most 4000 marks');
  });
});

describe('stress', () => {
  test('has the levels of misaki', () => {
    const levels = [-2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2];
    const of = (phonemes: string): string[] => levels.map((level) => withStressLevel(phonemes, level));
    expect(of('wˈɜɹd')).toEqual(['wɜɹd', 'wɜɹd', 'wˌɜɹd', 'wˌɜɹd', 'wˌɜɹd', 'wˈɜɹd', 'wˈɜɹd', 'wˈɜɹd', 'wˈɜɹd']);
    expect(of('wˌɜɹd')).toEqual(['wɜɹd', 'wɜɹd', 'wɜɹd', 'wˌɜɹd', 'wˌɜɹd', 'wˌɜɹd', 'wˈɜɹd', 'wˈɜɹd', 'wˈɜɹd']);
    expect(of('wɜɹd')).toEqual(['wɜɹd', 'wɜɹd', 'wɜɹd', 'wɜɹd', 'wˌɜɹd', 'wˌɜɹd', 'wˌɜɹd', 'wˈɜɹd', 'wˈɜɹd']);
    expect(withStressLevel('ˌʌndəɹstˈænd', -1)).toBe('ʌndəɹstˌænd');
    expect(withStressLevel('s', 2)).toBe('s');
  });

  test('is that of the word in its sentence, raised or lowered; several words are changed one by one', async () => {
    expect(await read('this or that')).toMatch(/ ɔɹ /);
    expect(await read('this [or](+2) that')).toMatch(/ ˈɔɹ /);
    expect(await read('[really](-2), [day](-1)!')).toBe('ɹiəli, dˌA!');
    expect(await read('[for the](2) [$5](-2)')).toBe('fˈɔɹ ðˈə fIv dɑləɹz');
    expect(await read('[day](-1)', 'en-us', bundled)).toBe('dˌA');
  });

  test('is changed in English only; elsewhere, and at other levels, the text alone is read', async () => {
    expect(await read('[or](+2)', 'fr')).toBe(await read('or', 'fr'));
    for (const level of ['3', '0.25', '-2.5', 'x']) expect(published.marks(`[or](${level})`, 'en-us').marks.size, level).toBe(0);
  });
});

describe('pauses', () => {
  const seconds = (text: string): unknown[] => [...published.marks(text, 'en-us').marks.values()].map((mark) => mark.seconds);

  test('are in seconds or milliseconds', () => {
    expect(seconds('a [pause:1.5s] b [PAUSE:500MS] c [pause:.25s][pause:0s][pause:10s]')).toEqual([1.5, 0.5, 0.25, 0, 10]);
    expect(seconds('[pause] [pause:1] [pause:-1s] [pause:1 s] pause:1s')).toEqual([]);
  });

  test('that are too long, alone or together, are refused', () => {
    expect(() => published.marks('[pause:10.1s]', 'en-us')).toThrow(
      "'[pause:10.1s]' is too much: a pause has at most 10 seconds, all of a text 120",
    );
    expect(() => published.marks('[pause:999999999s]', 'en-us')).toThrow('at most 10 seconds');
    expect(seconds('[pause:10s]'.repeat(12))).toHaveLength(12);
    expect(() => published.marks('[pause:10s]'.repeat(12) + '[pause:1ms]', 'en-us')).toThrow("'[pause:1ms]' is too much");
  });
});

test('a text is shown without its marks, and has no private-use characters of its own', () => {
  const { text, marks } = published.marks('A [Kokoro](/kˈOkəɹO/) [or](+2)\u{100000}[pause:1s]', 'en-us');
  expect(marks.size).toBe(3);
  expect(withoutMarks(text, marks)).toBe('A Kokoro or ');
  const longer = published.marks('[Hello there, my world](/həlˈO ðˈɛɹ, wˈɜɹld/)! [Ada](/ˈAdə lˈʌvlAs/)', 'en-us');
  expect(withoutMarks(longer.text, longer.marks)).toBe('Hello there, my world! Ada ');
});
