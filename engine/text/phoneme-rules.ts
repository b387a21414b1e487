/** How a checkpoint writes phonemes. */
import type { SpeechLanguage } from '../util/speech-languages.ts';

/** How espeak-ng's IPA is rewritten in the inventory that a checkpoint was trained on: for English, its phoneme_rules.json. */
export interface PhonemeRules {
  /** Literal replacements within one phoneme of espeak-ng's, before phonemes are joined: a diphthong, but not two vowels that meet. */
  readonly single?: readonly (readonly [string, string])[];
  /** Literal replacements, in order. */
  readonly replace: readonly (readonly [string, string])[];
  /** Symbols that are kept; absent = all of the vocabulary. */
  readonly inventory?: ReadonlySet<string>;
}

/** A model's phoneme rules for each language that it speaks. */
export type Spellings = ReadonlyMap<SpeechLanguage, PhonemeRules>;
