/** Words for what a model is. Pure functions, so that tests can cover them as a table. */
import { formatBytes } from '../util.ts';
import type { ModelAbout } from './manifest.ts';

/** Most languages that are named one by one; more are counted. */
const MOST_NAMED = 3;

/** Returns what views say about a model, a few words each. */
export function aboutWords({ contextLength, voices, sampleRate, languages }: ModelAbout): readonly string[] {
  return [
    ...(contextLength === undefined ? [] : [`${contextLength.toLocaleString('en')} tokens of context`]),
    ...(voices ? [voices.length === 1 ? '1 voice' : `${voices.length} voices`] : []),
    ...(sampleRate === undefined ? [] : [`${sampleRate / 1000} kHz`]),
    ...(languages ? [languageWords(languages)] : []),
  ];
}

/** Says how much device memory a model takes, if that is known. */
export function memoryWords({ memoryBytes, weightBytes }: ModelAbout): readonly string[] {
  if (memoryBytes !== undefined) return [`about ${formatBytes(memoryBytes)} of memory`];
  return weightBytes === undefined ? [] : [`at least ${formatBytes(weightBytes)} of memory`];
}

function languageWords(languages: readonly string[]): string {
  return languages.length > MOST_NAMED ? `${languages.length} languages` : languages.map(languageName).join(', ');
}

/** Returns the English name of a language code; the code itself where it has none. */
function languageName(code: string): string {
  try {
    return new Intl.DisplayNames(['en'], { type: 'language' }).of(code) ?? code;
  } catch {
    return code; // no code of a language at all
  }
}

/** Returns language codes with their names, sorted by name. */
export function namedLanguages(codes: readonly string[]): readonly (readonly [code: string, name: string])[] {
  return codes.map((code) => [code, languageName(code)] as const).sort(([, a], [, b]) => a.localeCompare(b, 'en'));
}

const LETTERS = Array.from({ length: 26 }, (_, at) => String.fromCharCode(97 + at));
/** Candidate codes of a language's name: all of two letters, and Whisper's of three. */
const CODES = [...LETTERS.flatMap((first) => LETTERS.map((second) => first + second)), 'haw', 'yue'];

/** Returns the code of a language's English name, as OpenAI's servers return it; a text that names no language stays as it is. */
export function languageCode(name: string): string {
  const names = new Intl.DisplayNames('en', { type: 'language' });
  const code = CODES.find((one) => names.of(one)?.toLowerCase() === name.toLowerCase());
  return code === undefined ? name : Intl.getCanonicalLocales(code)[0]!;
}
