/** How a checkpoint writes phonemes. */
import type { SpeechLanguage } from '../util/speech-languages.ts';

/** How espeak-ng's IPA is rewritten in the inventory that a checkpoint was trained on: for English, its phoneme_rules.json. */
export interface PhonemeRules {
  /** Literal replacements within one phoneme of espeak-ng's, before phonemes are joined: a diphthong, but not two vowels that meet. */
  readonly single?: readonly (readonly [string, string])[];
  /** Literal replacements, in order. */
  readonly replace: readonly (readonly [string, string])[];
  /** Replacements in phonemes that a text itself has: IPA in the inventory's symbols. Absent = misaki's symbols are IPA again, and then `replace`. */
  readonly given?: readonly (readonly [string, string])[];
  /** Symbols that are kept; absent = all of the vocabulary. */
  readonly inventory?: ReadonlySet<string>;
}

/** What misaki writes in all languages for diphthongs and affricates. */
export const MISAKI_SYMBOLS = [['aɪ', 'I'], ['aʊ', 'W'], ['dʒ', 'ʤ'], ['eɪ', 'A'], ['oʊ', 'O'], ['əʊ', 'Q'], ['tʃ', 'ʧ'], ['ɔɪ', 'Y']] as const; // prettier-ignore

/** Vowels of any language, in IPA and in misaki's symbols. */
export const VOWELS = 'aeiouyæøœɐɑɒɔəɚɛɜɨɪɯɤʊʌᵊᵻAIOQWY';

/** Rewrites phonemes that a text has, misaki's or IPA, in a model's symbols; `unknown` has those that it lacks. */
export function toSymbols(
  phonemes: string,
  { given, replace, inventory }: PhonemeRules,
  vocab: ReadonlyMap<string, number>,
): { readonly symbols: string; readonly unknown: string } {
  const rules = given ?? [...MISAKI_SYMBOLS.map(([ipa, symbol]) => [symbol, ipa] as const), ['T', 'ɾ'] as const, ...replace];
  // Points are between syllables. Composed letters are those of the vocabulary or are taken apart: ç, but a and a tilde.
  let written = phonemes.normalize('NFC').replace(/\.(?=\S)|[\u0361‿]/g, '').replaceAll('g', 'ɡ'); // prettier-ignore
  for (const [from, to] of rules) written = written.replaceAll(from, to);
  const isKnown = (symbol: string): boolean => vocab.has(symbol) && (inventory?.has(symbol) ?? true);
  const symbols = [...written].flatMap((symbol) => (isKnown(symbol) ? symbol : [...symbol.normalize('NFD')]));
  // IPA marks stress before the syllable, and espeak-ng and misaki before its vowel.
  const stressed = symbols.join('').replace(new RegExp(`([ˈˌ])([^\\s${VOWELS}ˈˌ]+)(?=[${VOWELS}])`, 'g'), '$2$1');
  return { symbols: stressed, unknown: [...new Set(symbols.filter((symbol) => !isKnown(symbol)))].join('') };
}

/** A model's phoneme rules for each language that it speaks. */
export type Spellings = ReadonlyMap<SpeechLanguage, PhonemeRules>;
