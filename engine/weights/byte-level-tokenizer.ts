/** Derives tokenizer.json from vocab.json and merges.txt, which is all that older repositories have of GPT-2's tokenizer. */
import { EngineError } from '../errors.ts';
import { isObject } from '../util/json.ts';
import type { Json } from '../util/json.ts';

/** The files of a folder. */
interface Files {
  where(name: string): string;
  has(name: string): Promise<boolean>;
  /** Reads a JSON file; `{}` where it is absent. */
  json(name: string): Promise<Json>;
  text(name: string): Promise<string>;
}

const [VOCABULARY, MERGES] = ['vocab.json', 'merges.txt'];

/** Other tokenizers have files of these names too, but split texts otherwise. */
const CLASSES: readonly unknown[] = ['GPT2Tokenizer', 'GPT2TokenizerFast'];
/** Types of models that have this tokenizer where no file names one (transformers, tokenization_auto.py). */
const TYPES: readonly unknown[] = ['gpt2', 'opt'];

/** Fields that name special tokens, and what GPT2Tokenizer has for them by default. */
const SPECIALS: Readonly<Record<string, string | undefined>> = {
  bos_token: '<|endoftext|>',
  eos_token: '<|endoftext|>',
  unk_token: '<|endoftext|>',
  pad_token: undefined,
};

/** The tokenizer.json that transformers' conversion makes of a folder's files; undefined where the folder does not have them, or of another tokenizer. */
export async function byteLevelTokenizer(files: Files): Promise<Json | undefined> {
  if (!(await files.has(VOCABULARY)) || !(await files.has(MERGES))) return undefined;
  const config = await files.json('tokenizer_config.json');
  const named = config['tokenizer_class'] ?? undefined;
  if (named === undefined ? !TYPES.includes((await files.json('config.json'))['model_type']) : !CLASSES.includes(named)) return undefined;
  const vocab = await files.json(VOCABULARY);
  const settings = { ...(await files.json('special_tokens_map.json')), ...config };
  const specials = Object.keys(SPECIALS).map((field) => flagsOf(settings[field] ?? SPECIALS[field]));
  const more = await files.json('added_tokens.json');
  const ids: Json = { ...vocab, ...more };
  const bytes = { type: 'ByteLevel', add_prefix_space: config['add_prefix_space'] === true, trim_offsets: true, use_regex: true };
  return {
    version: '1.0',
    added_tokens: addedTokens(ids, specials, Object.keys(more)),
    normalizer: null,
    pre_tokenizer: bytes,
    post_processor: config['add_bos_token'] === true ? framing(ids, specials[0]!) : null,
    decoder: bytes,
    model: { type: 'BPE', dropout: null, unk_token: null, continuing_subword_prefix: '', end_of_word_suffix: '', fuse_unk: false, vocab, merges: mergesOf(files.where(MERGES), await files.text(MERGES)) }, // prettier-ignore
  };
}

/** A special token, as its spelling or as an object with it. */
function flagsOf(token: unknown): Json & { readonly content?: unknown } {
  return isObject(token) ? token : { content: token };
}

/** Special tokens that have an id, and other added tokens, each once. */
function addedTokens(ids: Json, specials: readonly Json[], others: readonly string[]): readonly Json[] {
  const all = [
    ...specials.map((token) => ({ ...token, special: true })),
    ...others.map((content) => ({ content, special: false })),
  ] as Json[];
  const found = new Map<unknown, Json>();
  for (const token of all) if (typeof token['content'] === 'string' && !found.has(token['content'])) found.set(token['content'], token);
  return [...found.values()].flatMap(({ content, special, single_word, lstrip, rstrip }) => {
    const id = ids[content as string];
    const flag = (value: unknown): boolean => value === true;
    return typeof id === 'number'
      ? [{ id, content, special, single_word: flag(single_word), lstrip: flag(lstrip), rstrip: flag(rstrip), normalized: false }]
      : [];
  });
}

/** The step that puts the first special token before a text. */
function framing(ids: Json, { content }: { readonly content?: unknown }): Json | null {
  const [token, id] = [String(content), ids[String(content)]];
  if (typeof id !== 'number') return null;
  const place = [{ SpecialToken: { id: token, type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } }];
  const tokens = { [token]: { id: token, ids: [id], tokens: [token] } };
  return { type: 'TemplateProcessing', single: place, pair: [...place, { Sequence: { id: 'B', type_id: 1 } }], special_tokens: tokens };
}

/** Pairs that are merged, a line each behind one with the version; throws EngineError('invalid_model') for a line of another kind. */
function mergesOf(path: string, content: string): readonly (readonly string[])[] {
  const lines = content.split(/\r?\n/).filter((line, i) => line !== '' && !(i === 0 && line.startsWith('#version')));
  return lines.map((line) => {
    const parts = line.split(' ');
    if (parts.length === 2 && parts.every((part) => part !== '')) return parts;
    throw new EngineError('invalid_model', `${path} has the line ${JSON.stringify(line.slice(0, 80))}, expected two parts of a token`);
  });
}
