/** Spells out the figures and symbols of Chinese text in Chinese characters, as a reader says them. Text in, text out. */

const DIGITS = '零一二三四五六七八九';
const MONEY: Readonly<Record<string, string>> = { '¥': '元', '￥': '元', 'RMB': '元', '$': '美元', '＄': '美元', 'US$': '美元', 'HK$': '港元', 'NT$': '新台币', '€': '欧元', '£': '英镑' }; // prettier-ignore
const UNITS: Readonly<Record<string, string>> = {
  '℃': '摄氏度', '°C': '摄氏度', '℉': '华氏度', '°F': '华氏度', '°': '度', 'km': '公里', 'kg': '公斤', 'mg': '毫克', 'g': '克', 'cm': '厘米', 'mm': '毫米', 'm': '米',
  'm²': '平方米', 'm2': '平方米', '㎡': '平方米', 'm³': '立方米', 'km²': '平方公里', 'ml': '毫升', 'mL': '毫升', 'L': '升', 'kW': '千瓦', 'W': '瓦', 'V': '伏', 'Hz': '赫兹',
}; // prettier-ignore
/** What is counted with 两 instead of 二. */
const COUNTED =
  '个|只|条|张|块|瓶|杯|份|本|辆|台|匹|头|位|亩|小时|分钟|秒钟|天|年(?!级)|次|人|种|件|家|名|岁|点|周|倍|万|千|亿|段|部|座|间|口|双|颗|棵|艘|架|套|句|首|篇|米|公里|公斤|斤|克|元|升|层|排|遍|趟|场|片|把|支|枝|根|对|组|项|门|面|代|度|步|米|吨|美元';
const NUMBER = '\\d+(?:\\.\\d+)?';

/** Spells out dates, times, money, telephone numbers, percentages, fractions, ranges, units and numbers. */
export function normalizeMandarin(text: string): string {
  let t = text.replace(/[０-９Ａ-Ｚａ-ｚ％＋－．／](?![０-９]*[。])/g, (wide) => String.fromCharCode(wide.charCodeAt(0) - 0xfee0));
  t = t.replace(/(\d),(?=\d{3}(?!\d))/g, '$1');
  t = dates(phones(t));
  t = t.replace(/(?<![\d:])(2[0-4]|[01]?\d):([0-5]\d)(?::([0-5]\d))?(?![\d:])/g, (_, hour: string, minute: string, second?: string) =>
    clock(hour, minute, second),
  );
  t = t.replace(/(\d)\s?[:：]\s?(?=\d)/g, '$1比');
  t = t.replace(new RegExp(`(US\\$|HK\\$|NT\\$|RMB|[¥￥$＄€£])\\s?(${NUMBER})([十百千万亿]*)(?!\\d)(元|块|美元|欧元|英镑)?`, 'g'), (_, sign: string, sum: string, scale: string) => `${sum}${scale}${MONEY[sign]!}`); // prettier-ignore
  t = t.replace(new RegExp(`(?<!\\d)(${NUMBER}[%℃]?)\\s?[-–~～—]\\s?(?=[\\d])`, 'g'), '$1到');
  t = t.replace(new RegExp(`(^|[^\\d\\w])[-−](?=\\d)(${NUMBER}\\s?(?:℃|°C))?`, 'g'), (_, before: string, degrees?: string) => `${before}${degrees === undefined ? '负' : `零下${degrees}`}`); // prettier-ignore
  t = t.replace(
    new RegExp(`(?<!\\d)(${NUMBER})\\s?([%‰])`, 'g'),
    (_, part: string, sign: string) => `${sign === '%' ? '百' : '千'}分之${part}`,
  );
  t = t.replace(/(?<![\d/.])(\d+)\/(\d+)(?![\d/])/g, '$2分之$1');
  t = t
    .replace(new RegExp(`(?<!\\d)(${NUMBER})\\s?km/h\\b`, 'gi'), '每小时$1公里')
    .replace(new RegExp(`(?<!\\d)(${NUMBER})\\s?m/s\\b`, 'g'), '每秒$1米');
  t = t.replace(new RegExp(`(\\d)\\s?(${Object.keys(UNITS).sort((a, b) => b.length - a.length).join('|')})(?![A-Za-z0-9/])`, 'g'), (_, digit: string, unit: string) => digit + UNITS[unit]!); // prettier-ignore
  t = symbols(t);
  t = t.replace(new RegExp(`(?<![\\d.第])2(?=${COUNTED})`, 'g'), '两');
  return t.replace(/\d+(?:\.\d+)*/g, spokenNumber);
}

