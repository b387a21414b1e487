/** What a language is asked for, so that the same code writes out its notations. */

/** A noun with its plural, and whether it is feminine. */
export interface Noun {
  readonly one: string;
  readonly many: string;
  readonly feminine: boolean;
}

/** Words and rules of a language for what is not written in words. */
export interface Notation {
  /** Names of signs: of those in addresses, of the decimal marks, and of arithmetic (÷ is "divided by", – "to" in ranges). */
  readonly signs: Readonly<Record<string, string>>;
  /** Name of the points of addresses and versions. */
  readonly point: string;
  /** Further top-level domains, each after a bar. */
  readonly domains: string;
  readonly months: readonly string[];
  /** Said for the number of a note, and for a checked task. */
  readonly note: string;
  readonly done: string;
  /** Abbreviations before a name, before a number, and anywhere, as "short=long" with bars between. */
  readonly titles: string;
  readonly numbered: string;
  readonly short: string;
  /** Units as "symbol=name" or "symbol=name/plural", with bars between. */
  readonly units: string;
  /** Currencies as "sign=one/many/cent/cents", with bars between. */
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
