/** Writes out money, percentages and units after numbers, and makes numbers agree with their nouns. */

import { BEGINS, ENDS, anyOf, pairs } from './notation.ts';
import type { Reader } from './notation.ts';

const NUMBER = '\\d{1,15}(?:[.,]\\d{1,9})?';

/** Value of a number with a decimal comma or point. */
const valueOf = (number: string): number => Number(number.replace(',', '.'));
const isWhole = (number: string): boolean => /^\d+$/.test(number);

/** A number with a noun: agreeing, if it is whole. */
function counted(number: string, one: string, many: string, n: Reader): string {
  const noun = valueOf(number) === 1 || (!isWhole(number) && n.isSingular(valueOf(number))) ? one : many;
  return isWhole(number) ? n.count(number, noun, n.isFeminine(one)) : `${number} ${noun}`;
}

/** Writes out amounts of money, with the sign before or after the number. */
export function money(text: string, n: Reader): string {
  const scales = new Map(pairs(n.scales));
  const sign = anyOf([...n.money.keys()]);
  const scale = `(?:\\s?(${anyOf([...scales.keys()])})(?![\\p{L}\\p{M}]))?`;
  const amount = (number: string, scaled: string | undefined, symbol: string): string => {
    const [[one, many], cents] = n.money.get(symbol) as readonly [readonly [string, string], (readonly [string, string])?];
    if (scaled !== undefined) return `${number} ${scales.get(scaled)} ${many}`.replace(/ de (?=euros)/, n.elided);
    const [, whole, part] = /^(\d+)[.,](\d\d)$/.exec(number) ?? [];
    if (part === undefined || cents === undefined) return counted(number, one, many, n);
    if (part === '00') return counted(whole!, one, many, n);
    const small = counted(String(Number(part)), ...cents, n);
    return Number(whole) === 0 ? small : `${counted(whole!, one, many, n)} ${n.cents(small, String(Number(part)))}`;
  };
  const to = n.signs['–'];
  const each = `(?:/((?!\\p{Lu})\\p{L}[\\p{L}\\p{M}]{0,11})${ENDS})?`;
  const per = (unit: string | undefined): string => (unit === undefined ? '' : ` ${n.per(n.measures.get(unit)?.[0] ?? unit)}`);
  return text
    .replace(/(?<=(?<![\d.,])\d{1,9})€(\d\d)(?!\d)/g, ',$1 €')
    .replace(
      new RegExp(`(?<![\\p{L}\\p{M}\\d])(${sign})\\s?(${NUMBER})(?: ${to} (?:\\1)?\\s?(${NUMBER}))?(?!\\d)${scale}${each}`, 'gu'),
      (_, symbol: string, number: string, last?: string, scaled?: string, unit?: string) =>
        `${last === undefined ? '' : `${number} ${to} `}${amount(last ?? number, scaled, symbol)}${per(unit)}`,
    )
    .replace(
      new RegExp(`(?<![\\d.,])(${NUMBER})${scale}\\s?(${sign})(?![\\p{L}\\p{M}\\d])${each}`, 'gu'),
      (_, number: string, scaled: string | undefined, symbol: string, unit?: string) => amount(number, scaled, symbol) + per(unit),
    );
}

/** Writes out units after numbers, alone or with a unit after a slash. */
export function units(text: string, n: Reader): string {
  const symbols = anyOf([...n.measures.keys()]);
  return text
    .replace(/(?<=\d\s?[ckm]?m)[23](?![\p{L}\d])/gu, (power) => (power === '2' ? '²' : '³'))
    .replace(/(?<=\d\s?)º(?=\s?[CF](?![\p{L}]))/gu, '°')
    .replace(/(?<=\d\s?)[℃℉]/g, (sign) => (sign === '℃' ? '°C' : '°F'))
    .replace(/(?<=\d)\s?°\s(?=[CF](?![\p{L}]))/gu, '°')
    .replace(/µ/g, 'μ')
    .replace(
      new RegExp(
        `(?<![\\d.,])(${NUMBER})\\s?(${symbols})(?:/(${symbols}|(?!\\p{Lu})\\p{L}[\\p{L}\\p{M}]{0,11}))?(?![\\p{L}\\p{M}\\d²³'/])(?:\\.(?=\\s+\\p{Ll}))?`,
        'gu',
      ),
      (_, number: string, symbol: string, per?: string) => {
        return counted(number, ...n.measures.get(symbol)!, n) + (per === undefined ? '' : ` ${n.per(n.measures.get(per)?.[0] ?? per)}`);
      },
    )
    .replace(/(?<=[\p{L}\d])\s?%/gu, ` ${n.signs['%']}`)
    .replace(/(?<=\d)\s?‰/g, ` ${n.signs['‰']}`);
}

/** Makes whole numbers agree with the nouns behind them, unless they may be years. */
export function agreement(text: string, n: Reader): string {
  if (n.counted === undefined) return text;
  return text.replace(
    new RegExp(`${BEGINS}(?<!\\d[.,]| [.,] )(\\d{1,9}) (${n.counted.source})${ENDS}`, 'gu'),
    (all, digits: string, noun: string) => (/^(?:1\d|20)\d\d$/.test(digits) ? all : n.count(digits, noun, n.isFeminine(noun))),
  );
}
