/** Converts English text to token ids of a phoneme vocabulary with espeak-ng (npm `phonemizer`, WebAssembly: the same code in Node and browsers). */
import { EngineError } from '../errors.ts';
import { MISAKI_SPELLINGS } from './misaki-spellings.ts';

/** A checkpoint's phoneme_rules.json, which rewrites espeak-ng's en-us IPA in the inventory that it was trained on. */
export interface PhonemeRules {
  /** Literal replacements, in order. */
  readonly replace: readonly (readonly [string, string])[];
  /** Symbols that are kept; absent = all of the vocabulary. */
  readonly inventory?: ReadonlySet<string>;
}

/** Rules for checkpoints without phoneme_rules.json: espeak-ng's symbols that Kokoro's alphabet writes differently. */
export const DEFAULT_PHONEME_RULES: PhonemeRules = {
  replace: [['\u0361', ''], ['^', ''], ['ʲ', 'j'], ['r', 'ɹ'], ['x', 'k'], ['ɬ', 'l'], ['tʃ', 'ʧ'], ['dʒ', 'ʤ'], ['eɪ', 'A'], ['aɪ', 'I'], ['ɔɪ', 'Y'], ['oʊ', 'O'], ['aʊ', 'W']],
}; // prettier-ignore

/** The accent of a voice. */
export type Accent = 'en-us' | 'en-gb';

/** espeak-ng's voice names. `en` is British English; given `en-gb`, espeak-ng silently keeps the voice of the previous call. */
const ESPEAK: Readonly<Record<Accent, string>> = { 'en-us': 'en-us', 'en-gb': 'en' };

/** A model's phoneme rules for each accent. */
export type Spellings = Readonly<Record<Accent, PhonemeRules>>;

/** Symbols that misaki, the phonemizer of published Kokoro, writes and espeak-ng does not. */
const MISAKI = ['ᵊ', 'A', 'I', 'O', 'Q', 'T', 'W', 'Y', 'ʤ', 'ʧ'];

/** Phoneme rules of a checkpoint without phoneme_rules.json, chosen by its alphabet. */
export function spellingsFor(vocab: ReadonlyMap<string, number>): Spellings {
  if (MISAKI.every((symbol) => vocab.has(symbol))) return MISAKI_SPELLINGS;
  return { 'en-us': DEFAULT_PHONEME_RULES, 'en-gb': DEFAULT_PHONEME_RULES };
}

/** Parses phoneme_rules.json; throws EngineError('invalid_model') if it is malformed. */
export function parsePhonemeRules(json: unknown): PhonemeRules {
  const { replace, inventory } = (json ?? {}) as { replace?: unknown; inventory?: unknown };
  const pairs =
    Array.isArray(replace) && replace.every((pair) => Array.isArray(pair) && pair.length === 2 && pair.every((p) => typeof p === 'string'));
  if (!pairs) throw new EngineError('invalid_model', 'phoneme_rules.json: replace must be a list of pairs of strings');
  const rules = { replace: replace as [string, string][] };
  return Array.isArray(inventory) ? { ...rules, inventory: new Set(inventory as string[]) } : rules;
}

/** Punctuation that the phonemizer would drop: it is kept, and the text between is converted piece by piece. */
const PUNCTUATION = /(\s*[;:,.!?—…"“”()]+\s*)/;
/** espeak-ng's mark of a change of language, e.g. "(fr)". */
const LANGUAGE_SWITCH = /\([a-z]{2,3}(?:-[a-z]+)?\)/g;

/**
 * Converts speakable text to espeak-ng's IPA, and keeps the punctuation. Takes about a millisecond per phoneme, during which the thread is blocked: see
 * phonemizer.ts.
 */
export async function toIpa(text: string, accent: Accent = 'en-us'): Promise<string> {
  const { phonemize } = await import('phonemizer');
  let ipa = '';
  for (const part of text.split(PUNCTUATION)) {
    if (part === '') continue;
    ipa += /[;:,.!?—…"“”()]/.test(part) ? part : (await phonemize(part, ESPEAK[accent])).join(' ').replace(LANGUAGE_SWITCH, '');
  }
  return ipa.trim();
}

/** A text's phonemes and their token ids; `speakable` = they are more than punctuation and stress marks. */
export interface PhonemeIds {
  readonly phonemes: string;
  /** Token ids, without the 0 that a model expects at both ends. */
  readonly ids: readonly number[];
  readonly speakable: boolean;
}

const SILENT = /^[\s;:,.!?—…"“”()ˈˌ]*$/;

/** Rewrites espeak-ng's IPA in a model's own alphabet, and drops symbols that it lacks. */
export function fromIpa(ipa: string, rules: PhonemeRules, vocab: ReadonlyMap<string, number>): PhonemeIds {
  let phonemes = ipa;
  for (const [symbols, replacement] of rules.replace) phonemes = phonemes.replaceAll(symbols, replacement);
  const kept = [...phonemes].filter((symbol) => vocab.has(symbol) && (rules.inventory?.has(symbol) ?? true));
  phonemes = kept.join('').replace(/ +/g, ' ').trim();
  return { phonemes, ids: [...phonemes].map((symbol) => vocab.get(symbol)!), speakable: !SILENT.test(phonemes) };
}
