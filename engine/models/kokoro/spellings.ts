/** The phoneme rules of a checkpoint, and with them the languages that it speaks. */
import { parsePhonemeRules, spellingsFor } from '../../text/phonemes.ts';
import type { Spellings } from '../../text/phoneme-rules.ts';
import type { ModelFolder } from '../../weights/model-folder.ts';

/** Optional file with the rules that the voices were trained with, for American English. */
const RULES = 'phoneme_rules.json';

/** Reads a checkpoint's phoneme rules; without them, returns those for its alphabet. Throws EngineError('invalid_model') if they are malformed. */
export async function readSpellings(folder: ModelFolder, vocab: ReadonlyMap<string, number>): Promise<Spellings> {
  if (!(await folder.has(RULES))) return spellingsFor(vocab);
  return new Map([['en-us', parsePhonemeRules(await folder.json(RULES))]]);
}
