/** The languages that Whisper was trained on: codes and names. */

/** ISO 639 codes of the languages Whisper was trained on. */
const LANGUAGES =
  'en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th ur hr bg lt la mi ml cy sk te fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw gl mr pa si km sn yo so af oc ka be tg sd gu am yi lo uz fo ht ps tk nn mt sa lb my bo tl mg as tt haw ln ha ba jw su yue'.split(
    ' ',
  );

/** The English name of a language code in lower case, as OpenAI's API writes it. */
export function englishName(code: string): string {
  return OWN_NAMES[code] ?? (LANGUAGE_NAMES.of(code) ?? code).toLowerCase();
}

/** Names by code where OpenAI's differ from Unicode's. */
const OWN_NAMES: Readonly<Record<string, string>> = { bn: 'bengali', mi: 'maori', my: 'myanmar', nn: 'nynorsk', tl: 'tagalog' };

/** Further names that are accepted: those of OpenAI's code, and Unicode's where OpenAI's differ. */
const OTHER_NAMES: ReadonlyMap<string, string> = new Map([
  ['bangla', 'bn'], ['māori', 'mi'], ['burmese', 'my'], ['norwegian nynorsk', 'nn'], ['filipino', 'tl'], ['valencian', 'ca'], ['flemish', 'nl'],
  ['haitian', 'ht'], ['letzeburgesch', 'lb'], ['pushto', 'ps'], ['panjabi', 'pa'], ['moldavian', 'ro'], ['moldovan', 'ro'], ['sinhalese', 'si'],
  ['castilian', 'es'], ['mandarin', 'zh'],
]); // prettier-ignore

/** ISO 639-1 codes of languages for which Whisper has another code. */
const OTHER_CODES: ReadonlyMap<string, string> = new Map([['jv', 'jw'], ['nb', 'no']]); // prettier-ignore

const LANGUAGE_NAMES = new Intl.DisplayNames('en', { type: 'language' });

/** Whisper's code of a language given as code, code with region ("pt-BR") or English name; undefined for a language that Whisper does not know. */
export function languageCode(language: string): string | undefined {
  const wanted = language.trim().toLowerCase();
  const first = wanted.split(/[-_]/)[0]!;
  const code = OTHER_CODES.get(first) ?? first;
  return LANGUAGES.find((known) => known === code) ?? LANGUAGES.find((known) => englishName(known) === wanted) ?? OTHER_NAMES.get(wanted);
}
