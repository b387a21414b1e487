/**
 * Converts Chinese text to the phonemes of Mandarin that published Kokoro was trained on: those of misaki (PyPI), which segments with jieba, reads with pypinyin
 * and writes the tones of the dictionary, without tone sandhi. Words are those of the platform's `Intl.Segmenter`, readings those of pypinyin.
 */
import { plainCjkPunctuation } from './cjk-text.ts';
import { normalizeMandarin } from './mandarin-numbers.ts';
import { syllablePhonemes } from './mandarin-syllables.ts';
import type { SpokenSpan } from './spoken-spans.ts';

/** How characters are read. */
interface Readings {
  readonly characters: ReadonlyMap<string, string>;
  /** Readings of the characters of words in which one is read otherwise than alone. */
  readonly words: ReadonlyMap<string, readonly string[]>;
  /** Most characters of such a word. */
  readonly longest: number;
}

/** Runs of Chinese characters; words of Latin letters, with the spaces between them; any other character. */
const PARTS =
  /[\u4e00-\u9fff]+|\p{Script=Latin}[\p{Script=Latin}'’&.-]*(?<![.-])(?: +\p{Script=Latin}[\p{Script=Latin}'’&.-]*(?<![.-]))*|[^]/gu;
const CHINESE = /^[\u4e00-\u9fff]/;
/** Words of the segmenter that jieba splits: 他的 in 他 and 的. */
const PARTICLE = /^(?![目似]的|现在|存在|正在|实在|所在|内在|潜在|自在|好在|不在|为了|除了|罢了|算了)[^][的了在]$|^了[^解却断结]$/;

/** Converts Chinese text to phonemes; made by loadMandarin. */
export type Mandarin = (text: string) => SpokenSpan[];

/** Reads the tables of readings, 44 kB by gzip, and makes a converter. Numbers are spelled out, and words of Latin letters become spans of their own. */
export async function loadMandarin(): Promise<Mandarin> {
  const readings = parseReadings(await import('./mandarin-readings.ts'));
  const segmenter = new Intl.Segmenter('zh', { granularity: 'word' });
  return (text) => {
    const spans: SpokenSpan[] = [];
    for (const [part] of plainCjkPunctuation(normalizeMandarin(text)).matchAll(PARTS)) {
      const last = spans.at(-1);
      if (/^\p{Script=Latin}/u.test(part)) spans.push({ latin: part });
      else {
        const phonemes = CHINESE.test(part) ? wordsOf(part, segmenter, readings).join(' ') : part;
        if (last && 'phonemes' in last) spans[spans.length - 1] = { phonemes: last.phonemes + phonemes };
        else spans.push({ phonemes });
      }
    }
    return spans;
  };
}

/** The phonemes of each word of a run of Chinese characters. */
function wordsOf(run: string, segmenter: Intl.Segmenter, readings: Readings): string[] {
  const ends = new Set<number>();
  for (const { segment, index } of segmenter.segment(run)) {
    if (PARTICLE.test(segment)) ends.add(index + 1);
    ends.add(index + segment.length);
  }
  const words = [''];
  for (let at = 0; at < run.length;) {
    const syllables = matchAt(run, at, ends, readings);
    // A word of the table may be several of the segmenter.
    words[words.length - 1] += syllables.map((syllable) => syllablePhonemes(syllable) ?? '').join('');
    at += syllables.length;
    if (ends.has(at) && at < run.length) words.push('');
  }
  return words;
}

/** The syllables of the longest word of the table that begins at a place, and that is within a word of the segmenter or is whole ones; else of one character. */
function matchAt(run: string, at: number, ends: ReadonlySet<number>, { characters, words, longest }: Readings): readonly string[] {
  const begins = at === 0 || ends.has(at);
  for (let length = Math.min(longest, run.length - at); length > 1; length--) {
    const syllables = words.get(run.slice(at, at + length));
    const isWhole = begins && ends.has(at + length);
    if (syllables && (isWhole || !Array.from({ length: length - 1 }, (_, i) => at + i + 1).some((place) => ends.has(place))))
      return syllables;
  }
  return [characters.get(run[at]!) ?? ''];
}

/** Reads the tables of mandarin-readings.ts. */
function parseReadings(tables: { CHARACTERS: string; WORDS: string; PLAIN_WORDS: string }): Readings {
  const characters = new Map<string, string>();
  for (const [, syllable, group] of tables.CHARACTERS.matchAll(/([a-zê]+\d)(\S+)/g))
    for (const character of group!) characters.set(character, syllable!);
  const words = new Map<string, string[]>();
  const readingsOf = (word: string): string[] => {
    const known = words.get(word) ?? [...word].map((character) => characters.get(character)!);
    words.set(word, known);
    return known;
  };
  for (const entry of tables.WORDS.split(' ')) {
    const [key, ...patterns] = entry.split(',');
    for (const pattern of patterns) {
      const word = readingsOf(pattern.replaceAll('~', key![0]!));
      [...pattern].forEach((character, i) => character === '~' && (word[i] = key!.slice(1)));
    }
  }
  for (const word of tables.PLAIN_WORDS.split(' ')) readingsOf(word);
  return { characters, words, longest: Math.max(...[...words.keys()].map((word) => word.length)) };
}
