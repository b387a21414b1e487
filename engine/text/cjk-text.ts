/** What Chinese and Japanese text needs to be cut into sentences and pieces as other text is: punctuation with spaces, and lengths in phonemes. */

const OPENING = '「『«《【〈〔［｢“（';
const CLOSING = '」』»》】〉〕］｣”）';
const STOPS: Readonly<Record<string, string>> = { '。': '.', '．': '.', '｡': '.', '、': ',', '，': ',', '､': ',', '！': '!', '？': '?', '：': ':', '；': ';' }; // prettier-ignore

/** Replaces full-width punctuation by the marks of the phoneme alphabet, with a space behind stops and around quotes, where sentences and clauses can be split. */
export function plainCjkPunctuation(text: string): string {
  return text
    .replace(/(?<=\d)：(?=\d)/g, ':')
    .replace(/[。．｡、，､！？：；]/g, (stop) => `${STOPS[stop]!} `)
    .replace(new RegExp(`[${OPENING}]`, 'g'), (mark) => (mark === '（' ? ' (' : ' “'))
    .replace(new RegExp(`[${CLOSING}]`, 'g'), (mark) => (mark === '）' ? ') ' : '” '))
    .replace(/(?:…|\.{2,}|・{3,})+/g, '… ')
    .replace(/[—―─–]+|(?<!\d)[〜～](?!\d)/g, '—')
    .replace(/[·・‧]/g, ' ')
    .replace(/[^\S\n]+(?=[,.!?:;…”)\n]|$)/g, '')
    .replace(/(?<=[“(]|\n|^)[^\S\n]+/g, '')
    .replace(/[^\S\n]+/g, ' ');
}

/** Most phonemes of a character with the space behind its word: 状 is ꭧwa↘ŋ, and 志 is kokoɾoʣaɕi. Kana: き is kʲi. */
const PHONEMES = { zh: { han: 7, kana: 4 }, ja: { han: 14, kana: 4 } } as const;

/** Most phonemes of a Chinese or Japanese character; undefined for other characters. */
export function cjkPhonemesAtMost(character: string, language: 'zh' | 'ja'): number | undefined {
  if (/^[\p{Script=Han}々〆〇]$/u.test(character)) return PHONEMES[language].han;
  return /^[\p{Script=Hiragana}\p{Script=Katakana}ー]$/u.test(character) ? PHONEMES[language].kana : undefined;
}

/** The end of the word that is nearest to the middle of a text without spaces; undefined if the text is a single word. */
export function middleWordEnd(text: string, language: 'zh' | 'ja'): number | undefined {
  const segments = [...new Intl.Segmenter(language, { granularity: 'word' }).segment(text)];
  const ends = segments.map(({ index, segment }) => index + segment.length).slice(0, -1);
  return ends.sort((a, b) => Math.abs(a - text.length / 2) - Math.abs(b - text.length / 2))[0];
}