/** Telephone numbers digit by digit, where one is yao. */
function phones(text: string): string {
  const number =
    /(?<![\d.])(?:\+?86[- ]?)?(?:1[3-9]\d[- ]?\d{4}[- ]?\d{4}|0\d{2,3}-\d{7,8}|[48]00-?\d{3}-?\d{4})(?![\d.])|(?<=电话|热线|拨打)(?:1[012]\d|9\d{4})(?!\d)/g;
  return text.replace(number, (digits) => digits.replace(/[- ]/g, '').replace('+', '加').replace(/\d/g, (digit) => (digit === '1' ? '幺' : DIGITS[Number(digit)]!))); // prettier-ignore
}

/** Dates in figures, and years digit by digit. */
function dates(text: string): string {
  return text
    .replace(
      /(?<!\d)([12]\d{3})([-/.])(0?[1-9]|1[0-2])\2(0?[1-9]|[12]\d|3[01])(?!\d)/g,
      (_, year: string, mark: string, month: string, day: string) => `${year}年${Number(month)}月${Number(day)}日`,
    ) // prettier-ignore
    .replace(/(?<!\d)([12]\d{3})\s?[-–~～至到]\s?(?=[12]\d{3}年)/g, (_, year: string) => `${digitByDigit(year)}到`)
    .replace(/(?<!\d)([12]\d{3})\s?(?=年(?!级))/g, digitByDigit)
    .replace(/(?<!\d)0(?=\d[月日号])/g, '');
}

function clock(hour: string, minute: string, second: string | undefined): string {
  const minutes = minute === '00' ? (second ? '零分' : '') : `${minute.startsWith('0') ? '零' : ''}${integer(minute)}分`;
  return `${hour === '2' || hour === '02' ? '两' : integer(hour)}点${minutes}${second ? `${integer(second)}秒` : ''}`;
}

/** Signs of arithmetic between numbers, and a few others. */
function symbols(text: string): string {
  return text
    .replace(/(?<=\d\s?)\+(?=\s?\d)/g, '加')
    .replace(/(?<=\d\s?)[×*](?=\s?\d)/g, '乘以')
    .replace(/(?<=\d\s?)÷(?=\s?\d)/g, '除以')
    .replace(/(?<=[\d\p{L}]\s?)=(?=\s?[\d\p{L}-])/gu, '等于')
    .replace(/(?<=\d\s?)>(?=\s?\d)/g, '大于')
    .replace(/(?<=\d\s?)<(?=\s?\d)/g, '小于')
    .replace(/(?<=[\u4e00-\u9fff\d]\s?)&(?=\s?[\u4e00-\u9fff])/g, '和')
    .replace(/(?<=\d)\+/g, '多');
}

/** Reads a number, or what looks like several with points: a version. */
function spokenNumber(number: string): string {
  const [whole, ...rest] = number.split('.');
  const points = rest.map((digits) => `点${rest.length > 1 ? integer(digits) : digitByDigit(digits)}`);
  return integer(whole!) + points.join('');
}

function digitByDigit(digits: string): string {
  return digits.replace(/\d/g, (digit) => DIGITS[Number(digit)]!);
}

/** Reads a whole number of up to 16 digits; longer ones, and those that begin with 0, digit by digit. */
function integer(digits: string): string {
  if (digits.length > 16 || /^0\d\d/.test(digits)) return digitByDigit(digits);
  const value = digits.replace(/^0+/, '');
  if (value === '') return '零';
  let spoken = '';
  for (let group = Math.ceil(value.length / 4) - 1; group >= 0; group--) {
    const four = value.slice(-4 * (group + 1), value.length - 4 * group);
    if (Number(four) === 0) spoken += group === 2 ? '亿' : '';
    else spoken += (spoken !== '' && four.startsWith('0') ? '零' : '') + thousands(four) + ['', '万', '亿', '万'][group]!;
  }
  return spoken.replace(/^一十/, '十');
}

function thousands(four: string): string {
  let spoken = '';
  [...four].forEach((digit, i) => {
    const unit = ['', '十', '百', '千'][four.length - 1 - i]!;
    if (digit !== '0') spoken += DIGITS[Number(digit)]! + unit;
    else if (spoken !== '' && !spoken.endsWith('零')) spoken += '零';
  });
  return spoken.replace(/零$/, '');
}
