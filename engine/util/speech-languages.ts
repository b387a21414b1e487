/** The languages that text is spoken in, and how requests and voices name them. */

/** Tag of a language. */
export type SpeechLanguage = 'en-us' | 'en-gb' | 'es' | 'fr' | 'hi' | 'it' | 'ja' | 'pt-br' | 'zh';

/** Languages written without spaces between words, whose readings are in dictionaries of their own instead of espeak-ng's. */
export type UnspacedLanguage = 'ja' | 'zh';

interface LanguageNames {
  /** In English. */
  readonly name: string;
  /** What published Kokoro calls it: the first letter of its voices' names. */
  readonly letter: string;
}

/** All languages. Of those with the same first part the first is meant by it alone: `en` is American. */
export const SPEECH_LANGUAGES: Readonly<Record<SpeechLanguage, LanguageNames>> = {
  'en-us': { name: 'English', letter: 'a' },
  'en-gb': { name: 'British English', letter: 'b' },
  es: { name: 'Spanish', letter: 'e' },
  fr: { name: 'French', letter: 'f' },
  hi: { name: 'Hindi', letter: 'h' },
  it: { name: 'Italian', letter: 'i' },
  ja: { name: 'Japanese', letter: 'j' },
  'pt-br': { name: 'Brazilian Portuguese', letter: 'p' },
  zh: { name: 'Mandarin Chinese', letter: 'z' },
};

/** Whether a language is written without spaces between words. */
export const isUnspaced = (language: SpeechLanguage): language is UnspacedLanguage => language === 'ja' || language === 'zh';

const ALL = Object.entries(SPEECH_LANGUAGES) as readonly [SpeechLanguage, LanguageNames][];

/** The language that a request names by a tag (es, fr-FR, pt), a name (Spanish) or Kokoro's letter (e); undefined if there is none. */
export function speechLanguage(asked: string): SpeechLanguage | undefined {
  const wanted = asked.trim().toLowerCase().replaceAll('_', '-');
  const exact = ALL.find(([tag, { name, letter }]) => [tag, letter, name.toLowerCase()].includes(wanted));
  const [first] = wanted.split('-');
  const alike = ALL.find(([tag, { name }]) => tag.split('-')[0] === first || name.toLowerCase().split(' ').includes(wanted));
  return (exact ?? alike)?.[0];
}

/** The one of `languages` in which a text of a language is read: this language, or another accent of it; undefined if there is none. */
export function spokenAs(language: SpeechLanguage | undefined, languages: readonly SpeechLanguage[]): SpeechLanguage | undefined {
  if (language === undefined || languages.includes(language)) return language;
  const [first] = language.split('-');
  return languages.find((tag) => tag.split('-')[0] === first);
}

/** The language of a voice of published Kokoro, whose name begins with the language's letter, f or m, and a line; undefined for other names. */
export function languageOfVoice(voice: string): SpeechLanguage | undefined {
  const letter = /^([a-z])[fm]_/.exec(voice)?.[1];
  return ALL.find(([, names]) => names.letter === letter)?.[0];
}
