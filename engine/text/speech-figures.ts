/** Brings figures that can be written in several ways into the one that normalizeText reads, or into words. */

import { MONTHS } from './abbreviations.ts';
import { amounts, europeanNumbers } from './speech-money.ts';

/** Normalises numeric dates, grouped thousands, fractions, amounts of money, arithmetic, and digits that are read one by one. */
export function figures(text: string): string {
  return digitByDigit(amounts(fractions(dates(europeanNumbers(joined(text))))))
    .replace(/(?<=\d)(?:\s—\s|[-–−])(?=\d+(?:\.\d+)?\s*=)/g, ' minus ')
    .replace(/\bv(?=\d+\.\d)/g, 'version ');
}

/** Joins thousands that are not grouped as in English: 10 000, 1'000'000, 1_000_000, 1,00,000. A plain space joins only groups of zeros, a no-break space any. */
function joined(text: string): string {
  return text
    .replace(
      /(?<![\d.,]|\d )(\d{1,3})((?: 000)+)(?![\d.]\d| ?\d|,\d{3})/g,
      (_, first: string, rest: string) => first + rest.replaceAll(' ', ''),
    )
    .replace(/(?<![\d.,'_])\d{1,3}(?:[\u00a0\u2009\u202f]\d{3}|'\d{3}|_\d{3})+(?![\d'_])/g, (all) => all.replace(/\D/g, ''))
    .replace(/(?<![\d.,])\d{1,2}(?:,\d{2})+,\d{3}(?![\d,])/g, (all) => all.replaceAll(',', ''));
}

/**
 * Writes out numeric dates. With slashes or hyphens the month comes first (3/14/2023), unless it is above 12; with points the day does (14.3.2023), unless the
 * second number is above 12.
 */
function dates(text: string): string {
  const named = (all: string, month: number, day: number, year: string): string =>
    month < 1 || month > 12 || day < 1 || day > 31 ? all : `${MONTHS[month - 1]} ${day}, ${year}`;
  return text
    .replace(
      /(?<![\d/])((?:19|20)\d{2})\/(0[1-9]|1[0-2])\/(0[1-9]|[12]\d|3[01])(?![\d/])/g,
      (all, year: string, month: string, day: string) => named(all, Number(month), Number(day), year),
    )
    .replace(/(?<![\d/-])(\d{1,2})([/-])(\d{1,2})\2(\d{4})(?![\d/-])/g, (all, a: string, _, b: string, year: string) =>
      Number(a) <= 12 ? named(all, Number(a), Number(b), year) : named(all, Number(b), Number(a), year),
    )
    .replace(/(?<![\d.])(\d{1,2})\.(\d{1,2})\.((?:19|20)\d{2})(?![\d]|\.\d)/g, (all, a: string, b: string, year: string) =>
      Number(b) <= 12 ? named(all, Number(b), Number(a), year) : named(all, Number(a), Number(b), year),
    );
}

/** Writes out mixed numbers, fraction characters and ratings (4/5 stars: 4 out of 5); 24/7 and the like are no fractions. */
function fractions(text: string): string {
  return text
    .replace(/(?<![\d/.])(\d{1,2}(?:\.\d)?)\/(\d{1,3})(?= (?:stars?|points|correct|votes)\b)/g, '$1 out of $2')
    .replace(
      /(?<=\b(?:rated|rating|rating:|scored|score|score:|gave it|give it|got)(?: an?| of)? )(\d{1,2}(?:\.\d)?)\/(\d{1,3})(?![\d/])/gi,
      '$1 out of $2',
    )
    .replace(/(\d?)([¼-¾⅐-⅞])/g, (_, whole: string, part: string) => `${whole && `${whole} `}${part.normalize('NFKC').replace('⁄', '/')}`)
    .replace(
      /\b(\d+) 1\/([2-9])(?![\d/])/g,
      (_, whole: string, of: string) => `${whole} and ${of === '8' ? 'an' : 'a'} ${PARTS[Number(of)]!}`,
    )
    .replace(/\b(\d+) (?=[2-9]\/(?:[2-9]|10)(?![\d/]))/g, '$1 and ')
    .replace(/\b([Aa]) 1\/2(?![\d/])/g, '$1 half')
    .replace(/(?<![\d/])(24\/7|9\/11|20\/20|50\/50)(?![\d/])/g, (pair) => pair.replace('/', ' '));
}

const PARTS = ['', '', 'half', 'third', 'quarter', 'fifth', 'sixth', 'seventh', 'eighth', 'ninth'];

/** Spells out numbers that are read digit by digit: those with leading zeros, of telephones, cards and books, and computers' (0xff, #a1b2c3, 10.0.0.1). */
function digitByDigit(text: string): string {
  return text
    .replace(/(?<!\w)0([xX][\da-fA-F]{1,64}|[bB][01]{1,64}|o[0-7]{1,64})\b/g, (_, digits: string) => `0 ${spelled(digits.toUpperCase())}`)
    .replace(/#(?=\d{0,5}[a-fA-F])(?=[a-fA-F]{0,5}\d)([\da-fA-F]{6})\b/g, (_, digits: string) => `#${spelled(digits.toUpperCase())}`)
    .replace(/(?<![\w.])\+\d{1,15}(?:[ .-]?(?:\(\d{1,5}\)|\d{1,15})){0,8}(?![\w.]?\d)/g, called)
    .replace(
      /(?<![\w.,:/+-])(?:0\d{1,4}(?:[ -]\d{2,8}){1,4}|\(0\d{1,4}\)(?: ?\d{2,8}){1,4}|(?:1 )?\(\d{3}\) \d{3} \d{4}|\d{3} \d{3} \d{4}|\d{4}(?: \d{4}){2,4})(?![\w.,-]?\d| \d)/g,
      (all) => (all.replace(/\D/g, '').length < 9 ? all : grouplets(all)),
    )
    .replace(/(?<![\w.,-])\d{1,12}(?:-\d{1,12}){2,}(?!-?\w)/g, (all) =>
      /^\d-\d{3}-\d{3}-\d{4}$/.test(all) || hasPhone(all) ? all : chain(all),
    )
    .replace(/(?<![\d.])(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})(?![\d.]?\d)/g, '$1 dot $2 dot $3 dot $4')
    .replace(/(?<![\d.,:/-])0\d+(?![\d:/-]|[.,]\d)/g, spelled)
    .replace(/(?<=\b(?:call|dial|phone|ring)\s)\d{3}\b(?![-.]\d)/gi, spelled);
}

const spelled = (digits: string): string => [...digits].join(' ');
const grouplets = (number: string): string => number.match(/\d+/g)!.map(spelled).join(', ');
const hasPhone = (number: string): boolean => /^(?:\d-)?\d{3}-\d{3}-\d{4}$/.test(number);

/** Spells out a phone number with a country code. A zero in brackets is dropped: it is not dialled after the code. */
function called(all: string): string {
  const digits = all.replace(/\D/g, '').length;
  const separated = /\d[ .-]|\(/.test(all);
  return digits < (separated ? 8 : 10) || all.endsWith('000000') ? all : `plus ${grouplets(all.replace('(0)', ' '))}`;
}

/** Reads three or more numbers with hyphens between them, which are no range (978-3-16-148410-0, 4-4-2). Long ones are read digit by digit. */
function chain(all: string): string {
  return all.length > 9 ? grouplets(all) : all.replaceAll('-', ' ');
}
