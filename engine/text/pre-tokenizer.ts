/** The pre-tokenizers of tokenizer.json, rewritten to ones that the JavaScript library executes as Hugging Face's (Rust) tokenizers do. */
import { MetaspacePreTokenizer, SequencePreTokenizer, SplitPreTokenizer } from '@huggingface/tokenizers';
import type { PreTokenizer } from '@huggingface/tokenizers';
import { isObject } from '../util/json.ts';

/** GPT-2's pattern, by which ByteLevel splits a text. */
const WORDS = String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`;
const PUNCTUATION = String.raw`[\p{P}!-/:-@\[-${'`'}{-~]`;
const SPACE = String.raw`\p{White_Space}`;
/** Word characters (`\w`) as the Rust tokenizers define them, for use in a character class. */
const LETTER = String.raw`\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d`;
const MAX_LENGTH = 1000;

/**
 * Rewrites a pre-tokenizer, mostly to Split with a pattern, which the library executes correctly. Its own Digits and Whitespace know ASCII only (not "½" or "٣٤"), its white space is
 * JavaScript's (with U+FEFF, without U+0085), its Punctuation keeps runs together, its Metaspace never splits, and its FixedLength splits surrogate pairs.
 */
export function asPatterns(pre: unknown): unknown {
  if (!isObject(pre)) return pre;
  const { type, pattern, pretokenizers, individual_digits, behavior = 'Isolated', length } = pre;
  if (type === 'Sequence' && Array.isArray(pretokenizers)) return { ...pre, pretokenizers: pretokenizers.map(asPatterns) };
  if (type === 'Digits') return split(individual_digits === true ? String.raw`\p{N}` : String.raw`\p{N}+`);
  if (type === 'Punctuation') return split(PUNCTUATION, behavior);
  if (type === 'WhitespaceSplit') return split(`${SPACE}+`, 'Removed');
  if (type === 'Whitespace') return split(`[^${LETTER}${SPACE}]+|[${LETTER}]+`, 'Removed', true);
  if (type === 'BertPreTokenizer') return sequence(split(`${SPACE}+`, 'Removed'), split(PUNCTUATION));
  if (type === 'FixedLength' && Number.isInteger(length) && (length as number) > 0 && (length as number) <= MAX_LENGTH) return split(String.raw`[\s\S]{1,${length}}`); // prettier-ignore
  if (type === 'ByteLevel') return byteLevel(pre);
  if (type === 'Metaspace') return metaspace(pre);
  // DeepSeek LLM's pattern is quadratic in runs of white space that are not at the end: it scans each run from every position, minutes for a megabyte.
  if (type === 'Split' && isObject(pattern) && pattern['Regex'] === String.raw`\s+$`) {
    return { ...pre, pattern: { Regex: String.raw`(?<!\s)\s+$` } };
  }
  return pre;
}

function byteLevel(pre: Readonly<Record<string, unknown>>): unknown {
  if (pre['use_regex'] === false) return pre;
  const bytes = { ...pre, add_prefix_space: false, use_regex: false };
  // The leading space is added before the text is split.
  const space = { type: 'Metaspace', replacement: ' ', prepend_scheme: 'always' };
  return pre['add_prefix_space'] === true ? sequence(space, split(WORDS), bytes) : sequence(split(WORDS), bytes);
}

function metaspace(pre: Readonly<Record<string, unknown>>): unknown {
  // Older files have `add_prefix_space` instead of `prepend_scheme`.
  const scheme = pre['prepend_scheme'] ?? (pre['add_prefix_space'] === false ? 'never' : 'always');
  const mark = { ...pre, prepend_scheme: scheme };
  if (pre['split'] === false) return mark;
  const cut = { type: 'Split', pattern: { String: pre['replacement'] ?? '\u2581' }, behavior: 'MergedWithNext', invert: false };
  return sequence(mark, cut);
}

function sequence(...pretokenizers: readonly unknown[]): unknown {
  return { type: 'Sequence', pretokenizers };
}

function split(pattern: string, behavior: unknown = 'Isolated', invert = false): unknown {
  return { type: 'Split', pattern: { Regex: pattern }, behavior, invert };
}

/** The library's private fields of a Split. */
interface SplitParts {
  readonly pattern: RegExp | null;
  readonly config: { readonly behavior?: unknown; readonly invert?: unknown };
}

/** Patches a pre-tokenizer in place: the library implements two of the five behaviours of Split, and lets Metaspace treat every piece as the first of its text. */
export function mendCuts(pre: PreTokenizer | null): void {
  if (pre instanceof SequencePreTokenizer) {
    for (const one of (pre as unknown as { readonly tokenizers: readonly (PreTokenizer | null)[] }).tokenizers) mendCuts(one);
  } else if (pre instanceof SplitPreTokenizer) {
    const { pattern, config } = pre as unknown as SplitParts;
    const behavior = typeof config.behavior === 'string' ? config.behavior.toLowerCase() : '';
    const isPlain = behavior === 'isolated' && config.invert !== true;
    if (pattern && !isPlain) pre.pre_tokenize_text = (text) => piecesOf(text, pattern, behavior, config.invert === true);
  }
  if (pre instanceof MetaspacePreTokenizer || pre instanceof SequencePreTokenizer) {
    pre.pre_tokenize = (text, options) =>
      [text].flat().flatMap((piece, i) => pre.pre_tokenize_text(piece, i === 0 ? options : { ...options, section_index: 1 }));
  }
}

/** Splits a text at the matches of a pattern and joins matches to their neighbours as `behavior` says. `invert`: the text between is what matches. */
function piecesOf(text: string, pattern: RegExp, behavior: string, invert: boolean): string[] {
  const pieces: string[] = [];
  let wasMatch = false;
  // A match to be joined to the piece after it.
  let waiting = '';
  const take = (piece: string, isMatch: boolean): void => {
    if (behavior === 'mergedwithnext') {
      if (isMatch) {
        if (wasMatch) pieces.push(waiting);
        waiting = piece;
      } else {
        pieces.push(waiting + piece);
        waiting = '';
      }
    } else if ((behavior === 'mergedwithprevious' && isMatch && !wasMatch) || (behavior === 'contiguous' && isMatch === wasMatch)) {
      pieces.push((pieces.pop() ?? '') + piece);
    } else if (behavior !== 'removed' || !isMatch) pieces.push(piece);
    wasMatch = isMatch;
  };
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    if (end < match.index) take(text.slice(end, match.index), invert);
    take(match[0], !invert);
    end = match.index + match[0].length;
  }
  if (end < text.length) take(text.slice(end), invert);
  pieces.push(waiting);
  return pieces.filter((piece) => piece !== '');
}
