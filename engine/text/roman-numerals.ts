/** Roman numerals where a reader knows them to be numbers: behind what is counted, and behind names of rulers. */

/** Behind these a numeral is a number; a single letter is one behind some of them: Class C is none, and "the part I like" neither. */
const COUNTED = 'World War|Chapter|Act|Volume|Scene|Part|Section|Book|Article|Appendix|Phase|Type|Class|Super Bowl';
const SINGLE: Readonly<Record<string, RegExp>> = {
  I: /^(?:World War|Chapter|Act|Volume|Scene)$/,
  V: /^(?:Chapter|Act|Volume|Scene|Part|Book|Article)$/,
  X: /^(?:Chapter|Volume|Scene|Part|Book|Article)$/,
};
/** Behind these it is an ordinal. */
const RULERS =
  'Henry|Louis|Elizabeth|George|Edward|Richard|Charles|James|William|Mary|Paul|Pius|Benedict|Leo|Gregory|Innocent|Clement|Napoleon|Philip|Frederick|Ferdinand|Alexander|Nicholas|Catherine|Peter|Ivan|Otto|Gustav|Christian|Harald|Ramses|Ptolemy|Darius|Francis|Leopold';
const VALUES: Readonly<Record<string, number>> = { I: 1, V: 5, X: 10, L: 50, C: 100 };
/** Up to 399. */
const WELL_FORMED = /^(?=.)C{0,3}(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})$/;

/** Numerals behind what is counted become numbers ("Part III": "Part 3"), and behind names ordinals ("Henry VIII": "Henry the 8th"). */
export function withoutRomanNumerals(text: string): string {
  return text
    .replace(new RegExp(`\\b(${COUNTED}) ([IVXLC]+|[ivxl]+)\\b(?!\\.[A-Z])`, 'g'), (all, counted: string, numeral: string) => {
      const letters = numeral.toUpperCase();
      const value = valueOf(letters);
      return value === undefined || (letters.length === 1 && !SINGLE[letters]?.test(counted)) ? all : `${counted} ${value}`;
    })
    .replace(new RegExp(`\\b(${RULERS}) ([IVX]{2,}|[VX](?!\\.))\\b`, 'g'), (all, name: string, numeral: string) => {
      const value = valueOf(numeral);
      return value === undefined ? all : `${name} the ${value}${ending(value)}`;
    });
}

function valueOf(numeral: string): number | undefined {
  if (!WELL_FORMED.test(numeral)) return undefined;
  const values = [...numeral].map((letter) => VALUES[letter]!);
  return values.reduce((sum, value, i) => sum + (value < (values[i + 1] ?? 0) ? -value : value), 0);
}

const ending = (value: number): string => (value > 10 && value < 20 ? 'th' : (['th', 'st', 'nd', 'rd'][value % 10] ?? 'th'));
