/** Abbreviations as they are read aloud. */

const MONTHS = 'January February March April May June July August September October November December'.split(' ');
const DAYS = 'Monday Tuesday Wednesday Thursday Friday Saturday Sunday'.split(' ');
const MONTH = 'Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sept?|Oct|Nov|Dec';

/** In order; where one ends its sentence, its point stays. */
const ABBREVIATIONS: readonly (readonly [RegExp, string])[] = [
  [/\b[Dd]r\.(?=\s+[A-Z])/g, 'Doctor'],
  [/\b[Mm]r\.(?=\s)/g, 'Mister'],
  [/\b[Mm]rs\.(?=\s)/g, 'Missus'],
  [/\b[Mm]s\.(?=\s+[A-Z])/g, 'Miss'],
  [/\bProf\.(?=\s)/g, 'Professor'],
  [/\bSt\.(?=\s+[A-Z])/g, 'Saint'],
  [/\b(\w+) St\.(?=,|\s+[a-z\d])/g, '$1 Street'],
  [/\b(\w+) St\./g, '$1 Street.'],
  [/\bAve\.(?=,|\s+[a-z\d])/g, 'Avenue'],
  [/\bAve\./g, 'Avenue.'],
  [/\bBlvd\.(?=,|\s+[a-z\d])/g, 'Boulevard'],
  [/\bBlvd\./g, 'Boulevard.'],
  [/\bRd\.(?=,|\s+[a-z\d])/g, 'Road'],
  [/\bRd\./g, 'Road.'],
  [/\bMt\.(?=\s+[A-Z])/g, 'Mount'],
  [/\bGov\.(?=\s+[A-Z])/g, 'Governor'],
  [/\bSen\.(?=\s+[A-Z])/g, 'Senator'],
  [/\bGen\.(?=\s+[A-Z])/g, 'General'],
  [/\bCapt\.(?=\s+[A-Z])/g, 'Captain'],
  [/\bLt\.(?=\s+[A-Z])/g, 'Lieutenant'],
  [/\bSgt\.(?=\s+[A-Z])/g, 'Sergeant'],
  [/\bInc\.(?=,|\s+[a-z])/g, 'Incorporated'],
  [/\bInc\./g, 'Incorporated.'],
  [/\bLtd\.(?=,|\s+[a-z])/g, 'Limited'],
  [/\bLtd\./g, 'Limited.'],
  [/(?<=& )Co\.(?=,|\s+[a-z])/g, 'Company'],
  [/(?<=& )Co\./g, 'Company.'],
  [/\bFig\.(?=\s*\d)/gi, 'Figure'],
  [/\bpp\.(?=\s*\d)/g, 'pages'],
  [/\bp\.(?=\s*\d)/g, 'page'],
  [/\bvol\.(?=\s*\d)/g, 'volume'],
  [/\ba\.k\.a\.(?=\s)/gi, 'also known as'],
  [/\bw\/o(?=\s)/g, 'without'],
  [/\bw\/(?=\s)/g, 'with'],
  [/\b(and)\/(or)\b/gi, '$1 $2'],
  [/\b(yes|he|his|him|true|on|either)\/(no|she|her|hers|false|off|or)\b/gi, '$1 or $2'],
  [/\bC\+\+/g, 'C plus plus'],
  [/\bC#/g, 'C sharp'],
  [/\bJr\./g, 'Junior'],
  [/\bSr\./g, 'Senior'],
  [/\bvs\.?(?=\s)/g, 'versus'],
  [/\be\.g\.,?/gi, 'for example,'],
  [/\bi\.e\.,?/gi, 'that is,'],
  [/\betc\.(?=\s+[a-z,;])/g, 'et cetera'],
  [/\betc\./g, 'et cetera.'],
  [/\bNo\.(?=\s*\d)/g, 'Number'],
  [/\bapprox\./g, 'approximately'],
  [/\bdept\./gi, 'department'],
  [/\btel\.(?=\s)/gi, 'telephone'],
];

/** Writes out titles, streets, companies, days and months. */
export function withoutAbbreviations(text: string): string {
  let t = text;
  for (const [pattern, spoken] of ABBREVIATIONS) t = t.replace(pattern, spoken);
  t = t.replace(new RegExp(`\\b(?:${MONTH})\\b\\.?(?=\\s+\\d)`, 'g'), (short) => wordOf(MONTHS, short));
  // Sun, Sat and Wed are words too, which may end a sentence.
  t = t.replace(/\b(?:Mon|Tues?|Thu(?:rs?)?|Fri)(?=\.\s*$)/g, (short) => wordOf(DAYS, short));
  const days = new RegExp(
    `\\b(?:Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun)(?:\\.(?=\\s+[a-z\\d])|(?=,\\s+(?:${MONTH}|${MONTHS.join('|')})\\b))`,
    'g',
  );
  return t.replace(days, (short) => wordOf(DAYS, short));
}

const wordOf = (words: readonly string[], short: string): string => words.find((word) => word.startsWith(short.slice(0, 3)))!;
