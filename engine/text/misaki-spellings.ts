/**
 * Rewrites espeak-ng's IPA in the alphabet of misaki (Apache-2.0), which published Kokoro was trained on: literal replacements, in order. The first part of each
 * list is misaki's own mapping of espeak-ng's symbols and joined words; the second was found by counting where its dictionary differs from espeak-ng in 500
 * sentences of LJ Speech (public domain). test/engine/misaki-spellings.test.ts measures both on other sentences.
 */
import type { SpeechLanguage } from '../util/speech-languages.ts';
import { MISAKI_SYMBOLS } from './phoneme-rules.ts';
import type { PhonemeRules, Spellings } from './phoneme-rules.ts';

/** Replacements for American and British English. */
const ENGLISH: Readonly<Record<'en-us' | 'en-gb', PhonemeRules>> = {
  'en-us': {
    given: [...MISAKI_SYMBOLS, ['ɝ', 'ɜɹ'], ['ɚ', 'əɹ'], ['r', 'ɹ'], ['ː', ''], ['ɾ', 'T'], ['ʔ', 't']],
    replace: [['\u0361', ''], ['^', ''], ['\u0303', ''], ['ʌvðə', 'ʌv ðə'], ['ʌvðɪ', 'ʌv ði'], ['ɪnðə', 'ɪn ðə'], ['ɪnðɪ', 'ɪn ði'], ['ɔnðə', 'ɔn ðə'], ['wɪððə', 'wɪð ðə'], ['fɚðə', 'fəɹ ðə'], ['ðɪ ', 'ði '], ['hˈʌndɹɪd', ' hˈʌndɹəd'], ['  ', ' '], ['ʔˌn\u0329', 'tn'], ['ʔn\u0329', 'tn'], ['ʔn', 'tn'], ['n\u0329', 'ᵊn'], ['l\u0329', 'ᵊl'], ['m\u0329', 'ᵊm'], ['\u0329', ''], ['aɪ', 'I'], ['aʊ', 'W'], ['dʒ', 'ʤ'], ['eɪ', 'A'], ['tʃ', 'ʧ'], ['ɔɪ', 'Y'], ['oʊ', 'O'], ['ɾəl', 'ɾᵊl'], ['dən', 'dᵊn'], ['zən', 'zᵊn'], ['sən', 'sᵊn'], ['ʲo', 'jo'], ['ʲə', 'jə'], ['ʲ', ''], ['ɚɹ ', 'əɹ '], ['ɚɹ', 'əɹ'], ['ɚ', 'əɹ'], ['ɝ', 'ɜɹ'], ['r', 'ɹ'], ['x', 'k'], ['ç', 'k'], ['ɬ', 'l'], [' ɐ ', ' \ue000 '], [' ɐn ', ' \ue001 '], ['ɐ', 'ə'], ['\ue000', 'ɐ'], ['\ue001', 'ɐn'], ['ɜːɹ', 'ɜɹ'], ['ɜː', 'ɜɹ'], ['ɪə', 'iə'], ['ː', ''], ['e', 'A'], ['oɹ', 'ɔɹ'], ['o', 'ɔ'], ['ɾ', 'T'], ['ʔ', 't'], ['jˈʊɹɹO', 'jˈʊɹO'], ['ɹɹ', 'ɹ'], ['ɹᵻ', 'ɹə'], ['əld', 'ᵊld'], ['ɪdᵊ', 'ədᵊ'], ['əl ', 'ᵊl '], [' ɛ', ' ɪ'], ['æɹ', 'ɛɹ'], ['ɹᵊ', 'ɹə'], ['jʊ', 'jə'], ['fɪ', 'fə'], ['ᵻs', 'əs'], ['hə', 'hæ'], ['vɪs', 'vəs'], [' fəɹ', ' fɔɹ'], ['ᵻk', 'ək'], ['ᵻT', 'əT'], ['T ', 't '], ['ɛɹɪ', 'ɛɹə'], [' ɪŋ', ' ɪn'], ['əvə', 'ʌvə'], ['sɪp', 'səp'], ['bᵻ', 'bə'], ['mɪn', 'mən'], ['ɪkᵊ', 'əkᵊ'], ['ɑf', 'ɔf'], ['əlz', 'ᵊlz'], ['ɪtˈ', 'ətˈ'], [' bɪ', ' bə'], ['vɹ', 'vəɹ'], ['tən', 'tᵊn'], ['pɹɪ', 'pɹi'], ['sᵻn', 'sᵊn'], ['iᵊ', 'iə'], ['ɪtˌ', 'ətˌ'], ['nɪm', 'nəm'], ['Aʤənt', 'Aʤᵊnt'], ['ᵻm', 'əm'], ['tin', 'tˈin'], [' ɔn', ' ˌɔn'], ['zədᵊ', 'zədˌɛ'], [' ʌn', ' ˌʌn'], ['ˌWt', 'ˈWt'], ['iθɹˈ', 'iθɹˌ'], ['uɡ', 'uɡˌ'], ['ˈInt', 'ˌInt'], ['ˌɛni', 'ˈɛni'], ['ˈAtˈ', 'ˌAtˈ'], ['əpˌɑ', 'əpˈɑ'], ['sɪk', 'sək'], ['tɪs', 'təs'], ['ɪstˈ', 'əstˈ'], ['ɪntʊ', 'ɪntu'], ['ˌɪntu', 'ˈɪntu'], [' I', ' ˌI'], [' ᵻ', ' ə'], ['əl,', 'ᵊl,'], ['nʃᵊ', 'nʧᵊ'], ['uni', 'unj'], ['ʊ ɐ', 'ə ɐ'], ['ˈiəɹ', 'ˈɪɹ'], ['ɛɹwˌ', 'ɛɹw']],
  },
  'en-gb': {
    given: [...MISAKI_SYMBOLS, ['ɝ', 'ɜː'], ['ːː', 'ː'], ['r', 'ɹ'], ['ɾ', 't'], ['ʔ', 't']],
    replace: [['\u0361', ''], ['^', ''], ['\u0303', ''], ['ɒvðə', 'ɒv ðə'], ['ɒvðɪ', 'ɒv ði'], ['ɪnðə', 'ɪn ðə'], ['ɪnðɪ', 'ɪn ði'], ['ɔnðə', 'ɒn ðə'], ['ɒnðə', 'ɒn ðə'], ['wɪððə', 'wɪð ðə'], ['fəðə', 'fɔː ðə'], ['ðɪ ', 'ði '], ['ʔˌn\u0329', 'tn'], ['ʔn\u0329', 'tn'], ['ʔn', 'tn'], ['n\u0329', 'ᵊn'], ['l\u0329', 'ᵊl'], ['m\u0329', 'ᵊm'], ['\u0329', ''], ['eə', 'ɛː'], ['əʊ', 'Q'], ['oʊ', 'Q'], ['aɪ', 'I'], ['aʊ', 'W'], ['dʒ', 'ʤ'], ['eɪ', 'A'], ['tʃ', 'ʧ'], ['ɔɪ', 'Y'], ['iə', 'ɪə'], ['əl ', 'ᵊl '], ['ʃən', 'ʃᵊn'], ['ʒən', 'ʒᵊn'], ['ʲ', ''], ['ɚ', 'ə'], ['r', 'ɹ'], ['x', 'k'], ['ç', 'k'], ['ɬ', 'l'], [' ɐ ', ' \ue001 '], [' ɐn ', ' \ue001n '], ['ɐ', 'ə'], ['\ue001', 'ɐ'], ['ᵻ', 'ɪ'], ['ɾ', 't'], ['ʔ', 't'], ['  ', ' '], ['ɹ ', ' '], ['əld', 'ᵊld'], ['ənt', 'ᵊnt'], [' ɛ', ' ɪ'], ['zən', 'zᵊn'], ['ɹᵊ', 'ɹə'], ['ˈas', 'ˈɑːs'], ['hə', 'ha'], ['aft', 'ɑːft'], ['wˈɒn', 'wˈʌn'], ['vən', 'vᵊn'], [' ɪŋ', ' ɪn'], ['ʃᵊl', 'ʃl'], ['əvə', 'ɒvə'], ['əlz', 'ᵊlz'], ['ans', 'ɑːns'], ['ʤən', 'ʤᵊn'], ['ɪᵊ', 'ɪə'], ['vɹ', 'vəɹ'], ['bi ', 'biː '], ['pən', 'pᵊn'], ['bɪn ', 'biːn '], ['sənz', 'sᵊnz'], ['dən', 'dᵊn'], ['ɹɪd', 'ɹəd'], ['ntʊ', 'ntuː'], ['wʌ', 'wɒ'], ['kᵊn', 'kən'], ['stən', 'stᵊn'], ['ɪ ', 'i '], ['əl,', 'ᵊl,'], ['ʊ ɐ', 'ə ɐ'], ['ɜːtə', 'ɜːtɪ'], ['ɹʌ', 'ɹɒ'], ['ɪfɹ', 'ɪfəɹ'], [' ɒb', ' əb'], ['tiː', 'tˈiː'], [' ɒn', ' ˌɒn'], ['ˌWt', 'ˈWt'], ['ˌAt', 'At'], ['iθɹˈ', 'iθɹˌ'], ['ˈInt', 'ˌInt'], ['ˌɛni', 'ˈɛni'], ['ˈAtˈ', 'ˌAtˈ'], ['jˌu', 'ju'], ['ˌIz', 'Iz'], ['əpˌɒ', 'əpˈɒ'], ['ˌɪntu', 'ˈɪntu'], [' I', ' ˌI'], ['ifˈ', 'ifˌ'], ['ːwˌ', 'ːw'], ['plˌ', 'pl'], ['Wts', 'ˌWts'], ['itˈ', 'itˌ'], ['əlˈi', 'ʊlˈi'], ['wɛn ', 'wˌɛn '], ['lᵊ', 'lə'], ['əŋ', 'ən'], ['uːə', 'ʊə'], ['ʧən', 'ʧᵊn']],
  },
}; // prettier-ignore

/** What misaki writes in other languages for espeak-ng's diphthongs and affricates (its EspeakG2P). */
const OTHERS = {
  single: [...MISAKI_SYMBOLS, ['dz', 'ʣ'], ['ss', 'S'], ['ts', 'ʦ']],
  given: [...MISAKI_SYMBOLS, ['dz', 'ʣ'], ['ts', 'ʦ']],
  replace: [['\u0361', ''], ['^', ''], ['-', '']],
} as const; // prettier-ignore

/** The rules of misaki for each language. */
export const MISAKI_SPELLINGS: Spellings = new Map<SpeechLanguage, PhonemeRules>([
  ['en-us', ENGLISH['en-us']],
  ['en-gb', ENGLISH['en-gb']],
  ...(['es', 'fr', 'hi', 'it', 'pt-br'] as const).map((language) => [language, OTHERS] as const),
  // mandarin.ts and japanese.ts write misaki's symbols.
  ...(['ja', 'zh'] as const).map((language) => [language, { replace: [], given: [] }] as const),
]);
