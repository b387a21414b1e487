/** English text to the token ids of a phoneme vocabulary, through espeak-ng (npm `phonemizer`, WebAssembly: the same code in Node and browsers). */
import { EngineError } from '../errors.ts';
import { MISAKI_SPELLINGS } from './misaki-spellings.ts';

/** A checkpoint's phoneme_rules.json: from espeak-ng's en-us IPA to the inventory it was trained on. */
export interface PhonemeRules {
  /** Literal replacements, in order. */
  readonly replace: readonly (readonly [string, string])[];
  /** Symbols that stay; absent = the vocabulary's. */
  readonly inventory?: ReadonlySet<string>;
}

/** For checkpoints without phoneme_rules.json: espeak's symbols that Kokoro's alphabet writes otherwise. */
export const DEFAULT_PHONEME_RULES: PhonemeRules = {
  replace: [['\u0361', ''], ['^', ''], ['ʲ', 'j'], ['r', 'ɹ'], ['x', 'k'], ['ɬ', 'l'], ['tʃ', 'ʧ'], ['dʒ', 'ʤ'], ['eɪ', 'A'], ['aɪ', 'I'], ['ɔɪ', 'Y'], ['oʊ', 'O'], ['aʊ', 'W']],
}; // prettier-ignore

/** Whose English a voice speaks. */
export type Accent = 'en-us' | 'en-gb';

/** espeak-ng's names. It takes `en-gb` too and then keeps the voice of the call before: `en` is its name for what is spoken in Great Britain. */
const ESPEAK: Readonly<Record<Accent, string>> = { 'en-us': 'en-us', 'en-gb': 'en' };

/** How each accent's phonemes are written for a model. */
export type Spellings = Readonly<Record<Accent, PhonemeRules>>;

/** Symbols that misaki, the phonemizer of published Kokoro, writes and espeak-ng does not. */
const MISAKI = ['ᵊ', 'A', 'I', 'O', 'Q', 'T', 'W', 'Y', 'ʤ', 'ʧ'];

/** The spellings of a checkpoint that comes without phoneme_rules.json, by its alphabet. */
export function spellingsFor(vocab: ReadonlyMap<string, number>): Spellings {
  if (MISAKI.every((symbol) => vocab.has(symbol))) return MISAKI_SPELLINGS;
  return { 'en-us': DEFAULT_PHONEME_RULES, 'en-gb': DEFAULT_PHONEME_RULES };
}

/** Reads phoneme_rules.json; throws EngineError('invalid_model') when it is not one. */
export function parsePhonemeRules(json: unknown): PhonemeRules {
  const { replace, inventory } = (json ?? {}) as { replace?: unknown; inventory?: unknown };
  const pairs =
    Array.isArray(replace) && replace.every((pair) => Array.isArray(pair) && pair.length === 2 && pair.every((p) => typeof p === 'string'));
  if (!pairs) throw new EngineError('invalid_model', 'phoneme_rules.json: replace must be a list of pairs of strings');
  const rules = { replace: replace as [string, string][] };
  return Array.isArray(inventory) ? { ...rules, inventory: new Set(inventory as string[]) } : rules;
}

/** Marks the phonemizer would drop; the text between them is phonemised piece by piece and they stay. */
const PUNCTUATION = /(\s*[;:,.!?—…"“”()]+\s*)/;
/** espeak-ng announces a change of language, e.g. "(fr)". */
const LANGUAGE_SWITCH = /\([a-z]{2,3}(?:-[a-z]+)?\)/g;

/** espeak-ng's IPA of speakable text, punctuation kept. Takes about a millisecond a phoneme, in which its thread does nothing else: see phonemizer.ts. */
export async function toIpa(text: string, accent: Accent = 'en-us'): Promise<string> {
  const { phonemize } = await import('phonemizer');
  let ipa = '';
  for (const part of text.split(PUNCTUATION)) {
    if (part === '') continue;
    ipa += /[;:,.!?—…"“”()]/.test(part) ? part : (await phonemize(part, ESPEAK[accent])).join(' ').replace(LANGUAGE_SWITCH, '');
  }
  return ipa.trim();
}

/** Token ids of a text, and whether they hold anything but punctuation. */
export interface PhonemeIds {
  readonly phonemes: string;
  /** Without the id 0 that a model wants at both ends. */
  readonly ids: readonly number[];
  readonly speakable: boolean;
}

const SILENT = /^[\s;:,.!?—…"“”()ˈˌ]*$/;

/** Phonemes in a model's own alphabet, of what espeak-ng has made of a text. */
export function fromIpa(ipa: string, rules: PhonemeRules, vocab: ReadonlyMap<string, number>): PhonemeIds {
  let phonemes = ipa;
  for (const [symbols, replacement] of rules.replace) phonemes = phonemes.replaceAll(symbols, replacement);
  const kept = [...phonemes].filter((symbol) => vocab.has(symbol) && (rules.inventory?.has(symbol) ?? true));
  phonemes = kept.join('').replace(/ +/g, ' ').trim();
  return { phonemes, ids: [...phonemes].map((symbol) => vocab.get(symbol)!), speakable: !SILENT.test(phonemes) };
}
