/** Reads the numbers of Japanese text, together with what they count. */

/** A reading of 0 to 9 alone. */
const DIGITS = ['ゼロ', 'イチ', 'ニ', 'サン', 'ヨン', 'ゴ', 'ロク', 'ナナ', 'ハチ', 'キュー'];
const KANJI = '〇一二三四五六七八九';
const DAYS: Readonly<Record<number, string>> = {
  2: 'フツカ', 3: 'ミッカ', 4: 'ヨッカ', 5: 'イツカ', 6: 'ムイカ', 7: 'ナノカ', 8: 'ヨーカ', 9: 'ココノカ', 10: 'トーカ', 14: 'ジューヨッカ', 20: 'ハツカ', 24: 'ニジューヨッカ',
}; // prettier-ignore
const THINGS = ['', 'ヒトツ', 'フタツ', 'ミッツ', 'ヨッツ', 'イツツ', 'ムッツ', 'ナナツ', 'ヤッツ', 'ココノツ'];

/**
 * Counters by what they do to the number before them. `h`: 一本 イッポン, 三本 サンボン; `f`: 三分 サンプン; `k`: 一回 イッカイ, 六回 ロッカイ; `s`: 一歳 イッサイ; `p`: as `s`.
 * The others change only the numbers that CHANGED names.
 */
const COUNTERS: Readonly<Record<string, readonly [kana: string, kind: string]>> = {
  本: ['ホン', 'h'], 匹: ['ヒキ', 'h'], 杯: ['ハイ', 'h'], 票: ['ヒョー', 'h'], 分: ['フン', 'f'], 分間: ['フンカン', 'f'], 泊: ['ハク', 'f'], 発: ['ハツ', 'f'],
  回: ['カイ', 'k'], 回目: ['カイメ', 'k'], 個: ['コ', 'k'], 箇所: ['カショ', 'k'], ヶ所: ['カショ', 'k'], か所: ['カショ', 'k'], カ所: ['カショ', 'k'], ヶ月: ['カゲツ', 'k'],
  か月: ['カゲツ', 'k'], カ月: ['カゲツ', 'k'], ヵ月: ['カゲツ', 'k'], か国: ['カコク', 'k'], カ国: ['カコク', 'k'], ヶ国: ['カコク', 'k'], 階: ['カイ', 'g'], 軒: ['ケン', 'g'],
  曲: ['キョク', 'k'], 件: ['ケン', 'k'], 級: ['キュー', 'k'], 機: ['キ', 'k'], 句: ['ク', 'k'],
  歳: ['サイ', 's'], 才: ['サイ', 's'], 冊: ['サツ', 's'], 週間: ['シューカン', 's'], 章: ['ショー', 's'], 世紀: ['セーキ', 's'], 種類: ['シュルイ', 's'], 隻: ['セキ', 's'], 社: ['シャ', 's'],
  頭: ['トー', 's'], 丁目: ['チョーメ', 's'], 点: ['テン', 's'], 通: ['ツー', 's'], 着: ['チャク', 's'], 等: ['トー', 's'], トン: ['トン', 's'], センチ: ['センチ', 's'],
  ページ: ['ページ', 's'], パーセント: ['パーセント', 's'], ポイント: ['ポイント', 's'], キロ: ['キロ', 'k'], テン: ['テン', 's'],
  人: ['ニン', 'person'], 年: ['ネン', 'four'], 年間: ['ネンカン', 'four'], 円: ['エン', 'four'], 時: ['ジ', 'hour'], 時間: ['ジカン', 'hour'], 月: ['ガツ', 'month'], 日: ['ニチ', 'day'],
  日間: ['ニチカン', 'day'], つ: ['ツ', 'thing'],
}; // prettier-ignore

/** Last digits whose reading a kind of counter changes. */
const CHANGED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  person: { ヨン: 'ヨ', ナナ: 'シチ' },
  four: { ヨン: 'ヨ' },
  hour: { ヨン: 'ヨ', ナナ: 'シチ', キュー: 'ク' },
  month: { ヨン: 'シ', ナナ: 'シチ', キュー: 'ク' },
};
const VOICED: Readonly<Record<string, string>> = { ハ: 'バ', ヒ: 'ビ', フ: 'ブ', ヘ: 'ベ', ホ: 'ボ', カ: 'ガ', ケ: 'ゲ' };
const PLOSIVE: Readonly<Record<string, string>> = { ハ: 'パ', ヒ: 'ピ', フ: 'プ', ヘ: 'ペ', ホ: 'ポ' };

