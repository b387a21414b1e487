/** Figures that are written in several ways, in the one way that normalizeText reads, or in words. */

const MONTHS = 'January February March April May June July August September October November December'.split(' ');

/** Dates in figures, thousands in groups, fractions, amounts of money, arithmetic, and digits that are read one by one. */
export function figures(text: string): string {
  return digitByDigit(amounts(fractions(dates(joined(text)))))
    .replace(/(?<=\d)\s—\s(?=\d+(?:\.\d+)?\s*=)/g, ' minus ')
    .replace(/\bv(?=\d+\.\d)/g, 'version ');
}

/** 10 000: thousands that stand apart. */
function joined(text: string): string {
  return text.replace(
    /(?<![\d.,]|\d )(\d{1,3})((?: 000)+)(?![\d.,]\d| ?\d)/g,
    (_, first: string, rest: string) => first + rest.replaceAll(' ', ''),
  );
}

/** 3/14/2023, with hyphens too, and where that is no month 14/3/2023. With points the day comes first wherever it can: 14.3.2023. */
function dates(text: string): string {
  const named = (all: string, month: number, day: number, year: string): string =>
    month < 1 || month > 12 || day < 1 || day > 31 ? all : `${MONTHS[month - 1]} ${day}, ${year}`;
  return text
    .replace(/(?<![\d/-])(\d{1,2})([/-])(\d{1,2})\2(\d{4})(?![\d/-])/g, (all, a: string, _, b: string, year: string) =>
      Number(a) <= 12 ? named(all, Number(a), Number(b), year) : named(all, Number(b), Number(a), year),
    )
    .replace(/(?<![\d.])(\d{1,2})\.(\d{1,2})\.((?:19|20)\d{2})(?![\d]|\.\d)/g, (all, a: string, b: string, year: string) =>
      Number(b) <= 12 ? named(all, Number(b), Number(a), year) : named(all, Number(a), Number(b), year),
    );
}

/** Mixed numbers and the characters of fractions; 24/7 and the like are no fractions. */
function fractions(text: string): string {
  return text
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

/** Ranges of money, a sign behind its number, other countries' dollars, and what is worth so many of them. */
function amounts(text: string): string {
  return text
    .replace(/\bUS\$(\d[\d,]*(?:\.\d+)?)/g, '$1 US dollars')
    .replace(/\$(\d[\d,]*)(?= (?:bill|note|coin|fine|fee|ticket)s?\b)/g, '$1 dollar')
    .replace(/([$£€]\d[\d,.]*\s?(?:thousand|million|billion|trillion|[kKmMbB]n?))\s?[-–]\s?(?=[$£€]\d)/g, '$1 to ')
    .replace(/([$£€])(\d[\d,]*(?:\.\d+)?)\s?[-–]\s?\1?(?=\d)/g, (all, sign: string, from: string) =>
      all.trimEnd().endsWith(sign) || /\.\d\d$/.test(from) ? `${sign}${from} to ${sign}` : `${from} to ${sign}`,
    )
    .replace(/(\d+(?:\.\d+)?)\s?€(?!\d)/g, '€$1')
    .replace(/(?<!\d)(\d+)\s?¢/g, (_, count: string) => `${count} ${count === '1' ? 'cent' : 'cents'}`);
}

/** Numbers that begin with zeros, and those that are called. */
function digitByDigit(text: string): string {
  const spelled = (digits: string): string => [...digits].join(' ');
  return text
    .replace(/(?<![\d.,:/-])0\d+(?![\d:/-]|[.,]\d)/g, spelled)
    .replace(/(?<=\b(?:call|dial|phone|ring)\s)\d{3}\b(?![-.]\d)/gi, spelled);
}
