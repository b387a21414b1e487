/** Reads Roman numerals after centuries, numbered words and names of rulers. */

import { valueOf } from '../roman-numerals.ts';
import { BEGINS } from './notation.ts';

/** Words around Roman numerals, as regular expression sources, and how their numbers are written for espeak-ng. */
export interface RomanWords {
  /** Words for a century, before or after its numeral. */
  readonly centuries: string;
  /** Words that are numbered. */
  readonly counted: string;
  /** Names of rulers: of men and of women. */
  readonly kings: string;
  readonly queens: string;
  /** Writes a number of a century or of a ruler. */
  readonly ordinal: (value: number, feminine: boolean) => string;
}

/** Some letters alone are a type (tipo C) or an initial (Juan C. Pérez). */
const SURE = '(?![CL](?![IVXLC]))(?![IX]\\.)';
const NUMERAL = '[IVXLC]{1,9}(?![\\p{L}\\p{M}\\d])';

/** Converts numerals where they are surely numbers; after other names they are so from two letters on. */
export function withoutRoman(text: string, { centuries, counted, kings, queens, ordinal }: RomanWords): string {
  const named = (feminine: boolean) => (all: string) => {
    const value = valueOf(all);
    return value === undefined ? all : ordinal(value, feminine);
  };
  const plain = (all: string): string => String(valueOf(all) ?? all);
  const several = `${NUMERAL}(?:(?:, ?| (?:y|e|et|al?|au|o|ou|à) |\\s?[-–]\\s?)${NUMERAL}){0,3}`;
  const inner = new RegExp(`(?<![\\p{L}\\p{M}])${NUMERAL}`, 'gu');
  return text
    .replace(
      new RegExp(`(?<=${BEGINS}(?:${centuries}) )${several}|(?<![\\p{L}\\p{M}])${several}(?= (?:${centuries})(?![\\p{L}]))`, 'giu'),
      (all) => all.replace(inner, named(false)),
    )
    .replace(new RegExp(`(?<=${BEGINS}(?:${kings}) )${SURE}${NUMERAL}`, 'gu'), named(false))
    .replace(new RegExp(`(?<=${BEGINS}(?:${queens}) )${SURE}${NUMERAL}`, 'gu'), named(true))
    .replace(new RegExp(`(?<=${BEGINS}(?:${counted}) )(?![CL](?![IVXLC]))${NUMERAL}`, 'giu'), plain)
    .replace(new RegExp(`(?<=${BEGINS}\\p{Lu}\\p{Ll}{2,20} )(?=[IVX]{2})(?!X+(?!\\p{L}))${NUMERAL}`, 'gu'), plain);
}