/** Reads a number in kanji (二百三, 一九四五) and a counter in katakana; undefined if it is no number, or too large. */
export function readNumber(kanji: string, counter: string | undefined): readonly string[] | undefined {
  const parts = numberParts(kanji);
  if (!parts) return undefined;
  const [kana, kind] = (counter === undefined ? undefined : COUNTERS[counter]) ?? [];
  if (kana === undefined) return grouped(parts);
  const special = wholeReading(parts.join(''), kanji, counter!, kind!);
  if (special !== undefined) return [special];
  const last = parts[parts.length - 1]!;
  const [end, begin] = meet(last, kana, kind!);
  const words = grouped([...parts.slice(0, -1), end]);
  // A doubled consonant belongs to both.
  return end.endsWith('ッ') ? [...words.slice(0, -1), words.at(-1)! + begin] : [...words, begin];
}

/** Words of a number: each ends with a hundred, a thousand and so on. */
function grouped(parts: readonly string[]): string[] {
  return parts.join('').split(/(?<=[セゼ]ン|[ヒビピ]ャク|マン|オク|チョー)(?=.)/);
}

/** Whether a word counts what a number before it says. */
export function isCounter(word: string): boolean {
  return word in COUNTERS;
}

/** Days and people and things whose words are no number with a counter. */
function wholeReading(number: string, kanji: string, counter: string, kind: string): string | undefined {
  const value = DIGITS.indexOf(number);
  if (kind === 'person') return value === 1 ? 'ヒトリ' : value === 2 ? 'フタリ' : undefined;
  if (kind === 'thing') return value > 0 ? THINGS[value] : undefined;
  if (kind !== 'day') return undefined;
  const day = DAYS[kanjiValue(kanji) ?? 0];
  return day === undefined ? undefined : day + (counter === '日間' ? 'カン' : '');
}

/** How the last part of a number and a counter change each other. */
function meet(last: string, counter: string, kind: string): readonly [string, string] {
  const changed = CHANGED[kind]?.[last];
  if (changed !== undefined) return [changed, counter];
  if (!/^[hfkgs]$/.test(kind)) return [last, counter];
  const doubles = kind === 's' ? /(?:イチ|ハチ|ジュー)$/ : /(?:イチ|ハチ|ジュー|ロク|ヒャク)$/;
  const first = counter[0]!;
  const rest = counter.slice(1);
  if (doubles.test(last)) return [last.replace(/(?:チ|ク|ー)$/, 'ッ'), (PLOSIVE[first] ?? first) + rest];
  if (last.endsWith('ン') && kind === 'f') return [last, PLOSIVE[first]! + rest];
  if (/(?:サン|セン|マン)$/.test(last) && (kind === 'h' || kind === 'g')) return [last, VOICED[first]! + rest];
  return [last, counter];
}

/** The value of a number in kanji below ten thousand; undefined for others. */
function kanjiValue(kanji: string): number | undefined {
  let [value, digit] = [0, 0];
  for (const character of kanji) {
    const unit = { 十: 10, 百: 100, 千: 1000 }[character];
    if (unit !== undefined) [value, digit] = [value + (digit || 1) * unit, 0];
    else if (KANJI.includes(character)) digit = KANJI.indexOf(character);
    else return undefined;
  }
  return value + digit;
}

/** The readings of a number's parts: 三百二十 -> サンビャク, ニ, ジュー. */
function numberParts(kanji: string): string[] | undefined {
  if (!/^[〇零一二三四五六七八九十百千万億兆]+$/.test(kanji)) return undefined;
  if (/^[〇零一二三四五六七八九]{2,}$/.test(kanji)) return [...kanji].map(digitKana);
  const parts: string[] = [];
  for (const character of kanji) {
    const last = parts.pop();
    const unit = UNITS[character];
    if (unit === undefined) {
      if (last !== undefined) parts.push(last);
      parts.push(digitKana(character));
    } else parts.push(...withUnit(last, character, unit));
  }
  return parts;
}

function digitKana(kanji: string): string {
  return kanji === '零' ? 'レー' : DIGITS[KANJI.indexOf(kanji)]!;
}

const UNITS: Readonly<Record<string, string>> = { 十: 'ジュー', 百: 'ヒャク', 千: 'セン', 万: 'マン', 億: 'オク', 兆: 'チョー' };
const IRREGULAR: Readonly<Record<string, string>> = {
  サン百: 'サンビャク', ロク百: 'ロッピャク', ハチ百: 'ハッピャク', サン千: 'サンゼン', ハチ千: 'ハッセン', イチ兆: 'イッチョー', ハチ兆: 'ハッチョー', ジュー兆: 'ジュッチョー',
}; // prettier-ignore

function withUnit(last: string | undefined, character: string, unit: string): string[] {
  if (last === undefined) return [unit];
  const irregular = IRREGULAR[last + character];
  if (irregular !== undefined) return [irregular];
  // 百二十: what stands before is a part of its own.
  return DIGITS.includes(last) && !/[万億兆]/.test(character) ? [last + unit] : [last, unit];
}

