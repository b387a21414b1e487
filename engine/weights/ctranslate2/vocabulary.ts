/** Derives a tokenizer.json from a list of tokens, which is all that CTranslate2's converter writes. */
import { EngineError } from '../../errors.ts';
import type { Json } from '../../util/json.ts';

/** Number of single-byte tokens, with which a byte-level vocabulary begins. */
const BYTES = 256;
/** Pattern of control tokens. */
const SPECIAL = /^<\|.*\|>$/;
/** Longest token, since tokens are merged pair by pair; the longest published one has 66 characters. */
const MAX_TOKEN = 256;
const MAX_TOKENS = 2 ** 18;

/** Parses vocabulary.txt (one token per line) or vocabulary.json (a list), in the order of ids; throws EngineError('invalid_model'). */
export function parseVocabulary(path: string, content: string): readonly string[] {
  const refuse = (why: string): never => {
    throw new EngineError('invalid_model', `${path} ${why}`);
  };
  let tokens: unknown;
  if (path.endsWith('.txt')) tokens = content.replace(/\r?\n$/, '').split(/\r?\n/);
  else {
    try {
      tokens = JSON.parse(content);
    } catch (cause) {
      throw new EngineError('invalid_model', `${path} is not JSON`, { cause });
    }
  }
  if (!Array.isArray(tokens)) return refuse('holds no list of tokens');
  if (tokens.length > MAX_TOKENS) refuse(`lists ${tokens.length} tokens; at most ${MAX_TOKENS} are read`);
  const wrong = tokens.findIndex((token) => typeof token !== 'string' || token.length > MAX_TOKEN);
  if (wrong >= 0) refuse(`has no token of at most ${MAX_TOKEN} characters at place ${wrong}`);
  return tokens as string[];
}

/**
 * The tokenizer.json of a byte-level BPE. Its merges are not in the list but follow from it: tokens stand in the order in which they were
 * merged, so the merges before a token leave exactly the two parts that it was merged from.
 */
export function tokenizerOf(path: string, tokens: readonly string[]): Json {
  const special = tokens.flatMap((content, id) => (SPECIAL.test(content) ? [{ id, content }] : []));
  const text = tokens.slice(0, special[0]?.id ?? tokens.length);
  const ranks = new Map(text.map((token, id) => [token, id]));
  if (text.length < BYTES || text.slice(0, BYTES).some((token) => [...token].length !== 1)) {
    throw new EngineError('invalid_model', `${path} is no byte-level vocabulary: its first ${BYTES} tokens are not the bytes; add the model's tokenizer.json`); // prettier-ignore
  }
  const merges = text.slice(BYTES).flatMap((token, i) => {
    // The last text token of multilingual Whisper, just before the special tokens, is empty.
    if (token === '') return [];
    const parts = partsOf(token, ranks, BYTES + i);
    if (parts.length === 2) return [parts];
    throw new EngineError('invalid_model', `${path}: token ${BYTES + i} is not made of two earlier ones; add the model's tokenizer.json`);
  });
  const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: true };
  return {
    version: '1.0',
    added_tokens: special.filter(({ content }) => !TIME.test(content)).map((token) => ({ ...token, ...flags })),
    normalizer: null,
    pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true },
    post_processor: null,
    decoder: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: { type: 'BPE', dropout: null, unk_token: null, continuing_subword_prefix: '', end_of_word_suffix: '', fuse_unk: false, vocab: Object.fromEntries(ranks), merges }, // prettier-ignore
  };
}

/** Timestamps are ids beyond the tokenizer's, as in the published files. */
const TIME = /^<\|\d+\.\d+\|>$/;

/** The parts of a token after all merges that rank below it. */
function partsOf(token: string, ranks: ReadonlyMap<string, number>, rank: number): string[] {
  const parts = [...token];
  for (;;) {
    let best = rank;
    let at = -1;
    for (let i = 0; i + 1 < parts.length; i++) {
      const merged = ranks.get(parts[i]! + parts[i + 1]!) ?? rank;
      if (merged < best) [best, at] = [merged, i];
    }
    if (at < 0) return parts;
    parts.splice(at, 2, parts[at]! + parts[at + 1]!);
  }
}
