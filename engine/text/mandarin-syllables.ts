/** Writes pinyin syllables in the alphabet of misaki, the phonemizer of published Kokoro: IPA without diacritics, and an arrow for the tone behind the vowel. */

const INITIALS: Readonly<Record<string, string>> = {
  b: 'p', p: 'pʰ', m: 'm', f: 'f', d: 't', t: 'tʰ', n: 'n', l: 'l', g: 'k', k: 'kʰ', h: 'x', j: 'ʨ', q: 'ʨʰ', x: 'ɕ',
  zh: 'ꭧ', ch: 'ꭧʰ', sh: 'ʂ', r: 'ɻ', z: 'ʦ', c: 'ʦʰ', s: 's',
}; // prettier-ignore

/** Finals in full, as pinyin abbreviates them behind an initial. The digit 0 stands for the tone. */
const FINALS: Readonly<Record<string, string>> = {
  a: 'a0', ai: 'ai0', an: 'a0n', ang: 'a0ŋ', ao: 'au0', e: 'ɤ0', ei: 'ei0', en: 'ə0n', eng: 'ə0ŋ', ou: 'ou0', ong: 'ʊ0ŋ',
  i: 'i0', ia: 'ja0', ian: 'jɛ0n', iang: 'ja0ŋ', iao: 'jau0', ie: 'je0', in: 'i0n', iou: 'jou0', ing: 'i0ŋ', iong: 'jʊ0ŋ',
  u: 'u0', uei: 'wei0', ua: 'wa0', uai: 'wai0', uan: 'wa0n', uen: 'wə0n', uang: 'wa0ŋ', ueng: 'wə0ŋ', uo: 'wo0', o: 'wo0',
  v: 'y0', ve: 'ɥe0', van: 'ɥɛ0n', vn: 'y0n',
}; // prettier-ignore

/** Syllables without an initial or without a vowel that are no final of the table. */
const INTERJECTIONS: Readonly<Record<string, string>> = {
  ê: 'ɛ0', er: 'ɚ0', o: 'ɔ0', yo: 'wo0', hm: 'hm0', hng: 'hŋ0', m: 'm0', n: 'n0', ng: 'ŋ0',
}; // prettier-ignore

const TONES = ['', '→', '↗', '↓', '↘', ''];
const SHORT: Readonly<Record<string, string>> = { iu: 'iou', ui: 'uei', un: 'uen', ü: 'v', üe: 've', ue: 've' };

/** Writes a syllable such as `xing2` (neutral: 5; ü as v or ü); undefined if it is none. */
export function syllablePhonemes(pinyin: string): string | undefined {
  const [, letters, tone] = /^([a-zêü]+)([1-5])$/.exec(pinyin) ?? [];
  if (letters === undefined) return undefined;
  const spoken = INTERJECTIONS[letters] ?? consonantAndVowel(letters);
  return spoken?.replace('0', TONES[Number(tone)]!);
}

function consonantAndVowel(letters: string): string | undefined {
  const [, initial = '', rest = ''] = /^([zcs]h|[bpmfdtnlgkhjqxrzcs])?(.+)$/.exec(letters)!;
  let final = initial === '' ? withoutGlide(rest) : (SHORT[rest] ?? rest);
  if (/[jqx]/.test(initial)) final = final === 'uen' ? 'vn' : final.replace(/^u/, 'v');
  if (final === 'i' && /^[zcsr]/.test(initial)) return `${INITIALS[initial]!}ɨ0`;
  const vowel = FINALS[final];
  return vowel === undefined ? undefined : `${INITIALS[initial] ?? ''}${vowel}`;
}

/** The final of a syllable that pinyin begins with y or w: `you` -> iou, `wei` -> uei, `yuan` -> van. */
function withoutGlide(letters: string): string {
  if (letters.startsWith('yu')) return `v${letters.slice(2)}`;
  const rest = letters.slice(1);
  if (letters.startsWith('y')) return rest.startsWith('i') ? rest : `i${rest}`;
  if (letters.startsWith('w')) return rest.startsWith('u') ? rest : `u${rest}`;
  return letters;
}
