/** The JavaScript tokenizer library, patched to give the same ids as Hugging Face's (Rust) tokenizers where they differ. */
import { BPE, Tokenizer, Unigram } from '@huggingface/tokenizers';
import { isObject } from '../util/json.ts';
import type { Json } from '../util/json.ts';
import { withFewMarks } from '../util/marks.ts';
import { AddedTokens } from './added-tokens.ts';
import type { AddedToken } from './added-tokens.ts';
import { PairMerger } from './pair-merger.ts';
import { isBounded } from './pattern-time.ts';
import { asPatterns, mendCuts } from './pre-tokenizer.ts';

/** Settings of tokenizer_config.json that Hugging Face's tokenizers ignore, because tokenizer.json decides, but that the library heeds. */
const IGNORED = { remove_space: false, do_lowercase_and_remove_accent: false };

type Tokenized = Json & { readonly added_tokens: readonly AddedToken[] };

/** Makes a tokenizer from tokenizer.json (`json`) and tokenizer_config.json (`config`). Throws the library's own errors, and an Error for a pattern of unbounded running time. */
export function mendedTokenizer(json: Tokenized, config: Json): Tokenizer {
  const model = json['model'] as Json;
  const { merges } = model;
  const given: Json = {
    ...json,
    // The library would serialise every pair of the merges as JSON; PairMerger does the merging.
    model: Array.isArray(merges) ? { ...model, merges: [] } : model,
    ...('pre_tokenizer' in json && { pre_tokenizer: asPatterns(json['pre_tokenizer']) }),
    ...('normalizer' in json && { normalizer: asNormalizer(json['normalizer']) }),
    ...('decoder' in json && { decoder: asDecoder(json['decoder']) }),
  };
  // The library looks in the configuration for the unknown token of a WordLevel model.
  const tokenizer = new Tokenizer(given, { ...config, ...IGNORED, ...('unk_token' in model && { unk_token: model['unk_token'] }) });
  for (const step of [tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.decoder]) refuseSlowPatterns(step);
  mendCuts(tokenizer.pre_tokenizer);
  if (Array.isArray(merges)) mendMerges(tokenizer, merges);
  if (tokenizer.model instanceof Unigram) {
    const unigram = tokenizer.model;
    // The library's own version spreads all tokens of a text into the arguments of one call, which overflows the stack.
    unigram.encode = (texts) => texts.flatMap((text) => unigram.tokenize(text));
  }
  mendAddedTokens(tokenizer, json.added_tokens);
  return tokenizer;
}

/** Throws an Error for a normalizer, pre-tokenizer or decoder of the library with a pattern whose running time is not bounded; looks into sequences too. */
function refuseSlowPatterns(step: unknown): void {
  if (step === null || step === undefined) return;
  const { pattern, config, normalizers, tokenizers, decoders } = step as Readonly<Record<string, unknown>>;
  for (const inside of [normalizers, tokenizers, decoders]) if (Array.isArray(inside)) inside.forEach(refuseSlowPatterns);
  if (!(pattern instanceof RegExp) || isBounded(pattern)) return;
  const given = isObject(config) && isObject(config['pattern']) ? config['pattern']['Regex'] : pattern.source;
  throw new Error(`the pattern ${JSON.stringify(given).slice(0, 120)} may take a time that nothing bounds`);
}

function mendMerges(tokenizer: Tokenizer, merges: readonly unknown[]): void {
  if (!(tokenizer.model instanceof BPE)) return;
  const model = tokenizer.model;
  const { continuing_subword_prefix: prefix, end_of_word_suffix: suffix, unk_token, byte_fallback } = model.config as unknown as Json;
  // Without an unknown token or byte fallback, characters that no token spells are dropped before merging.
  const isSpelled = typeof unk_token === 'string' || byte_fallback === true ? undefined : (part: string) => model.tokens_to_ids.has(part);
  const merger = new PairMerger(merges, { prefix: textOf(prefix), suffix: textOf(suffix), isSpelled });
  model.bpe = (word) => merger.merge(word) as string[];
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Replaces the library's split at added tokens. Each pre-tokenized piece is also encoded by itself, so that unknown tokens are fused within a piece only. */
function mendAddedTokens(tokenizer: Tokenizer, tokens: readonly AddedToken[]): void {
  const { normalizer, pre_tokenizer: pre } = tokenizer;
  const model = tokenizer.model!;
  const added = new AddedTokens(tokens, (text) => (normalizer && text !== '' ? normalizer(withFewMarks(text)) : text));
  const pieces = (text: string, isFirst: boolean): readonly string[] => (pre ? pre(text, { section_index: isFirst ? 0 : 1 }) : [text]);
  const encodeText = (text: string | null): string[] | null =>
    text === null
      ? null
      : added.cut(text).flatMap((stretch) => {
          if (stretch.token) return [stretch.token.content];
          return pieces(stretch.text, stretch.isFirst).flatMap((piece) => model([piece]));
        });
  Object.assign(tokenizer, { encode_text: encodeText });
}

/**
 * Rewrites a normalizer where the library differs from Hugging Face's: Strip removes Unicode's white space, `$&` in a replacement is literal text, and a final
 * capital sigma is lowercased like any other.
 */
function asNormalizer(step: unknown): unknown {
  if (!isObject(step)) return step;
  const { type, normalizers, lowercase, strip_left: left, strip_right: right } = step;
  if (type === 'Sequence' && Array.isArray(normalizers)) return { ...step, normalizers: normalizers.map(asNormalizer) };
  const sequence = (...steps: readonly unknown[]): unknown => ({ type: 'Sequence', normalizers: steps });
  const replace = (pattern: unknown, content: string): unknown => ({ type: 'Replace', pattern, content });
  if (type === 'Strip') {
    const none = (isWanted: unknown, pattern: string): readonly unknown[] => (isWanted === true ? [replace({ Regex: pattern }, '')] : []);
    return sequence(...none(left, String.raw`\A\s+`), ...none(right, String.raw`(?<!\s)\s+\z`));
  }
  if (type === 'Lowercase' || (type === 'BertNormalizer' && lowercase === true)) return sequence(replace({ String: 'Σ' }, 'σ'), step);
  return withPlainContent(step);
}

function withPlainContent(step: Json): Json {
  const { type, content } = step;
  return type === 'Replace' && typeof content === 'string' ? { ...step, content: content.replaceAll('$', '$$$$') } : step;
}

/** Rewrites a decoder where the library differs: a Metaspace that prepends no mark keeps a text's leading space when decoding. */
function asDecoder(decoder: unknown): unknown {
  if (!isObject(decoder)) return decoder;
  const { type, decoders, prepend_scheme: scheme, add_prefix_space: space, replacement } = decoder;
  if (type === 'Sequence' && Array.isArray(decoders)) return { ...decoder, decoders: decoders.map(asDecoder) };
  const isBare = type === 'Metaspace' && (scheme === 'never' || (scheme === undefined && space === false));
  return isBare ? { type: 'Replace', pattern: { String: replacement ?? '\u2581' }, content: ' ' } : withPlainContent(decoder);
}
