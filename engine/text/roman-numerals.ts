/** Converts Roman numerals where they are surely numbers: after words that are numbered, and after names of rulers. */

/** Words after which a numeral is a number. A single letter is one only after some of them (SINGLE): not in "Class C", nor in "the part I like". */
const COUNTED =
  'World War|Chapter|Act|Volume|Scene|Part|Section|Book|Article|Appendix|Phase|Type|Class|Super Bowl|Episode|Title|Stage|Grade|Level|Table|Figure|Annex|Psalm|Canto|Apollo';
const SINGLE: Readonly<Record<string, RegExp>> = {
  I: /^(?:World War|Chapter|Act|Volume|Scene)$/,
  V: /^(?:Chapter|Act|Volume|Scene|Part|Book|Article)$/,
  X: /^(?:Chapter|Volume|Scene|Part|Book|Article)$/,
};
/** Names after which a numeral is an ordinal. */
const RULERS =
  'Henry|Louis|Elizabeth|George|Edward|Richard|Charles|James|William|Mary|Paul|Pius|Benedict|Leo|Gregory|Innocent|Clement|Napoleon|Philip|Frederick|Ferdinand|Alexander|Nicholas|Catherine|Peter|Ivan|Otto|Gustav|Christian|Harald|Ramses|Ptolemy|Darius|Francis|Leopold';
const VALUES: Readonly<Record<string, number>> = { I: 1, V: 5, X: 10, L: 50, C: 100 };
/** Ordinals in words, used before a possessive 's, which would not be read after figures. */
const ORDINALS =
  ' first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth'.split(
    ' ',
  );
/** A well-formed numeral up to 399. */
const WELL_FORMED = /^(?=.)C{0,3}(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})$/;

/**
 * Numerals after numbered words become numbers ("Part III": "Part 3"), and after names of rulers ordinals ("Henry VIII": "Henry the 8th"). After other names they
 * are numbers ("Rocky IV").
 */
export function withoutRomanNumerals(text: string): string {
  return text
    .replace(new RegExp(`\\b(${COUNTED}) ([IVXLC]+|[ivxl]+)\\b(?!\\.[A-Z])`, 'g'), (all, counted: string, numeral: string) => {
      const letters = numeral.toUpperCase();
      const value = valueOf(letters);
      return value === undefined || (letters.length === 1 && !SINGLE[letters]?.test(counted)) ? all : `${counted} ${value}`;
    })
    .replace(new RegExp(`\\b(${RULERS}) ([IVX]{2,}|[VX](?!\\.))\\b('s)?`, 'g'), (all, name: string, numeral: string, owns?: string) => {
      const value = valueOf(numeral);
      if (value === undefined) return all;
      return `${name} the ${owns === undefined ? `${value}${ending(value)}` : `${ORDINALS[value] ?? `${value}${ending(value)}`}'s`}`;
    })
    .replace(/\b([IVX]+)(?:st|nd|rd|th)? (?=[Cc]entur(?:y|ies)\b)/g, (all, numeral: string) => {
      const value = valueOf(numeral);
      return value === undefined ? all : `${value}${ending(value)} `;
    })
    .replace(
      /(?<=\b(?!(?:The|An?|In|On|My|His|Her|No|By|Via|Start|Stop|Give|Use)\b)[A-Z][a-z]{1,20} )(?!X+\b)([IVX]{2,8})\b(?![-.][A-Z\d])/g,
      (all, numeral: string) => String(valueOf(numeral) ?? all),
    );
}

/** The value of a well-formed Roman numeral up to 399; undefined if it is none. */
export function valueOf(numeral: string): number | undefined {
  if (!WELL_FORMED.test(numeral)) return undefined;
  const values = [...numeral].map((letter) => VALUES[letter]!);
  return values.reduce((sum, value, i) => sum + (value < (values[i + 1] ?? 0) ? -value : value), 0);
}

const ending = (value: number): string => (value > 10 && value < 20 ? 'th' : (['th', 'st', 'nd', 'rd'][value % 10] ?? 'th'));