/** Writes figures, dates, times, money and symbols as a reader says them: numbers in kanji, the rest in katakana. */
export function normalizeJapanese(text: string): string {
  let t = text.replace(/[０-９Ａ-Ｚａ-ｚ％＋－．／，](?=[０-９Ａ-Ｚａ-ｚ％])|[０-９Ａ-Ｚａ-ｚ％]/g, (wide) =>
    String.fromCharCode(wide.charCodeAt(0) - 0xfee0),
  );
  t = t.replace(/[\uff66-\uff9f]+/g, (half) => half.normalize('NFKC'));
  t = t.replace(/(\d),(?=\d{3}(?!\d))/g, '$1');
  t = t.replace(/(?<![\d.])(?:\+81[- ]?)?0\d{1,4}-\d{1,4}-\d{3,4}(?!\d)/g, (number) => number.split('-').map(spelled).join('、'));
  t = t.replace(/(?<!\d)([12]\d{3})([-/.])(0?[1-9]|1[0-2])\2(0?[1-9]|[12]\d|3[01])(?!\d)/g, (_, year: string, mark: string, month: string, day: string) => `${year}年${Number(month)}月${Number(day)}日`); // prettier-ignore
  t = t.replace(/(?<![\d:])(2[0-4]|[01]?\d):([0-5]\d)(?::([0-5]\d))?(?![\d:])/g, clock);
  t = t.replace(/(\d)\s?:\s?(?=\d)/g, '$1タイ');
  t = t.replace(/[¥￥]\s?(\d+(?:\.\d+)?[万億兆]*)/g, '$1円').replace(/\$\s?(\d+(?:\.\d+)?[万億兆]*)/g, '$1ドル').replace(/€\s?(\d+(?:\.\d+)?[万億兆]*)/g, '$1ユーロ'); // prettier-ignore
  t = t.replace(/(\d[%℃円]?)\s?[-–~～〜]\s?(?=\d)/g, '$1から').replace(/(^|[^\d\w])[-−](?=\d)/g, '$1マイナス');
  t = t.replace(/(?<![\d/])(\d+)\/(\d+)(?![\d/])/g, '$2ブンノ$1');
  t = t.replace(new RegExp(`(?<=\\d)\\s?(${Object.keys(SYMBOLS).sort((a, b) => b.length - a.length).join('|')})(?![A-Za-z])`, 'g'), (_, unit: string) => SYMBOLS[unit]!); // prettier-ignore
  t = t
    .replace(/(?<=\d\s?)\+(?=\s?\d)/g, 'タス')
    .replace(/(?<=\d\s?)[×*](?=\s?\d)/g, 'カケル')
    .replace(/(?<=\S\s?)=(?=\s?\S)/g, 'イコール');
  return t.replace(/\d+(?:\.\d+)*/g, (number) => {
    const [whole, ...rest] = number.split('.');
    return kanjiNumber(whole!) + rest.map((digits) => `テン${spelled(digits)}`).join('');
  });
}

const SYMBOLS: Readonly<Record<string, string>> = {
  '%': 'パーセント', '℃': '度', '°C': '度', '°': '度', 'km/h': 'キロ', 'km': 'キロ', 'kg': 'キロ', 'g': 'グラム', 'mg': 'ミリグラム', 'cm': 'センチ', 'mm': 'ミリ', 'm': 'メートル', 'm²': '平方メートル', '㎡': '平方メートル', 'ml': 'ミリリットル', 'mL': 'ミリリットル', 'L': 'リットル', 'GB': 'ギガバイト', 'MB': 'メガバイト', 'kW': 'キロワット', 'W': 'ワット',
}; // prettier-ignore

function clock(_: string, hour: string, minute: string, second: string | undefined): string {
  return `${Number(hour)}時${minute === '00' && second === undefined ? '' : `${Number(minute)}分`}${second === undefined ? '' : `${Number(second)}秒`}`;
}

function spelled(digits: string): string {
  return digits.replace(/\d/g, (digit) => DIGITS[Number(digit)]!).replace('+', 'プラス');
}

/** Writes a whole number in kanji; one with leading zeros or more than 16 digits is spelled. */
function kanjiNumber(digits: string): string {
  if (/^0\d/.test(digits) || digits.length > 16) return spelled(digits);
  if (digits === '0') return 'ゼロ';
  let written = '';
  for (let group = Math.ceil(digits.length / 4) - 1; group >= 0; group--) {
    const four = digits.slice(-4 * (group + 1), digits.length - 4 * group);
    const parts = [...four].map((digit, i) => {
      const unit = ['', '十', '百', '千'][four.length - 1 - i]!;
      return digit === '0' ? '' : (digit === '1' && unit !== '' && !(unit === '千' && group > 0) ? '' : KANJI[Number(digit)]!) + unit;
    });
    if (Number(four) > 0) written += parts.join('') + ['', '万', '億', '兆'][group]!;
  }
  return written;
}
