/**
 * Converts Japanese text to the phonemes that published Kokoro was trained on: those of misaki (PyPI), which reads with UniDic and writes neither accents nor
 * devoicing. Words and their pronunciations come from a dictionary of the platform (IPADIC).
 */
import type { Morpheme } from '../platform/platform.ts';
import { plainCjkPunctuation } from './cjk-text.ts';
import { kanaPhonemes, parseMorae } from './japanese-kana.ts';
import type { Morae } from './japanese-kana.ts';
import { isCounter, normalizeJapanese, readNumber } from './japanese-numbers.ts';
import type { SpokenSpan } from './spoken-spans.ts';

/** Converts Japanese text to phonemes; made by createJapanese. */
export type Japanese = (text: string) => SpokenSpan[];

/** A word as it is spoken: in kana, or a mark, or Latin letters. */
interface SpokenWord {
  readonly kana?: string;
  readonly mark?: string;
  readonly latin?: string;
}

const LATIN = /^\p{Script=Latin}[\p{Script=Latin}'’&.-]*$/u;

/** Makes a converter from the platform's tokenizer. */
export function createJapanese(morphemes: (text: string) => readonly Morpheme[]): Japanese {
  const morae = parseMorae();
  return (text) => {
    const words: SpokenWord[] = [];
    for (const [run] of plainCjkPunctuation(normalizeJapanese(text)).matchAll(
      /\p{Script=Latin}[\p{Script=Latin}\d'’&.-]*(?<![.-])|[^\p{Script=Latin}]+/gu,
    )) {
      if (LATIN.test(run)) words.push({ latin: run });
      else words.push(...spokenWords(morphemes(run)));
    }
    return spansOf(words, morae);
  };
}

/** Joins morphemes into words as misaki does, and reads numbers. */
function spokenWords(morphemes: readonly Morpheme[]): SpokenWord[] {
  const words: SpokenWord[] = [];
  for (let at = 0; at < morphemes.length;) {
    let end = at;
    while (end < morphemes.length && isNumber(morphemes[end]!)) end++;
    if (end > at) {
      const counter = counterAt(morphemes, end);
      const read = readNumber(morphemes.slice(at, end).map(({ surface }) => surface).join(''), counter.word); // prettier-ignore
      if (read) {
        words.push(...read.map((kana) => ({ kana })));
        at = end + counter.length;
        continue;
      }
    }
    const morpheme = morphemes[at]!;
    const kana = kanaOf(morpheme);
    const last = words.at(-1);
    if (morpheme.surface === '々' && last?.kana !== undefined) words[words.length - 1] = { kana: last.kana + last.kana };
    else if (kana === undefined) words.push(...[...morpheme.surface].map((mark) => ({ mark })));
    else if (last?.kana !== undefined && at > 0 && isJoined(morphemes[at - 1]!, morpheme))
      words[words.length - 1] = { kana: joined(last.kana, kana) };
    else words.push({ kana });
    at++;
  }
  return words;
}

function isNumber({ surface, kind }: Morpheme): boolean {
  return kind === '数' || /^[〇零]$/.test(surface);
}

/** The counter behind a number: up to three morphemes. */
function counterAt(morphemes: readonly Morpheme[], at: number): { readonly word: string | undefined; readonly length: number } {
  for (let length = 3; length > 0; length--) {
    const word = morphemes.slice(at, at + length).map(({ surface }) => surface).join(''); // prettier-ignore
    if (morphemes.length >= at + length && isCounter(word)) return { word, length };
  }
  return { word: undefined, length: 0 };
}

/** ましょ and う are one long vowel. */
function joined(before: string, kana: string): string {
  return before + (kana === 'ウ' && /[ョヨ]$/.test(before) ? 'ー' : kana);
}

/** A morpheme in kana; undefined if it is a mark. Words that the dictionary lacks are read if they are kana, and are silent otherwise. */
function kanaOf({ surface, partOfSpeech, pronunciation }: Morpheme): string | undefined {
  if (/^[\u3041-\u3096\u30a1-\u30fc]+$/.test(pronunciation)) return withLongVowels(surface, pronunciation);
  if (/^[\u3041-\u3096\u30a1-\u30fc]+$/.test(surface)) return surface;
  return partOfSpeech === '記号' || /^[\p{P}\p{S}\s]+$/u.test(surface) ? undefined : '';
}

/** IPADIC writes ei and ii where UniDic has long vowels. The い of an ending, as in 招いて, stays a vowel of its own behind e. */
function withLongVowels(surface: string, pronunciation: string): string {
  const kana = pronunciation.replace(/^ユウ|(?<=[トー])ユウ/, 'ユー').replace(/(?<=[イキギシジチニヒビピミリ])イ(?!ロ)/g, 'ー');
  const ending = /^[\u3041-\u30fc]+$/.test(surface) ? kana.length : /[\u3041-\u3096]*$/.exec(surface)![0].length;
  const stem = kana.slice(0, kana.length - ending).replace(/([エケゲセゼテデネヘベペメレ])イ/g, '$1ー');
  return stem + kana.slice(kana.length - ending);
}

/** Whether a morpheme is written together with the one before it: endings of verbs, and suffixes of one character. */
function isJoined(before: Morpheme, { surface, partOfSpeech, kind }: Morpheme): boolean {
  if (partOfSpeech === '助動詞')
    return /^(?:た|だ|ん|う|よう|たら|だら|たり|ぬ)$/.test(surface) && /^(?:動詞|助動詞|形容詞)$/.test(before.partOfSpeech);
  if (kind === '接続助詞')
    return /^(?:て|で|ば|ちゃ|じゃ|たり|だり)$/.test(surface) && /^(?:動詞|助動詞|形容詞)$/.test(before.partOfSpeech);
  if (partOfSpeech === '動詞' && kind === '接尾') return before.surface === 'さ';
  return kind === '接尾' && /^[\u4e00-\u9fff]$/.test(surface) && before.partOfSpeech === '名詞';
}

/** Writes words with spaces between them, but none before closing marks and behind opening ones, and none at a doubled consonant. */
function spansOf(words: readonly SpokenWord[], morae: Morae): SpokenSpan[] {
  const spans: SpokenSpan[] = [];
  let phonemes = '';
  for (const { kana, mark, latin } of words) {
    if (latin !== undefined) {
      if (phonemes.trim() !== '') spans.push({ phonemes: phonemes.trim() });
      spans.push({ latin });
      phonemes = '';
    } else if (kana !== undefined) phonemes += `${kanaPhonemes(kana, morae)} `;
    else if (/^[“(]$/.test(mark!)) phonemes += mark!;
    else phonemes = `${phonemes.trimEnd()}${mark!} `;
  }
  if (phonemes.trim() !== '' || spans.length === 0) spans.push({ phonemes: phonemes.trim() });
  return spans.map((span) => ('latin' in span ? span : { phonemes: span.phonemes.replace(/ +/g, ' ') }));
}
