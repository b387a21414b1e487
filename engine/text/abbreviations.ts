/** Writes out abbreviations as they are read aloud. */

/** The months, by their names in English. */
export const MONTHS = 'January February March April May June July August September October November December'.split(' ');
const DAYS = 'Monday Tuesday Wednesday Thursday Friday Saturday Sunday'.split(' ');
const MONTH = 'Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sept?|Oct|Nov|Dec';

const WEEKDAY = 'Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun';

/** Regular expression source of the beginning of a sentence after an abbreviation. Other capitalised words may belong to a name (the U.S. Army). */
export const SENTENCE_START = '\\s+["“]?(?:He|She|It|They|We|You|The|This|That|These|Those|There|But|However|When|If|What|Why|How)\\b';

/** Patterns and their replacements, in order. At the end of a sentence the point is kept. */
const ABBREVIATIONS: readonly (readonly [RegExp, string])[] = [
  [/(?<=\b\d{1,5} (?:[A-Z][a-z]{1,20} ){1,3})Dr\.(?=,|\s+[a-z\d])/g, 'Drive'],
  [/(?<=\b\d{1,5} (?:[A-Z][a-z]{1,20} ){1,3})Dr\.(?=\s*$)/gm, 'Drive.'],
  [/\b[Dd]r\.(?=\s+[A-Z])/g, 'Doctor'],
  [/\b[Mm]r\.(?=\s)/g, 'Mister'],
  [/\b[Mm]rs\.(?=\s)/g, 'Missus'],
  [/\b[Mm]s\.(?=\s+[A-Z])/g, 'Miss'],
  [/\bProf\.(?=\s)/g, 'Professor'],
  [new RegExp(`\\bSt\\.(?=\\s+[A-Z])(?!${SENTENCE_START})`, 'g'), 'Saint'],
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
  [/\bCol\.(?=\s+[A-Z])/g, 'Colonel'],
  [/\bMaj\.(?=\s+[A-Z])/g, 'Major'],
  [/\bRev\.(?=\s+[A-Z])/g, 'Reverend'],
  [/\bRep\.(?=\s+[A-Z])/g, 'Representative'],
  [/\bFt\.(?=\s+[A-Z])/g, 'Fort'],
  [/\bApt\.(?=\s*\d)/g, 'Apartment'],
  [/\bCorp\.(?=,|\s+[a-z])/g, 'Corporation'],
  [/\bCorp\./g, 'Corporation.'],
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
  [/\bVol\.(?=\s*\d)/g, 'Volume'],
  [/\bch\.(?=\s*\d)/g, 'chapter'],
  [/\bCh\.(?=\s*\d)/g, 'Chapter'],
  [/\bsec\.(?=\s+\d)(?<!\d\s?sec\.)/gi, 'section'],
  [/\beq\.(?=\s*\d)/gi, 'equation'],
  [/\bext\.(?=\s*\d)/gi, 'extension'],
  [/\bca?\.\s*(?=\d{3,4}\b)/g, 'circa '],
  [/(?<=\d(?:st|nd|rd|th) )c\.(?=,|\s+(?:[a-z]|BC|AD|CE))/g, 'century'],
  [/(?<=\d(?:st|nd|rd|th) )c\./g, 'century.'],
  [/\bet al\.(?=,|\s+[a-z(\d])/g, 'et al'],
  [/\bcf\.(?=\s)/gi, 'compare'],
  [/\bviz\.,?(?=\s)/gi, 'namely'],
  [/\ba\.k\.a\.(?=\s)/gi, 'also known as'],
  [/\bw\/o(?=\s)/g, 'without'],
  [/\bw\/(?=\s)/g, 'with'],
  [/\b(and)\/(or)\b/gi, '$1 $2'],
  [/\b(yes|he|his|him|true|on|either)\/(no|she|her|hers|false|off|or)\b/gi, '$1 or $2'],
  [/\bC\+\+(?=\d)/g, 'C plus plus '],
  [/\bC\+\+/g, 'C plus plus'],
  [/\b([A-G])#(?!\w)/g, '$1 sharp'],
  [new RegExp(`\\bJr\\.(?=${SENTENCE_START})`, 'g'), 'Junior.'],
  [/\bJr\./g, 'Junior'],
  [new RegExp(`\\bSr\\.(?=${SENTENCE_START})`, 'g'), 'Senior.'],
  [/\bSr\./g, 'Senior'],
  [/\bvs\.?(?=\s)/g, 'versus'],
  [/\be\.g\.,?/gi, 'for example,'],
  [/\bi\.e\.,?/gi, 'that is,'],
  [/\betc\.(?=\s+[a-z,;])/g, 'et cetera'],
  [/\betc\./g, 'et cetera.'],
  [/\bNo\.(?=\s*\d)/g, 'Number'],
  [/\bNos\.(?=\s*\d)/g, 'Numbers'],
  [/(?<=\d\s?)AD\b|\bAD(?=\s\d)/g, 'A-D'],
  [/(?<=\d\s?)CE\b/g, 'C-E'],
  [/\bapprox\./g, 'approximately'],
  [new RegExp(`\\b[Dd]ept\\.(?=${SENTENCE_START})`, 'g'), 'department.'],
  [/\bdept\./gi, 'department'],
  [/\btel\.(?=\s)/gi, 'telephone'],
];

const DAY_NAMES = `(?:${DAYS.join('|')}|${WEEKDAY})`;
const MONTH_NAMES = `(?:${MONTHS.join('|')}|${MONTH})`;
/** A range of days or months: Mon-Fri, Jan–Mar. */
const RANGE = new RegExp(
  `(?<![\\w-])(?:(?=${DAY_NAMES}\\b)(?=\\w+\\.?[-–]${DAY_NAMES}\\b)|(?=${MONTH_NAMES}\\b)(?=\\w+\\.?[-–]${MONTH_NAMES}\\b))(\\w+)\\.?[-–](\\w+)(?![\\w-])(?:\\.(?=\\s+[a-z\\d]))?`,
  'g',
);

/** Writes out abbreviations of titles, streets, companies, days, months and the like. */
export function withoutAbbreviations(text: string): string {
  let t = text;
  for (const [pattern, spoken] of ABBREVIATIONS) t = t.replace(pattern, spoken);
  t = t.replace(RANGE, (_, a: string, b: string) => `${wordOf([...DAYS, ...MONTHS], a)} to ${wordOf([...DAYS, ...MONTHS], b)}`);
  t = t.replace(new RegExp(`\\b(?:${MONTH})\\b\\.?(?=\\s+\\d)`, 'g'), (short) => wordOf(MONTHS, short));
  // Sun, Sat and Wed are words too, which may end a sentence.
  t = t.replace(/\b(?:Mon|Tues?|Thu(?:rs?)?|Fri)(?=\.\s*$)/g, (short) => wordOf(DAYS, short));
  const days = new RegExp(`\\b(?:${WEEKDAY})(?:\\.(?=\\s+[a-z\\d&])|(?=,\\s+(?:${MONTH}|${MONTHS.join('|')})\\b))`, 'g');
  return t.replace(days, (short) => wordOf(DAYS, short));
}

const wordOf = (words: readonly string[], short: string): string => words.find((word) => word.startsWith(short.slice(0, 3)))!;
