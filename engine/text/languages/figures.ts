/** Writes out dates, times, telephone numbers, ranges, fractions and decimals, and brings numbers into one form. */

import { BEGINS, ENDS } from './notation.ts';
import type { Reader } from './notation.ts';

/** Writes out numeric dates. The day comes first, unless the second number is no month. */
export function dates(text: string, n: Reader): string {
  const named = (all: string, day: string, month: string, year: string): string => {
    const [d, m] = Number(month) > 12 ? [Number(month), Number(day)] : [Number(day), Number(month)];
    if (d < 1 || d > 31 || m < 1 || m > 12) return all;
    return n.date(d, n.months[m - 1]!, year.length === 2 ? `${Number(year) < 50 ? 20 : 19}${year}` : year);
  };
  return text
    .replace(
      /(?<![\d/.-])(\d{4})([-/])(0[1-9]|1[0-2])\2(0[1-9]|[12]\d|3[01])(?:T(\d\d:\d\d)(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?(?![\d/-])/g,
      (all, year: string, _, month: string, day: string, time?: string) => named(all, day, month, year) + (time ? `, ${time}` : ''),
    )
    .replace(
      /(?<![\d/.,-])(\d{1,2})(?:([/.-])(\d{1,2})\2(\d{4})|\/(\d{1,2})\/(\d\d))(?!\d|[/.,-]\d)/g,
      (all, day: string, _, month?: string, year?: string, shortMonth?: string, shortYear?: string) =>
        named(all, day, (month ?? shortMonth)!, (year ?? shortYear)!),
    )
    .replace(
      new RegExp(`(?<=${BEGINS}(?:${n.beforeDay}) )(?!(?:1/(?:[2-9]|10)|2/3|3/4)(?!\\d))(\\d{1,2})/(\\d{1,2})(?![\\d/])`, 'giu'),
      (all, day: string, month: string) => named(all, day, month, ''),
    );
}

/** Writes out times of day: 14:30, 14h30, and 14.30 after a word for hours. */
export function times(text: string, n: Reader): string {
  return text
    .replace(
      /(?<=\d)\s?([apAP])(?:[mM]|\.\s?[mM])(?:\.(?!\s*$|\s+\p{Lu}))?(?![\p{L}\p{M}])/gu,
      (_, half: string) => ` ${half.toUpperCase()} M`,
    )
    .replace(/(?<!\d)(\d{1,3})\s?h\s?0?(\d{1,2})\s?min(?![\p{L}\p{M}])/gu, '$1 h $2 min')
    .replace(new RegExp(`(?<=${BEGINS}(?:${n.beforeHour}) )(\\d{1,2})\\.([0-5]\\d)(?!\\d|[.,]\\d)`, 'giu'), '$1:$2')
    .replace(
      new RegExp(
        `(?<=(${BEGINS}(?:${n.beforeHour}) )?)(?<![\\d:.,])([01]?\\d|2[0-4])(?::|\\s?h\\s?)([0-5]\\d)(?::([0-5]\\d))?(?:\\s?(h|hs|hrs)${ENDS}\\.?|(?![\\d:]))(?!\\s?min)(?=( (?:horas|heures|ore|बजे|[AP] M))?)`,
        'giu',
      ),
      (_, before: string | undefined, hour: string, minute: string, second?: string, short?: string, behind?: string) =>
        `${n.clock(Number(hour), Number(minute), (before ?? short ?? behind) !== undefined)}${second === undefined ? '' : ` ${n.signs['&']} ${Number(second)} ${n.measures.get('s')![1]}`}`,
    )
    .replace(/(?<=\d):(?=\d)/g, ` ${n.signs['–']} `);
}

/** Writes out telephone numbers group by group: pairs are numbers, longer groups are read digit by digit. */
export function telephones(text: string, n: Reader): string {
  const read = (number: string): string =>
    number.match(/\d+/g)!.map((group) => (group.length < 3 ? group : [...group].join(' '))).join(', '); // prettier-ignore
  return text
    .replace(/(?<![\p{L}\d.])\+\d{1,15}(?:[ .-]?(?:\(\d{1,5}\)|\d{1,15})){0,8}(?![\p{L}\d]|[.,]\d)/gu, (all) =>
      all.replace(/\D/g, '').length < 8 || all.endsWith('000000') ? all : `${n.signs['+']} ${read(all.replace('(0)', ' '))}`,
    )
    .replace(
      new RegExp(`(?<![\\p{L}\\d.,:/+-]|\\d )(?:${n.phone}|\\d{3}[.-]\\d{3}[.-]\\d{4}|\\d{3}-\\d{4})(?![\\p{L}\\d]|[.,:/ -]\\d)`, 'gu'),
      read,
    )
    .replace(/(?<![\p{L}\d.,-])\d{1,12}(?:-\d{1,12}){2,9}(?!-?[\p{L}\d])/gu, read)
    .replace(/(?<![\p{L}\d.,])(?!\d{0,30}000(?!\d))\d{10,30}(?![\p{L}\d]|[.,]\d)/gu, read);
}

/** Writes out ranges and minus signs. */
export function ranges(text: string, n: Reader): string {
  return text
    .replace(/(?<=\d)(?:\s—\s|[-–−])(?=\d{1,15}(?:[.,]\d{1,15})?\s?=)/g, ` ${n.signs['−']} `)
    .replace(
      /(?<=\d(?:[%°€]|\s?h)?)(?<!(?<!\d\s?)\p{L}-?\d{1,6})\s?[-–]\s?(?=(?:US\$|R\$|[$€£₹])?\d)|(?<=\d[:h]\d\d) — (?=\d)/gu,
      (_, at: number, whole: string) => {
        const before = Number(/\d{1,9}(?=\D{0,2}$)/.exec(whole.slice(Math.max(0, at - 11), at))?.[0]);
        // What falls from hundreds is a number with a part (article 121-3) or a year with its next (1960-61).
        return before > 99 && before > Number(/\d{1,9}/.exec(whole.slice(at, at + 15))?.[0]) ? ' ' : ` ${n.signs['–']} `;
      },
    )
    .replace(/(^|[\s(=])[-−](?=\d)/g, `$1${n.signs['−']} `);
}

/** Removes what separates thousands: 1.000.000, 1 000 000, 1,234.50. A single comma or point before three digits is ambiguous. */
export function numbers(text: string, n: Reader): string {
  const digits = (all: string): string => all.replace(/\D/g, '');
  const t = text
    .replace(/(?<![\p{L}\d.,'])[1-9]\d{0,2}(?:[ \u00a0\u2009\u202f]\d{3}){1,9}(?![\d.]?\d| \d)/gu, digits)
    .replace(/(?<![\d.,'])[1-9]\d{0,2}(?:'\d{3}){1,9}(?!\d)/g, digits)
    .replace(
      /(?<![\d.,])[1-9]\d{0,2}(?:,\d{3}){1,9}(?=\.\d{1,9}(?![\d.,]?\d))|(?<![\d.,])[1-9]\d{0,2}(?:(?:,\d{3}){2,9}|(?:,000)|(?:,\d{2}){1,6},\d{3})(?![\d,]|\.\d)/g,
      digits,
    );
  if (n.pointIsDecimal) return t.replace(/(?<![\d.,])[1-9]\d{0,2},\d{3}(?!\d|,\d)/g, digits);
  return t.replace(/(?<![\d.,])[1-9]\d{0,2}(?:\.\d{3}){1,9}(?!\d|\.\d)/g, (all) => {
    const parts = all.split('.');
    return parts.length === 4 && parts.every((part) => Number(part) < 256) ? all : parts.join('');
  });
}

/** Writes out whole numbers that espeak-ng would say wrongly. */
export function wholeNumbers(text: string, { whole }: Reader): string {
  return whole ? text.replace(/(?<![\p{L}\d.,])[1-9]\d{3,11}(?![\p{L}\d]|[.,]\d)/gu, whole) : text;
}

/** Writes out fractions: 3/4, 2 1/2, ½. */
export function fractions(text: string, n: Reader): string {
  return text
    .replace(/(\d?)([¼-¾⅐-⅞])/g, (_, whole: string, part: string) => `${whole && `${whole} `}${part.normalize('NFKC').replace('⁄', '/')}`)
    .replace(/(?<![\d/])(24\/7|50\/50)(?![\d/])/g, (pair) => pair.replace('/', ' '))
    .replace(/(?<=(?<![\d.,])\d{1,4})(?: (?:e|y|et))? 1\/2(?![\d/])/g, ` ${n.half}`)
    .replace(/(?<![\d/.,])(\d{1,3}(?:[.,]\d)?)\s?\/\s?(\d{1,3})(?![\d/]|[.,]\d)/g, (_, count: string, of: string) =>
      /^[1-9]$/.test(count) && Number(of) > 1 && Number(of) <= 10
        ? n.fraction(Number(count), Number(of))
        : `${count} ${n.signs['⁄']} ${of}`,
    );
}

/** Writes out decimals and versions. Two decimals are one number, unless they begin with a zero; more are read one by one. */
export function decimals(text: string, n: Reader): string {
  return text
    .replace(/(?<![\d.])\d{1,9}(?:\.\d{1,9}){2,9}(?!\d)/g, (all) => all.replaceAll('.', ` ${n.point} `))
    .replace(/(?<!\d)(\d*)([.,])(\d{1,99})(?!\d)/g, (all, whole: string, mark: string, part: string, at: number) => {
      if (whole === '' && (mark === ',' || /[\p{L}\d]/u.test(text[at - 1] ?? ''))) return all;
      const isOne = part.length === 1 || (part.length === 2 && !part.startsWith('0') && !n.pointIsDecimal);
      return `${whole || '0'} ${n.signs[mark]} ${isOne ? part : [...part].join(' ')}`;
    });
}
