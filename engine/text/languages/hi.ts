/** How Hindi reads what is not written in words. */

import type { Notation } from './notation.ts';

const PARTS = ['', '', 'आधा', 'तिहाई', 'चौथाई'];
const ORDINALS: Readonly<Record<string, string>> = { 1: 'पहल', 2: 'दूसर', 3: 'तीसर', 4: 'चौथ', 6: 'छठ' };

/** The notation of Hindi. */
export const HI: Notation = {
  names:
    'दशमलव|कॉमा|स्लैश|ऐट|प्रश्नचिह्न|बराबर|और|कोलन|अंडरस्कोर|डैश|प्लस|माइनस|गुणा|भाग|से|बटा|प्रतिशत|प्रति हज़ार|हैशटैग|नंबर|प्लस माइनस|वर्गमूल|का वर्ग|का घन|की घात|से कम|से ज़्यादा|कम से कम|ज़्यादा से ज़्यादा|बराबर नहीं|लगभग',
  point: 'डॉट',
  domains: 'in',
  months: 'जनवरी फ़रवरी मार्च अप्रैल मई जून जुलाई अगस्त सितंबर अक्टूबर नवंबर दिसंबर'.split(' '),
  note: 'टिप्पणी',
  done: 'हो गया',
  titles: 'डॉ=डॉक्टर|मि.=मिस्टर|डॉ.=डॉक्टर|श्री.=श्री|प्रो.=प्रोफ़ेसर|पं.=पंडित|कु.=कुमारी|Dr.=डॉक्टर|Mr.=मिस्टर|Mrs.=मिसेज़|Prof.=प्रोफ़ेसर',
  numbered: 'नं.=नंबर|सं.=संख्या|पृ.=पृष्ठ|फ़ो.=फ़ोन|No.=नंबर',
  short: 'ई.पू.=ईसा पूर्व|ई. पू.=ईसा पूर्व|वि.सं.=विक्रम संवत|कि.मी.=किमी|कि.ग्रा.=किग्रा|से.मी.=सेमी|मि.मी.=मिमी|मि.ली.=मिलीलीटर',
  bases: 'm=मीटर|g=ग्राम|l=लीटर|L=लीटर|W=वाट|Wh=वाट घंटा/वाट घंटे|*B=बाइट|*b=बिट|*bps=बिट प्रति सेकंड|V=वोल्ट|*A=ऐम्पियर|*Ah=ऐम्पियर घंटा/ऐम्पियर घंटे|Hz=हर्ट्ज़|cal=कैलोरी|s=सेकंड',
  prefixes: 'किलो मेगा गीगा टेरा सेंटी मिली माइक्रो',
  units:
    'किमी=किलोमीटर|मी=मीटर|सेमी=सेंटीमीटर|मिमी=मिलीमीटर|kg=किलो|किग्रा=किलो|ग्रा=ग्राम|ha=हेक्टेयर|t=टन|dB=डेसिबल|°C=डिग्री सेल्सियस|°से=डिग्री सेल्सियस|°F=डिग्री फ़ारेनहाइट|°=डिग्री|h=घंटा/घंटे|min=मिनट|sec=सेकंड',
  square: 'वर्ग $',
  cubic: 'घन $',
  currencies: 'डॉलर सेंट|यूरो सेंट|पाउंड पेंस|रुपया/रुपये पैसा/पैसे|येन|रियाल',
  scales: 'लाख करोड़=लाख करोड़|करोड़=करोड़|लाख=लाख|हज़ार=हज़ार|हजार=हज़ार|अरब=अरब|मिलियन=मिलियन|crore=करोड़|lakh=लाख|Cr=करोड़|K=हज़ार|k=हज़ार|M=मिलियन',
  elided: ' ',
  phone: '[6-9]\\d{4}[ -]?\\d{5}|0\\d{2,4}[ -]\\d{6,8}',
  beforeHour: 'सुबह|शाम|रात|दोपहर|समय',
  beforeDay: 'दिनांक|तारीख़|तारीख',
  counted: undefined,
  pointIsDecimal: true,
  plural: (noun) => noun,
  isFeminine: () => false,
  isSingular: () => false,
  count: (digits, noun) => `${digits} ${noun}`,
  cents: (count) => count,
  per: (noun) => `प्रति ${noun}`,
  date: (day, month, year) => `${day} ${month}${year && ` ${century(year)}`}`,
  clock: (hour, minute) => (minute === 0 ? `${hour}` : `${hour} बजकर ${minute} मिनट`),
  fraction: (count, of) => (of === 2 && count === 1 ? 'आधा' : of < 5 && of > 2 ? `${count} ${PARTS[of]}` : `${count} बटा ${of}`),
  half: 'सही 1 बटा 2',
  own: (text) =>
    quarters(text)
      .replace(/(?<![\p{L}\p{M}\d.,])(1(?=[लव])|[23](?=[रव])|4(?=[थव])|6(?=[ठव]))[लरथठव](ा[ँं]?|ी[ं]?|े[ं]?)(?![\p{L}\p{M}])/gu, (_, digit: string, vowel: string) => `${ORDINALS[digit]}${vowel[0]}`)
      .replace(/(?<=(?:सन्?|वर्ष|साल|ई\.|जनवरी|फ़?रवरी|मार्च|अप्रैल|मई|जून|जुलाई|अगस्त|सितंबर|अक्टूबर|नवंबर|दिसंबर) )1[1-9]\d\d(?![\d,.]*\d)|(?<![\d.,₹$])1[1-9]\d\d(?= (?:में(?! से)|ई\.|ई|ईस्वी|का दशक|के दशक)(?![\p{L}\p{M}]))|(?<![\d.,])1[1-9]\d\d(?=\s?[-–]\s?(?:1[1-9]|20)\d\d(?!\d))|(?<=1[1-9]\d\d\s?[-–]\s?)1[1-9]\d\d(?!\d)/gu, century),
}; // prettier-ignore

/** A year, of whose century the hundreds are counted: 1947 is 19 hundred 47. */
function century(year: string): string {
  return /^1[1-9]/.test(year) ? `${year.slice(0, 2)} सौ${year.endsWith('00') ? '' : ` ${Number(year.slice(2))}`}` : year;
}

/** Times of the clock at quarters of an hour, which have words of their own, and numbers and a half. */
function quarters(text: string): string {
  const half = (whole: number): string => (whole === 1 ? 'डेढ़' : whole === 2 ? 'ढाई' : `साढ़े ${whole}`);
  return text
    .replace(/(?<![\d:.])([1-9]|1[0-2]):(15|30|45)(?= बजे)/g, (_, hour: string, minute: string) => {
      const h = Number(hour);
      if (minute === '30') return half(h);
      if (minute === '15') return h === 1 ? 'सवा' : `सवा ${h}`;
      return `पौने ${(h % 12) + 1}`;
    })
    .replace(/(?<![\d:.])(\d{1,2}):([0-5]\d) बजे(?![\p{L}\p{M}])/gu, (_, hour: string, minute: string) =>
      minute === '00' ? `${Number(hour)} बजे` : `${Number(hour)} बजकर ${Number(minute)} मिनट`,
    )
    .replace(/(?<![\d.,])(\d{1,3})(?: 1\/2|\s?½)(?![\d/])/g, (_, whole: string) => half(Number(whole)));
}
