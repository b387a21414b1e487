/** Writes out amounts of money, however they are written. */
import { grouped, perWhat } from './speech-units.ts';

const CURRENCIES: Readonly<Record<string, readonly [string, string, string?, string?]>> = {
  $: ['dollar', 'dollars', 'cent', 'cents'],
  '£': ['pound', 'pounds', 'penny', 'pence'],
  '€': ['euro', 'euros', 'cent', 'cents'],
  '¥': ['yen', 'yen', 'sen', 'sen'],
  '₹': ['rupee', 'rupees', 'paisa', 'paise'],
  '₩': ['won', 'won', 'jeon', 'jeon'],
  '₽': ['ruble', 'rubles', 'kopeck', 'kopecks'],
  '₺': ['lira', 'lira', 'kurush', 'kurush'],
  '₪': ['shekel', 'shekels', 'agora', 'agorot'],
  '₴': ['hryvnia', 'hryvnias'],
  '₫': ['dong', 'dong'],
  '₦': ['naira', 'naira'],
  '₱': ['peso', 'pesos'],
  '฿': ['baht', 'baht'],
  '₿': ['bitcoin', 'bitcoins'],
};
const SIGN = '[$£€¥₹₩₽₺₪₴₫₦₱฿₿]';
/** Countries by the letters before a dollar sign. */
const COUNTRIES: Readonly<Record<string, string>> = {
  US: 'US', A: 'Australian', AU: 'Australian', C: 'Canadian', CA: 'Canadian', NZ: 'New Zealand', HK: 'Hong Kong', S: 'Singapore', SG: 'Singapore',
  NT: 'Taiwan', MX: 'Mexican', R: 'R',
}; // prettier-ignore
const LETTERS = '(?<![A-Za-z\\d])(?:US|AU?|CA?|NZ|HK|SG?|NT|MX|R)(?=\\$)';
/** Currency signs of ISO 4217 codes, without those that have another meaning (CAD, PHP, INR and TRY), and of Rs. */
const CODES: Readonly<Record<string, string>> = {
  USD: 'US$', EUR: '€', GBP: '£', JPY: '¥', AUD: 'A$', NZD: 'NZ$', HKD: 'HK$', BRL: 'R$', KRW: '₩', UAH: '₴', VND: '₫', NGN: '₦', THB: '฿', BTC: '₿',
  Rs: '₹', 'Rs.': '₹',
}; // prettier-ignore
const CODE = 'USD|EUR|GBP|JPY|AUD|NZD|HKD|BRL|KRW|UAH|VND|NGN|THB|BTC';
const SCALE = '\\s?(?:thousand|million|billion|trillion)\\b|\\s?(?:[bBtTmM]n)\\b|[kKmMbBT]\\b';
const NUMBER = '\\d+(?:,\\d+)*(?:\\.\\d+)?';

const BEFORE_CODE = new RegExp(`(?<!/)\\b(${CODE}|Rs\\.?)\\s?(?=\\d)`, 'g');
const BEHIND_CODE = new RegExp(
  `(?<![\\d.,]|[$£€¥]\\s?|\\b(?:[Ii]n|[Ss]ince|[Dd]uring)\\s(?=(?:19|20)\\d\\d\\s))(${NUMBER}(?:${SCALE})?)\\s?(${CODE})\\b(?!/[A-Z])`,
  'g',
);
const BEHIND_SIGN = new RegExp(`(?<![\\d.,]|[$£€¥]\\s?)(${NUMBER})(?:\\s?([€£₹₽₺₪₴₫₿])|\\s?(zł(?!\\p{L}))|\\s?(\\$))(?![\\w])`, 'gu');
const AMOUNT = new RegExp(`(${LETTERS})?(${SIGN})\\s?(\\d+(?:,\\d+)*)?(?:\\.(\\d+))?(${SCALE})?(?:/([a-zA-Z]{1,12})(?![\\w/]))?`, 'g');

/** Brings amounts into the form that money() reads: those with a code, with the sign after the number, ranges, and adjectives such as "a $5 bill". */
export function amounts(text: string): string {
  return text
    .replace(BEFORE_CODE, (_, code: string) => CODES[code]!)
    .replace(BEHIND_CODE, (_, amount: string, code: string) => `${CODES[code]}${amount}`)
    .replace(/\$(\d+(?:,\d+)*)(?= (?:bill|note|coin|fine|fee|ticket)s?\b)/g, '$1 dollar')
    .replace(/([$£€]\d[\d,.]*\s?(?:thousand|million|billion|trillion|[kKmMbB]n?))\s?[-–]\s?(?=[$£€]\d)/g, '$1 to ')
    .replace(/([$£€])(\d[\d,]*(?:\.\d+)?)\s?[-–]\s?\1?(?=\d)/g, (all, sign: string, from: string) =>
      all.trimEnd().endsWith(sign) || /\.\d\d$/.test(from) ? `${sign}${from} to ${sign}` : `${from} to ${sign}`,
    )
    .replace(BEHIND_SIGN, (_, amount: string, sign?: string, zloty?: string, dollar?: string) =>
      zloty === undefined ? `${sign ?? dollar}${amount}` : `${amount} ${amount === '1' ? 'zloty' : 'zlotys'}`,
    )
    .replace(/(?<!\d)(\d+)\s?¢/g, (_, count: string) => `${count} ${count === '1' ? 'cent' : 'cents'}`);
}

