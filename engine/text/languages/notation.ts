/** What a language is asked for, so that the same code writes out its notations. */

/** Words and rules of a language for what is not written in words. */
export interface Notation {
  /** Names of SIGNS, with bars between: of those in addresses, of the decimal marks, and of arithmetic (÷ is "divided by", – "to" in ranges). */
  readonly names: string;
  /** Name of the points of addresses and versions. */
  readonly point: string;
  /** Further top-level domains, with bars between. */
  readonly domains: string;
  readonly months: readonly string[];
  /** Said for the number of a note, and for a checked task. */
  readonly note: string;
  readonly done: string;
  /** Abbreviations before a name, before a number, and anywhere, as "short=long" with bars between. */
  readonly titles: string;
  readonly numbered: string;
  readonly short: string;
  /** Units that take prefixes as "symbol=name" or "symbol=name/plural", with bars between; a star is before those that are written with a prefix only. */
  readonly bases: string;
  /** Names of PREFIXES, with spaces between. */
  readonly prefixes: string;
  /** Further units. */
  readonly units: string;
  /** What square and cubic units are called, with $ for the unit. */
  readonly square: string;
  readonly cubic: string;
  /** Names of CURRENCIES with those of their hundredths, as "one/many one/many", with bars between. */
  readonly currencies: string;
  /** Powers of ten after an amount of money, as "short=long" with bars between. Those that take a preposition before the currency have it. */
  readonly scales: string;
  /** The preposition between millions and euros, with its spaces. */
  readonly elided: string;
  /** Regular expression sources: telephone numbers, and words before an hour, and before a day with its month. */
  readonly phone: string;
  readonly beforeHour: string;
  readonly beforeDay: string;
  /** Nouns after a number that are not units; the number agrees with them. */
  readonly counted: RegExp | undefined;
  /** Whether a comma separates thousands and a point decimals, not the reverse. */
  readonly pointIsDecimal: boolean;
  readonly plural: (noun: string) => string;
  readonly isFeminine: (noun: string) => boolean;
  /** Whether a decimal number takes the singular. */
  readonly isSingular: (value: number) => boolean;
  /** A number with its noun, in the right gender. */
  readonly count: (digits: string, noun: string, feminine: boolean) => string;
  /** Cents, with what joins them to the whole amount. */
  readonly cents: (count: string, digits: string) => string;
  /** "per hour" for "hour". */
  readonly per: (noun: string) => string;
  readonly date: (day: number, month: string, year: string) => string;
  /** A time of day; `said` tells whether a word for hours is beside it. */
  readonly clock: (hour: number, minute: number, said: boolean) => string;
  readonly fraction: (count: number, of: number) => string;
  /** A whole number and a half. */
  readonly half: string;
  /** A whole number in figures, where espeak-ng says it wrongly. */
  readonly whole?: (digits: string) => string;
  /** Ordinals and Roman numerals, and whatever only this language writes. */
  readonly own: (text: string) => string;
}

/** Splits "a=b|c=d" into its pairs. */
export const pairs = (table: string): [string, string][] =>
  table.split('|').filter((entry) => entry !== '').map((entry) => entry.split('=') as [string, string]); // prettier-ignore

/** Regular expression source of any of some words, the longest first. */
export const anyOf = (words: readonly string[]): string =>
  words.toSorted((a, b) => b.length - a.length).map((word) => word.replace(/[.$*+?()[\]^/]/g, '\\$&')).join('|'); // prettier-ignore

/** Regular expression sources of the beginning and the end of a word, in any script. */
export const BEGINS = '(?<![\\p{L}\\p{M}\\p{N}])';
export const ENDS = '(?![\\p{L}\\p{M}\\p{N}])';

const SIGNS = '.,/@?=&:_-+−×÷–⁄%‰#№±√²³^<>≥≤≠≈';
const PREFIXES = 'kMGTcmμ';
const CURRENCIES = '$€£₹¥R';
const CODES = { USD: '$', EUR: '€', GBP: '£', INR: '₹', Rs: '₹', 'Rs.': '₹', 'रु.': '₹', रु: '₹', JPY: '¥', BRL: 'R' };

/** A notation whose tables can be looked up: nouns are in the singular and in the plural. */
export interface Reader extends Notation {
  readonly signs: Readonly<Record<string, string>>;
  readonly measures: ReadonlyMap<string, readonly [string, string]>;
  /** Currencies by sign and by code; behind their own names those of their hundredths. */
  readonly money: ReadonlyMap<string, readonly (readonly [string, string])[]>;
}

/** Prepares the tables of a notation. */
export function readerOf(n: Notation): Reader {
  const names = n.names.split('|');
  const noun = (entry: string): readonly [string, string] => {
    const [one, many] = entry.split('/') as [string, string?];
    return [one, many ?? n.plural(one)];
  };
  const measures = new Map<string, readonly [string, string]>();
  const prefixes = n.prefixes.split(' ');
  for (const [symbol, entry] of pairs(n.bases)) {
    const base = symbol.replace('*', '');
    if (base === symbol) measures.set(base, noun(entry));
    prefixes.forEach((prefix, i) => {
      const prefixed = noun(entry.replace(/[^/]+/g, (name) => prefix + name));
      // TV is no measure.
      if (prefix !== prefixes[3] || /^[BbW]/.test(base)) measures.set(PREFIXES[i]! + base, prefixed);
      if (i === 0) measures.set(`K${base}`, prefixed);
    });
  }
  for (const [symbol, entry] of pairs(n.units)) measures.set(symbol, noun(entry));
  for (const symbol of ['m', 'km', 'cm', 'mm'])
    for (const [power, form] of [['²', n.square], ['³', n.cubic]] as const) measures.set(symbol + power, noun(form.replace('$', measures.get(symbol)![0]))); // prettier-ignore
  const money = new Map(n.currencies.split('|').map((entry, i) => [CURRENCIES[i]!, entry.split(' ').map(noun)]));
  for (const [code, sign] of Object.entries(CODES)) money.set(code, money.get(sign)!);
  money.delete('R');
  return { ...n, signs: Object.fromEntries(Array.from(SIGNS, (sign, i) => [sign, names[i]!])), measures, money };
}
