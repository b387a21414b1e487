/** How tokenizer.json cuts texts, in terms that the tokenizer library reads as the checkpoints' own tokenizers do. */
import { isObject } from '../util/json.ts';

/** What GPT-2's ByteLevel cuts by. */
const WORDS = String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`;
const PUNCTUATION = String.raw`[\p{P}!-/:-@\[-${'`'}{-~]`;

/**
 * The library's Digits know those of ASCII alone (" ½", "٣٤"), white space in its ByteLevel is JavaScript's (with U+FEFF, without U+0085), and its Punctuation
 * leaves runs together. Patterns it reads as they are meant.
 */
export function asPatterns(pre: unknown): unknown {
  if (!isObject(pre)) return pre;
  const { type, pattern, pretokenizers, individual_digits, behavior = 'Isolated', use_regex, add_prefix_space } = pre;
  if (type === 'Sequence' && Array.isArray(pretokenizers)) return { ...pre, pretokenizers: pretokenizers.map(asPatterns) };
  if (type === 'Digits') return split(individual_digits === true ? String.raw`\p{N}` : String.raw`\p{N}+`);
  if (type === 'Punctuation' && behavior === 'Isolated') return split(PUNCTUATION);
  // The space in front comes before the cuts.
  if (type === 'ByteLevel' && use_regex !== false && add_prefix_space !== true) {
    return { type: 'Sequence', pretokenizers: [split(WORDS), { ...pre, use_regex: false }] };
  }
  // In a run of white space that something follows, this looks to the end of the run from every place in it (DeepSeek LLM): minutes for a megabyte.
  if (type === 'Split' && isObject(pattern) && pattern['Regex'] === String.raw`\s+$`) {
    return { ...pre, pattern: { Regex: String.raw`(?<!\s)\s+$` } };
  }
  return pre;
}

function split(pattern: string): unknown {
  return { type: 'Split', pattern: { Regex: pattern }, behavior: 'Isolated', invert: false };
}
