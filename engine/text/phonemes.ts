/** Converts text to token ids of a phoneme vocabulary with espeak-ng. */
import { EngineError } from '../errors.ts';
import type { EspeakLanguage } from '../platform/espeak.ts';
import type { Espeak } from './espeak.ts';
import { MISAKI_SPELLINGS } from './misaki-spellings.ts';
import { VOWELS } from './phoneme-rules.ts';
import type { PhonemeRules, Spellings } from './phoneme-rules.ts';
import { WORD_MARK } from './speech-marks.ts';

/** Rules for checkpoints without phoneme_rules.json: espeak-ng's symbols that Kokoro's alphabet writes differently. */
export const DEFAULT_PHONEME_RULES: PhonemeRules = {
  replace: [['\u0361', ''], ['^', ''], ['ʲ', 'j'], ['r', 'ɹ'], ['x', 'k'], ['ɬ', 'l'], ['tʃ', 'ʧ'], ['dʒ', 'ʤ'], ['eɪ', 'A'], ['aɪ', 'I'], ['ɔɪ', 'Y'], ['oʊ', 'O'], ['aʊ', 'W']],
}; // prettier-ignore

/** The same rules for both accents of English. */
export const englishOnly = (rules: PhonemeRules): Spellings => new Map([['en-us', rules], ['en-gb', rules]]); // prettier-ignore

/** Symbols that misaki, the phonemizer of published Kokoro, writes and espeak-ng does not. */
const MISAKI = ['ᵊ', 'A', 'I', 'O', 'Q', 'T', 'W', 'Y', 'ʤ', 'ʧ'];

/** Phoneme rules of a checkpoint without phoneme_rules.json, chosen by its alphabet. */
export function spellingsFor(vocab: ReadonlyMap<string, number>): Spellings {
  return MISAKI.every((symbol) => vocab.has(symbol)) ? MISAKI_SPELLINGS : englishOnly(DEFAULT_PHONEME_RULES);
}

/** Parses phoneme_rules.json; throws EngineError('invalid_model') if it is malformed. */
export function parsePhonemeRules(json: unknown): PhonemeRules {
  const { replace, inventory } = (json ?? {}) as { replace?: unknown; inventory?: unknown };
  const pairs =
    Array.isArray(replace) && replace.every((pair) => Array.isArray(pair) && pair.length === 2 && pair.every((p) => typeof p === 'string'));
  if (!pairs) throw new EngineError('invalid_model', 'phoneme_rules.json: replace must be a list of pairs of strings');
  const rules = { replace: replace as [string, string][] };
  return Array.isArray(inventory) ? { ...rules, inventory: new Set(inventory as string[]) } : rules;
}

/** Punctuation, which espeak-ng would drop: it is kept, and the text between is converted piece by piece. Within numbers it belongs to them: 3,5. */
const PUNCTUATION = /(\s*(?:[;!?—…"“”()]|[:,.](?!(?<=\d.)\d))+\s*)/;
/** espeak-ng's mark of a change of language, e.g. "(fr)". */
const LANGUAGE_SWITCH = /_?\([a-z]{2,3}(?:-[a-z]+)*\)_?/g;

/** Converts speakable text to espeak-ng's IPA, with `_` between phonemes, and keeps the punctuation and the characters of marked words. */
export async function toIpa(espeak: Espeak, text: string, language: EspeakLanguage): Promise<string> {
  const read = async (part: string): Promise<string> => (await espeak.phonemes(part, language)).replace(LANGUAGE_SWITCH, '_');
  let ipa = '';
  for (const [i, part] of text.split(PUNCTUATION).entries()) {
    if (i % 2 === 1 || part === '') ipa += part;
    else if (WORD_MARK.test(part)) ipa += await aroundMarks(part, read);
    else ipa += language.startsWith('en') ? withStress(await read(part)) : await read(part);
  }
  return ipa.trim();
}

/** Words that no language has, and that espeak-ng reads alike wherever they stand, but for the last vowel, which Portuguese joins with the next. */
const STAND_INS = ['zavuzo', 'avuzo'];

/** Reads a text with words in the places of marked ones, so that those beside them are read as within a sentence: "a", "the" before a vowel. */
async function aroundMarks(text: string, read: (text: string) => Promise<string>): Promise<string> {
  const parts = text.split(WORD_MARK);
  const isMark = (i: number): boolean => i % 2 === 1;
  // Elided articles and hyphens stay at the word.
  const words = parts.map((part, i) => (isMark(i) ? STAND_INS[part.codePointAt(0)! % 2]! : part.replace(/^(?![-'’])|(?<![-'’])$/g, ' ')));
  const ipa = await read(words.join(''));
  const sounds = await Promise.all(
    STAND_INS.map(async (word) =>
      (await read(word))
        .replace(/[ˈˌ]/g, '')
        .replace(/^_|_$/g, '')
        .replaceAll('_', '_[ˈˌ]?')
        .replace(/[^_?]+$/, '[^_ ]+'),
    ),
  );
  const around = ipa.split(new RegExp(`_?[ˈˌ]?(?:${sounds.join('|')})`));
  if (2 * around.length - 1 === parts.length) return parts.map((part, i) => (isMark(i) ? part : around[i / 2])).join('');
  // Where a text has such a word itself, all is read apart.
  const apart = await Promise.all(parts.map(async (part, i) => (isMark(i) ? part : read(part))));
  return apart.filter((part) => part !== '').join(' ');
}

const VOWEL = new RegExp(`^[${VOWELS}]`);

/** Stresses something in English that has no stress, as espeak-ng does where it speaks: the last half-stressed syllable, or the last word. */
function withStress(ipa: string): string {
  if (ipa.includes('ˈ')) return ipa;
  const half = ipa.lastIndexOf('ˌ');
  if (half >= 0) return `${ipa.slice(0, half)}ˈ${ipa.slice(half + 1)}`;
  const start = ipa.trimEnd().lastIndexOf(' ') + 1;
  const word = ipa.slice(start).split('_');
  const vowel = word.findIndex((phoneme) => VOWEL.test(phoneme));
  return vowel < 0 ? ipa : ipa.slice(0, start) + word.with(vowel, `ˈ${word[vowel]!}`).join('_');
}

/** A text's phonemes and their token ids; `speakable` = they are more than punctuation and stress marks. */
export interface PhonemeIds {
  readonly phonemes: string;
  /** Token ids, without the 0 that a model expects at both ends. */
  readonly ids: readonly number[];
  readonly speakable: boolean;
}

const SILENT = /^[\s;:,.!?—…"“”()ˈˌ]*$/;

/** Rewrites espeak-ng's IPA in a model's own alphabet, and drops symbols that it lacks; `marked` has the phonemes of marked words by their characters. */
export function fromIpa(
  ipa: string,
  rules: PhonemeRules,
  vocab: ReadonlyMap<string, number>,
  marked: ReadonlyMap<string, string> = new Map(),
): PhonemeIds {
  const parts = ipa.split('_');
  let phonemes = parts.map((part) => (rules.single ?? []).reduce((t, [from, to]) => t.replaceAll(from, to), part)).join('');
  for (const [symbols, replacement] of rules.replace) phonemes = phonemes.replaceAll(symbols, replacement);
  const kept = [...phonemes]
    .flatMap((symbol) => [...(marked.get(symbol) ?? symbol)])
    .filter((symbol) => vocab.has(symbol) && (rules.inventory?.has(symbol) ?? true));
  phonemes = kept.join('').replace(/ +/g, ' ').trim();
  return { phonemes, ids: [...phonemes].map((symbol) => vocab.get(symbol)!), speakable: !SILENT.test(phonemes) };
}