/** Writes out amounts after a currency sign. Four-digit amounts get a comma, so that $1,905 is not read as a year. */
export function money(text: string): string {
  return text.replace(AMOUNT, (all, letters?: string, sign?: string, whole?: string, fraction?: string, scale?: string, per?: string) => {
    if (whole === undefined && fraction === undefined) return all;
    const unit = per === undefined ? undefined : (perWhat(per) ?? (/^[a-z]+$/.test(per) ? per : undefined));
    const behind = per === undefined ? '' : unit === undefined ? `/${per}` : ` per ${unit}`;
    return `${amount(letters, sign!, whole ?? '0', fraction, scale)}${behind}`;
  });
}

function amount(letters: string | undefined, sign: string, whole: string, fraction: string | undefined, scale: string | undefined): string {
  const [one, many, cent, cents] = letters === 'R' ? (['real', 'reais', 'centavo', 'centavos'] as const) : CURRENCIES[sign]!;
  const where = letters === undefined || letters === 'R' ? '' : `${COUNTRIES[letters]} `;
  const count = grouped(whole);
  const point = fraction === undefined ? '' : ` point ${[...fraction].join(' ')}`;
  if (scale) return `${count}${point} ${scaleWord(scale.trim())} ${where}${many}`;
  const units = `${where}${Number(whole.replace(/,/g, '')) === 1 ? one : many}`;
  if (fraction === undefined || /^0{1,2}$/.test(fraction)) return `${count} ${units}`;
  // Prices of petrol or of single requests have more decimals than there are coins for.
  if (fraction.length > 2 || cent === undefined) return `${count}${point} ${where}${many}`;
  const small = Number(fraction.padEnd(2, '0'));
  const coins = `${small} ${small === 1 ? cent : cents}`;
  return Number(whole.replace(/,/g, '')) === 0 ? coins : `${count} ${units} and ${coins}`;
}

function scaleWord(scale: string): string {
  if (scale.length > 2) return scale;
  return { k: 'thousand', m: 'million', b: 'billion', t: 'trillion' }[scale[0]!.toLowerCase()]!;
}

const GROUPING_SIGNS = '[€₺₫]|R\\$';
const DECIMAL_UNITS =
  '[€£$₺%°]|zł|EUR\\b|kr\\b|km\\b|cm\\b|mm\\b|m\\b|kg\\b|g\\b|mg\\b|ml\\b|mL\\b|l\\b|L\\b|GB\\b|MB\\b|kWh\\b|km²|m²|million\\b|billion\\b|percent\\b|Prozent\\b';
const GROUPED_BEFORE = new RegExp(`(?<=(?:${GROUPING_SIGNS}|\\bEUR)\\s?)([1-9]\\d{0,2})\\.(\\d{3})(?![\\d]|[.,]\\d)`, 'g');
const GROUPED_BEHIND = new RegExp(`(?<![\\d.,])([1-9]\\d{0,2})\\.(\\d{3})(?=\\s?(?:[€₺₫]|zł|EUR\\b))`, 'g');
const COMMA_BEFORE = new RegExp(`(?<=(?:[$£]|${GROUPING_SIGNS}|\\bEUR)\\s?)(\\d{1,15}),(\\d{1,2})(?![\\d]|[.,]\\d)`, 'g');
const COMMA_BEHIND = new RegExp(`(?<![\\d.,])(\\d{1,15}),(\\d{1,2})(?=\\s?(?:${DECIMAL_UNITS}))`, 'g');

/**
 * Converts numbers with points between thousands and a decimal comma, where they can mean nothing else: 1.000,50, 1.000.000, 12,50 €, 3,5 km. With a currency sign
 * a single point before three digits separates thousands, if that currency is written so: 1.000 € are a thousand, and 1.000 alone is one.
 */
export function europeanNumbers(text: string): string {
  return text
    .replace(
      /(?<![\d.,])(\d{1,3}(?:\.\d{3})+),(\d{1,2})(?![\d]|[.,]\d)/g,
      (_, whole: string, cents: string) => `${whole.replaceAll('.', '')}.${cents}`,
    )
    .replace(/(?<![\d.,])\d{1,3}(?:\.\d{3}){2,}(?![\d]|[.,]\d)/g, (all) => {
      const parts = all.split('.');
      return parts.length === 4 && parts.every((part) => Number(part) < 256) ? all : parts.join('');
    })
    .replace(GROUPED_BEFORE, '$1$2')
    .replace(GROUPED_BEHIND, '$1$2')
    .replace(COMMA_BEFORE, '$1.$2')
    .replace(COMMA_BEHIND, '$1.$2')
    .replace(/(?<![\d.,])0,(?=\d{1,2}(?![\d]|[.,]\d))/g, '0.');
}
