/** Normalises written text for speech, and splits it into sentences. Plain text in, plain text out. */

import { withFewMarks } from '../util/marks.ts';
import { isUnspaced } from '../util/speech-languages.ts';
import type { SpeechLanguage } from '../util/speech-languages.ts';
import { MONTHS, SENTENCE_START, withoutAbbreviations } from './abbreviations.ts';
import { cjkPhonemesAtMost, middleWordEnd, plainCjkPunctuation } from './cjk-text.ts';
import { withoutFormulas, withoutPowers } from './formulas.ts';
import { withoutEntities, withoutTags } from './html-text.ts';
import { normalizeIn } from './languages/normalize-in.ts';
import { withoutMarkdown } from './markdown-text.ts';
import { plainPunctuation, withoutInvisible } from './plain-punctuation.ts';
import { withoutRomanNumerals } from './roman-numerals.ts';
import { figures } from './speech-figures.ts';
import { money } from './speech-money.ts';
import { symbols } from './speech-symbols.ts';
import { coordinates, durations, units } from './speech-units.ts';
import { withoutAddresses } from './web-addresses.ts';

const DECADES = ['', 'tens', 'twenties', 'thirties', 'forties', 'fifties', 'sixties', 'seventies', 'eighties', 'nineties'];

/** Capitalised words that continue a sentence after a time: days, dates and time zones. */
const AFTER_HOUR =
  '(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\\b|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\\.? \\d|Eastern|Central|Mountain|Pacific|[A-Z]{2}';
