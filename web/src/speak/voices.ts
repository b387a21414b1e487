/** The voices that are offered, and the one that speaks. */
import { SPEECH_LANGUAGES, languageOfVoice } from '../../../engine/util/speech-languages.ts';
import { OPENAI_VOICES, VOICE_TABLE, parseBlend, resolveVoices } from '../../../engine/util/voices.ts';

/** Voice names of the speech API, in its order: every Parley server accepts them, whatever its model. */
export const INTERFACE_VOICES: readonly string[] = [...VOICE_TABLE.keys()].filter((name) => !OPENAI_VOICES.has(name));

/** Sorts a model's voices: those of the speech API first, in its order, then the others. */
export function inOrder(voices: readonly string[]): readonly string[] {
  const rank = (voice: string): number => (INTERFACE_VOICES.includes(voice) ? INTERFACE_VOICES.indexOf(voice) : INTERFACE_VOICES.length);
  return [...voices].sort((a, b) => rank(a) - rank(b));
}

/**
 * Groups a model's voices by the languages that they speak, as their names tell, in the order of SPEECH_LANGUAGES. Voices of one language alone, or with names that
 * tell none, are one group without a language.
 */
export function byLanguage(voices: readonly string[]): readonly (readonly [language: string | undefined, voices: readonly string[]])[] {
  const sorted = inOrder(voices);
  const known = Object.entries(SPEECH_LANGUAGES).map(
    ([tag, { name }]) => [name, sorted.filter((voice) => languageOfVoice(voice) === tag)] as const,
  );
  const groups = known.filter(([, names]) => names.length > 0);
  if (groups.length < 2) return [[undefined, sorted]];
  const rest = sorted.filter((voice) => languageOfVoice(voice) === undefined);
  return [...(rest.length > 0 ? [[undefined, rest] as const] : []), ...groups];
}

/**
 * Returns the voice that speaks: the first of `chosen` (which begins with the choice for this model) that the model has; else what stands
 * for the last of them; else the model's first voice. Where its voices are not known yet, the first of `chosen`.
 */
export function voiceFor(voices: readonly string[] | undefined, chosen: readonly string[]): string {
  const wanted = chosen.at(-1)!;
  if (!voices || voices.length === 0) return chosen[0]!;
  const known = chosen.find((voice) => voices.includes(voice));
  if (known !== undefined) return known;
  const stand = resolveVoices(VOICE_TABLE, voices).get(wanted);
  const [loudest] = [...(parseBlend(stand ?? '') ?? [])].sort(([, a], [, b]) => b - a);
  return loudest?.[0] ?? inOrder(voices)[0]!;
}
