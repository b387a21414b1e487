/** Figures that are written in several ways, in the one way that normalizeText reads, or in words. */

const MONTHS = 'January February March April May June July August September October November December'.split(' ');

/** Dates with slashes, fractions, amounts of money, arithmetic, and digits that are read one by one. */
export function figures(text: string): string {
  return digitByDigit(amounts(fractions(dates(text))))
    .replace(/(?<=\d)\s—\s(?=\d+(?:\.\d+)?\s*=)/g, ' minus ')
    .replace(/\bv(?=\d+\.\d)/g, 'version ');
}

/** 3/14/2023, and where that is no month 14/3/2023. */
function dates(text: string): string {
  return text.replace(/(?<![\d/])(\d{1,2})\/(\d{1,2})\/(\d{4})(?![\d/])/g, (all, a: string, b: string, year: string) => {
    const [month, day] = Number(a) <= 12 ? [Number(a), Number(b)] : [Number(b), Number(a)];
    return month < 1 || month > 12 || day < 1 || day > 31 ? all : `${MONTHS[month - 1]} ${day}, ${year}`;
  });
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
    .replace(/(\d+)\s?¢/g, (_, count: string) => `${count} ${count === '1' ? 'cent' : 'cents'}`);
}

/** Numbers that begin with zeros, and those that are called. */
function digitByDigit(text: string): string {
  const spelled = (digits: string): string => [...digits].join(' ');
  return text
    .replace(/(?<![\d.,:/-])0\d+(?![\d:/-]|[.,]\d)/g, spelled)
    .replace(/(?<=\b(?:call|dial|phone|ring)\s)\d{3}\b(?![-.]\d)/gi, spelled);
}