/** am or pm. The last point of a.m. and p.m. belongs to it, unless a sentence begins after it; a point after am and pm ends a sentence. */
const HALF_DAY = `([aApP])(?:[mM]\\b|\\.[mM]\\b(?:\\.(?!\\s+["“]?(?!${AFTER_HOUR})[A-Z]))?)`;
const STARTS = new RegExp(`^${SENTENCE_START}`);
/** Decades without a century, or of somebody's life, also as the second of two. Other numbers with an s are seconds. */
const SHORT_DECADE =
  /(?<=\b(?:the|early|late|mid|my|your|his|her|its|our|their)[\s-](?:'?[2-9]0s,? (?:and|or|to) )?|\b(?:twen|thir|for|fif|six|seven|eigh|nine)ties,? (?:and|or|to) )'?([2-9])0'?s\b|'([2-9])0s\b|(?<![\w.])([2-9])0s(?=-(?!long)[a-z])/g;

/**
 * Spells out what a phonemizer would stumble over: titles, money, times, dates, years, ranges, decimals, units, symbols. Whole
 * numbers stay digits (espeak-ng reads them). Punctuation that shapes the voice stays.
 */
export function normalizeText(text: string, language: SpeechLanguage = 'en-us'): string {
  if (isUnspaced(language)) return withoutMarkup(text);
  if (language !== 'en-us' && language !== 'en-gb') return normalizeIn(text, language);
  let t = withoutTags(withoutFormulas(withFewMarks(text).normalize('NFC').replace(/\r\n?/g, '\n')));
  t = plainPunctuation(feet(coordinates(withoutPowers(withoutEntities(withoutMarkdown(t))))));
  t = withoutRomanNumerals(withoutAbbreviations(t));
  t = durations(withoutAddresses(t));
  // U.S. and the like. The last point also ends the sentence, if a new one begins or nothing follows.
  const [whole, end] = [t, t.trimEnd().length];
  t = t.replace(/\b(?!(?<=\d\s?)[AP]\.M\.)(?:[A-Z][a-z]?\.){2,}/g, (letters, at: number) => {
    const next = at + letters.length;
    return letters.replace(/\./g, '') + (next >= end || STARTS.test(whole.slice(next, next + 20)) ? '.' : '');
  });
  t = t.replace(/\b(\d{4}-\d\d-\d\d)\s?[–/]\s?(?=\d{4}-\d\d-\d\d\b)/g, '$1 to ');
  t = t.replace(
    /\b(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(?::00(?:\.\d+)?|(:\d\d)(?:\.\d+)?)?(Z\b|[+-]\d\d:?\d\d\b)?/g,
    (_, day: string, minutes: string, seconds = '', zone = '') => `${day}, ${minutes}${seconds}${timeZone(zone)}`,
  );
  t = t.replace(
    /\b(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])\b/g,
    (_, y: string, m: string, d: string) => `${MONTHS[Number(m) - 1]} ${Number(d)}, ${y}`,
  );
  t = figures(t);
  t = t.replace(/(?:\+?\b1[-. ])?(?:\(\d{3}\) ?|\b\d{3}[-.])?\b\d{3}[-.]\d{4}\b/g, phone);
  t = money(t);
  t = t
    .replace(/(?<![\d/.])([1-9])\/([2-9]|10)(?![\d/])(?:(?:rd|th)s?\b)?/g, fraction)
    .replace(/\b(\d)'\s?(\d{1,2})(?:"|'')/g, '$1 foot $2');
  t = t.replace(/(\d)"\s?[x×]\s?(\d+(?:\.\d+)?)"/g, '$1 by $2 inches');
  t = t.replace(new RegExp(`(?<![\\d.])(\\d{1,2})\\.([0-5]\\d)(?=\\s?${HALF_DAY})`, 'g'), '$1:$2');
  t = t.replace(/\b(\d{1,2}:[0-5]\d)Z\b/g, '$1 UTC');
  t = t.replace(new RegExp(`\\b(\\d{1,2}):([0-5]\\d)(?::([0-5]\\d))?(?:\\s?${HALF_DAY})?`, 'g'), clock);
  t = t.replace(new RegExp(`\\b(\\d{1,2})\\s?${HALF_DAY}`, 'g'), (_, h: string, half: string) => `${h} ${half.toUpperCase()}M`);
  t = t.replace(/(?<=[AP]M)\s?[-–]\s?(?=\d)/g, ' to ');
  t = t.replace(/(?<![\d.])(1[1-9]\d|20\d)0'?s\b/g, decade);
  t = t.replace(SHORT_DECADE, (_, a?: string, b?: string, c?: string) => DECADES[Number(a ?? b ?? c)]!);
  t = t
    .replace(/(\d[%°]?)(?<![A-Za-z]-?\d{1,6}(?:\.\d{1,4}){0,2}[%°]?)\s?[-–]\s?(?=[$£€¥#]?\d)|(?<=o'clock)()\s?[-–]\s?(?=\d)/g, '$1 to ')
    .replace(/(^|[\s(])[-−](?=\d)/g, '$1minus ');
  t = t.replace(/(?<![\d.])(100|1,?000)s(?= of\b)/g, (_, few: string) => (few === '100' ? 'hundreds' : 'thousands'));
  t = units(t);
  t = t.replace(/(?<![\d.])(1[1-9]\d\d|20[1-9]\d)(?![\d.]*\d)/g, year);
  // After the years, since 1,905 is none.
  t = t.replace(/(\d),(?=\d{3}(?!\d))/g, '$1');
  t = t.replace(/(?<!\d)\d*(?:\.\d+)+/g, decimal);
  t = t.replace(/([a-z][.!?])(?=[A-Z])|([a-z][,;:])(?=[a-zA-Z])/g, '$& ');
  return symbols(t).replace(/[^\S\n]+/g, ' ').replace(/ ?\n ?/g, '\n').trim(); // prettier-ignore
}

/** Chinese and Japanese without markup, and with plain punctuation. Their numbers are written out as they are read (mandarin.ts, japanese.ts). */
function withoutMarkup(text: string): string {
  const t = withoutTags(withoutFormulas(withFewMarks(text).normalize('NFC').replace(/\r\n?/g, '\n')));
  // Marks of emphasis within a run of words are no words' beginnings and ends for Markdown.
  const marked = withoutEntities(withoutMarkdown(t)).replace(/[*_#>|~^\\`]{2,}|(?<!\d)[*_`](?!\d)/g, '');
  const plain = plainCjkPunctuation(marked);
  return withoutInvisible(plain)
    .replace(/ ?\n ?/g, '\n')
    .trim();
}

/** Writes out feet and inches that are marked by primes. */
function feet(text: string): string {
  return text
    .replace(/(?<![\d°]\s?)(\d{1,2})′\s?(\d{1,2})″/g, '$1 foot $2')
    .replace(/(?<=\d)″(?=\s[a-z])/g, ' inch')
    .replace(/(?<=\d)″/g, ' inches')
    .replace(/(?<=\d)′(?!\d)/g, ' feet');
}

function phone(digits: string): string {
  const groups = digits.match(/\d+/g)!.map((group) => [...group].join(' '));
  return `${digits.startsWith('+') ? 'plus ' : ''}${groups.join(', ')}`;
}

function clock(_: string, hour: string, minute: string, second: string | undefined, half: string | undefined): string {
  const minutes = minute === '00' ? (half || second ? '' : " o'clock") : ` ${minute.replace(/^0/, 'oh ')}`;
  return `${Number(hour)}${minutes}${second ? ` and ${Number(second)} seconds` : ''}${half ? ` ${half.toUpperCase()}M` : ''}`;
}

/** Writes out the time zone of an ISO 8601 time: Z, +02:00. */
function timeZone(zone: string): string {
  const [, sign, hours, minutes] = /^([+-])(\d\d):?(\d\d)$/.exec(zone) ?? [];
  if (sign === undefined) return zone && ' UTC';
  return ` UTC ${sign === '+' ? 'plus' : 'minus'} ${Number(hours)}${minutes === '00' ? '' : ` ${minutes}`}`;
}

function year(digits: string): string {
  const century = digits.slice(0, 2);
  const rest = digits.slice(2);
  return rest === '00' ? `${century} hundred` : `${century} ${rest.replace(/^0/, 'oh ')}`;
}

function decade(_: string, digits: string): string {
  const tens = Number(digits[2]);
  if (tens === 0) return digits === '200' ? 'two thousands' : `${digits.slice(0, 2)} hundreds`;
  return `${digits.slice(0, 2)} ${DECADES[tens]}`;
}

/** Writes out decimals and versions: 3.14 -> 3 point 1 4; 1.2.3 -> 1 point 2 point 3; X.509 -> X point 5 0 9. */
function decimal(number: string, at: number, text: string): string {
  const [whole, ...rest] = number.split('.');
  const isOfWord = whole === '' && /[a-zA-Z]/.test(text[at - 1] ?? '');
  const first = whole || (rest.length > 1 || isOfWord ? '' : 'zero');
  const spoken = [first, ...(rest.length > 1 ? rest : [[...rest[0]!].join(' ')])].join(' point ');
  return isOfWord ? spoken : spoken.trim();
}

const PARTS = ['', '', 'half', 'third', 'quarter', 'fifth', 'sixth', 'seventh', 'eighth', 'ninth', 'tenth'];

function fraction(_: string, count: string, of: string): string {
  const part = PARTS[Number(of)]!;
  if (count === '1') return `one ${part}`;
  return `${count} ${part === 'half' ? 'halves' : `${part}s`}`;
}

/** A sentence of speakable text, and whether it ends a paragraph. */
export interface Sentence {
  readonly text: string;
  /** Whether a new paragraph follows. */
  readonly endsParagraph: boolean;
}

/** Splits normalised text after . ! ? … (with closing quotes) and at line breaks; every character but white space is in some sentence. */
export function splitSentences(text: string): Sentence[] {
  const sentences: Sentence[] = [];
  const paragraphs = text.split(/\n+/).map((p) => p.trim()).filter((p) => p.length > 0); // prettier-ignore
  for (const paragraph of paragraphs) {
    // A single capital before the point is an initial, not an end.
    const parts = paragraph.split(/(?<=(?<!(?<![\p{L}\p{M}])\p{Lu})[.!?…]["”')]*)\s+/u);
    parts.forEach((part, i) => sentences.push({ text: part, endsParagraph: i === parts.length - 1 }));
  }
  return sentences;
}

/**
 * A sentence with more than LONG_START characters is spoken first clause first, if that and the rest have LEAST_CLAUSE each, a phrase of about one and a half
 * seconds.
 */
const LONG_START = 72;
const LEAST_CLAUSE = 24;

/** Letters that are spoken in the time of a character. */
export const lettersPerCharacter = (language: SpeechLanguage): number => ({ zh: 4, ja: 3 })[language as string] ?? 1;

/** Splits a long sentence after its first clause; undefined if the sentence is short or a single clause. */
export function splitFirstClause(text: string, language: SpeechLanguage = 'en-us'): readonly [string, string] | undefined {
  const size = lettersPerCharacter(language);
  if (size * text.length <= LONG_START) return undefined;
  const ends = [...text.matchAll(/[,;:—]["”')]*\s+/g)].map((match) => match.index + match[0].length);
  const end = ends.find((place) => size * place >= LEAST_CLAUSE && size * (text.length - place) >= LEAST_CLAUSE);
  return end === undefined ? undefined : [text.slice(0, end).trim(), text.slice(end).trim()];
}

/** Splits text near its middle: after a clause mark, else at a space, else (Chinese, Japanese) behind a word, else anywhere; undefined if it is a single character. */
export function halveText(text: string, language: SpeechLanguage = 'en-us'): readonly [string, string] | undefined {
  const middle = text.length / 2;
  for (const pattern of [/[,;:—.!?…]["”')]*\s+/g, /\s+/g]) {
    const ends = [...text.matchAll(pattern)].map((match) => match.index + match[0].length).filter((end) => end < text.length);
    // A clause that leaves less than a fifth on one side is no better than a space in the middle.
    const best = ends.filter((end) => Math.abs(end - middle) < 0.6 * middle).sort((a, b) => Math.abs(a - middle) - Math.abs(b - middle))[0];
    if (best !== undefined) return [text.slice(0, best).trim(), text.slice(best).trim()];
  }
  const word = isUnspaced(language) ? middleWordEnd(text, language) : undefined;
  if (word !== undefined) return [text.slice(0, word), text.slice(word)];
  const characters = [...text];
  if (characters.length < 2) return undefined;
  const half = Math.floor(characters.length / 2);
  return [characters.slice(0, half).join(''), characters.slice(half).join('')];
}

/** Most phonemes per character: words are read, other letters are spelled, numbers and emoji are named. */
const PHONEMES = { word: 1.5, spelled: 12, digit: 16, mark: 1, other: 80 } as const;

/** Estimates, on the high side, the number of phonemes of normalised text, without reading it. */
export function phonemesAtMost(text: string, language: SpeechLanguage = 'en-us'): number {
  let sum = 0;
  for (const [part] of text.matchAll(/[a-z]+|\d+|[\s;:,.!?—…"'“”()-]+|[^]/giu)) {
    if (/^[a-z]/i.test(part)) {
      const isWord = /[aeiouy]/i.test(part) && part !== part.toUpperCase();
      sum += isWord ? PHONEMES.word * part.length + 2 : PHONEMES.spelled * part.length;
    } else if (/^\d/.test(part)) sum += PHONEMES.digit * part.length;
    else if (/^[\s;:,.!?—…"'“”()-]/.test(part)) sum += PHONEMES.mark * part.length;
    else sum += (isUnspaced(language) ? cjkPhonemesAtMost(part, language) : undefined) ?? PHONEMES.other * part.length;
  }
  return Math.ceil(sum);
}
