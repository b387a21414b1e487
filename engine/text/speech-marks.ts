/**
 * Marks in a text to be spoken: the phonemes of words, `[Kokoro](/kˈOkəɹO/)`, and their stress, `[or](+2)`, as misaki (Apache-2.0) has them, and pauses,
 * `[pause:1.5s]`, as Kokoro-FastAPI has them. Each word and pause is replaced by one private-use character, which is kept where texts are normalised and split.
 */
import { EngineError } from '../errors.ts';
import type { SpeechLanguage } from '../util/speech-languages.ts';
import { VOWELS, toSymbols } from './phoneme-rules.ts';
import type { PhonemeRules } from './phoneme-rules.ts';
import { normalizeText, phonemesAtMost } from './speech-text.ts';

/** What a private-use character stands for. */
export interface SpeechMark {
  /** The text that is marked. */
  readonly text: string;
  /** The word's phonemes, in the model's symbols. */
  readonly phonemes?: string;
  /** misaki's level of stress, -2 to 2. */
  readonly stress?: number;
  /** Length of a pause. */
  readonly seconds?: number;
}

/** The marks of a text, by their private-use characters. */
export type SpeechMarks = ReadonlyMap<string, SpeechMark>;

/** The characters of marked words, odd ones for words that begin with a vowel, and of pauses. */
const WORD = 0x100000;
const PAUSE = 0x108000;
export const WORD_MARK = /([\u{100000}-\u{107fff}])/u;
export const PAUSE_MARK = /([\u{108000}-\u{10fffd}])/u;
const ANY_MARK = /[\u{100000}-\u{10ffff}]/gu;

const MOST_MARKS = 4000;
/** Most phonemes of a word, which cannot be split; so it is less than what phonemesAtMost counts for a character. */
const MOST_PHONEMES = 60;
/** Longest pause, and longest sum of a text's pauses. */
const MOST_SECONDS = { pause: 10, text: 120 } as const;

const MARK =
  /\[([^\]\n]{1,500})\]\((?:\/([^/()\n]{1,500})\/|([+-]?(?:[01](?:\.[05])?|2(?:\.0)?)))\)(['’]?s(?![\p{L}\p{N}]))?|\[pause:(\d{1,9}(?:\.\d{1,9})?|\.\d{1,9})(m?s)\]/giu;
/** Symbols that are no letters of most languages. Among slashes, without one of them, there may be the path of a link. */
const PHONETIC = /[\u0250-\u02afˈˌːʰʲᵊᵝᵻꭧ↓→↗↘]/;
/** What is between words. */
const BREAKS = /([\s;:,.!?—…"“”()]+)/;
const isWord = (part: string): boolean => part !== '' && !BREAKS.test(part);
const VOWEL = new RegExp(`^[ˈˌ]?[${VOWELS}]`);

export interface MarkOptions {
  readonly language: SpeechLanguage;
  readonly rules: PhonemeRules;
  readonly vocab: ReadonlyMap<string, number>;
}

/** Replaces the marks of a text by characters. Throws EngineError('invalid_request') for phonemes that the model lacks, and for pauses that are too long. */
export function readMarks(text: string, { language, rules, vocab }: MarkOptions): { readonly text: string; readonly marks: SpeechMarks } {
  const marks = new Map<string, SpeechMark>();
  let seconds = 0;
  const place = (code: number, mark: SpeechMark): string => {
    if (marks.size === MOST_MARKS) throw refused(`a text has at most ${MOST_MARKS} marks`);
    const character = String.fromCodePoint(code + 2 * marks.size);
    marks.set(character, mark);
    return character;
  };
  const word = (mark: SpeechMark, begin: string): string => place(WORD + Number(VOWEL.test(begin)), mark);
  const isEnglish = language.startsWith('en');
  const phonetic = (all: string, said: string, written: string, ending = ''): string => {
    const { symbols, unknown } = toSymbols(written, rules, vocab);
    if (!PHONETIC.test(written) || !/[^\s;:,.!?—…"“”()ˈˌː]/.test(symbols) || (unknown !== '' && !/[ˈˌ]/.test(written))) return all;
    if (unknown !== '') throw refused(`the model has no phoneme '${unknown}', which is in '${all}'`);
    const parts = symbols.split(BREAKS);
    const last = parts.findLastIndex(isWord);
    if (isEnglish && ending !== '') parts[last] += pluralEnding(parts[last]!, language);
    const longest = Math.max(...parts.map((part) => part.length));
    if (longest > MOST_PHONEMES) throw refused(`'${all}' has a word of ${longest} phonemes; at most ${MOST_PHONEMES} are spoken`);
    // Each word is shown in its place, as far as there are as many.
    const names = said.split(BREAKS).filter(isWord);
    const spoken = parts.map((part, i) => {
      if (!isWord(part)) return part;
      return word({ text: (i === last ? names.splice(0).join(' ') : names.shift()) ?? '', phonemes: part }, part);
    });
    return spoken.join('') + (isEnglish ? '' : ending);
  };
  const stressed = (said: string, stress: number): string =>
    normalizeText(said, language)
      .split(BREAKS)
      .map((part) => (isWord(part) && phonemesAtMost(part) <= MOST_PHONEMES ? word({ text: part, stress }, part.toLowerCase()) : part))
      .join('');

  const marked = text
    .replace(ANY_MARK, ' ')
    .replace(MARK, (all: string, said: string, written?: string, level?: string, ending?: string, length?: string, unit?: string) => {
      if (written !== undefined) return phonetic(all, said, written, ending);
      if (level !== undefined) return isEnglish ? stressed(said + (ending ?? ''), Number(level)) : all;
      const pause = Number(length) / (unit!.length === 2 ? 1000 : 1);
      seconds += pause;
      if (pause > MOST_SECONDS.pause || seconds > MOST_SECONDS.text)
        throw refused(`'${all}' is too much: a pause has at most ${MOST_SECONDS.pause} seconds, all of a text ${MOST_SECONDS.text}`);
      return place(PAUSE, { text: '', seconds: pause });
    });
  return { text: marked, marks };
}

/** A text as it is shown: marked words as they are written, without their marks. */
export function withoutMarks(text: string, marks: SpeechMarks): string {
  return text.replace(ANY_MARK, (character) => marks.get(character)?.text ?? '');
}

/** Changes the stress of a word's phonemes as misaki does: -2 takes all stress away, -1 lowers it, 1 raises half stress, 2 stresses what has none. */
export function withStressLevel(phonemes: string, level: number): string {
  if (level < -1) return phonemes.replace(/[ˈˌ]/g, '');
  const isPrimary = phonemes.includes('ˈ');
  if (level === -1 || (level <= 0 && isPrimary)) return phonemes.replaceAll('ˌ', '').replaceAll('ˈ', 'ˌ');
  if (level < 0 || isPrimary) return phonemes;
  if (phonemes.includes('ˌ')) return level < 1 ? phonemes : phonemes.replaceAll('ˌ', 'ˈ');
  return phonemes.replace(new RegExp(`[${VOWELS}]`), `${level > 1 ? 'ˈ' : 'ˌ'}$&`);
}

/** The ending of plurals and genitives behind a word's phonemes. */
function pluralEnding(phonemes: string, language: SpeechLanguage): string {
  if (/[szʃʒʧʤ]$/.test(phonemes)) return language === 'en-gb' ? 'ɪz' : 'əz';
  return /[ptkfθT]$/.test(phonemes) ? 's' : 'z';
}

const refused = (message: string): EngineError => new EngineError('invalid_request', message, { param: 'text' });
