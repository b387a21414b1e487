/** A checkpoint's tokenizer: tokenizer.json, read and bounded before the tokenizer library sees it, and the special tokens of tokenizer_config.json. */
import type { Tokenizer as HuggingFaceTokenizer } from '@huggingface/tokenizers';
import { EngineError } from '../errors.ts';
import { describe, isObject } from '../util/json.ts';
import type { Json } from '../util/json.ts';
import type { ModelFolder } from '../weights/model-folder.ts';
import type { AddedToken } from './added-tokens.ts';
import { mendedTokenizer } from './mended-tokenizer.ts';

interface DecodeOptions {
  /** Leave special tokens out of the text; default true. */
  readonly skipSpecialTokens?: boolean;
  /** Ids of special tokens that are text all the same. */
  readonly keep?: ReadonlySet<unknown> | undefined;
}

/** The fields of tokenizer_config.json that are read here; the tokenizer library reads the others. */
export interface TokenizerConfig {
  readonly chat_template?: unknown;
  /** The token's spelling, or an object with it as `content`. */
  readonly bos_token?: unknown;
  readonly eos_token?: unknown;
  readonly [key: string]: unknown;
}

const FILE = 'tokenizer.json';
/** A text with every kind of character that pre-tokenizers tell apart: letters, digits, punctuation, spaces, a line break, and some beyond ASCII. */
const TRIAL = "It's 12 é!\n";

/** Converts text to token ids and back, as a checkpoint's tokenizer.json says. */
export class Tokenizer {
  readonly config: TokenizerConfig;
  readonly #tokenizer: HuggingFaceTokenizer;
  readonly #json: Readonly<Record<string, unknown>>;
  readonly #size: number;
  #vocabulary: Vocabulary | undefined;
  #longest: number | undefined;
  /** Ids of the 256 byte tokens of a Unigram model with `byte_fallback`: the library itself gives the unknown token for text that no piece spells. */
  readonly #bytes: readonly number[] | undefined;
  /** Ids of special tokens. */
  #hidden: ReadonlySet<number> | undefined;

  private constructor(tokenizer: HuggingFaceTokenizer, json: Readonly<Record<string, unknown>>, config: TokenizerConfig, size: number) {
    this.#size = size;
    this.#tokenizer = tokenizer;
    this.#json = json;
    this.config = config;
    this.#bytes = byteTokens(tokenizer, json);
  }

  /**
   * Reads a folder's tokenizer.json and, if there is one, tokenizer_config.json. `size` is the model's vocabulary size. Throws
   * EngineError('invalid_model') for a file that cannot be used, and for one whose vocabulary (without added tokens) is larger than the model's.
   */
  static async load(folder: ModelFolder, size = Infinity): Promise<Tokenizer> {
    const path = folder.where(FILE);
    const json = await readTokenizerFile(folder);
    const config = await readConfig(folder);
    const largest = largestId(json);
    if (largest >= size) throw new EngineError('invalid_model', `${path} has a token with id ${largest}, but the model has ${size} tokens; they do not belong together`); // prettier-ignore
    try {
      const tokenizer = mendedTokenizer(json, config);
      // The library reads some settings only when it encodes a text.
      const ids = tokenizer.encode(TRIAL).ids.filter((id) => Number.isInteger(id));
      if (ids.length > 0) tokenizer.decode(ids, { skip_special_tokens: true });
      return new Tokenizer(tokenizer, json, config, size);
    } catch (error) {
      // JavaScript's own errors about a missing or wrong value name the library's variables, not the file's fields.
      const isInside = error instanceof TypeError || error instanceof RangeError;
      const reason =
        isInside || !(error instanceof Error) ? 'a setting is missing, or is of the wrong kind' : error.message.split('\n', 1)[0];
      throw new EngineError('invalid_model', `${path} is no tokenizer that can be used (${reason})`, { cause: error });
    }
  }

  /**
   * Encodes a text. The text of a chat prompt already contains its special tokens, so none are added by default. Throws EngineError('invalid_request')
   * for an added token that the model does not have, and for text that no token spells where the tokenizer has no unknown token.
   */
  encode(text: string, { addSpecialTokens = false }: { addSpecialTokens?: boolean } = {}): number[] {
    const { ids: found, tokens } = this.#tokenizer.encode(text, { add_special_tokens: addSpecialTokens });
    const ids = this.#bytes ? found.flatMap((id, i) => this.#spelledByBytes(id, tokens[i]!) ?? [id]) : found;
    const strange = ids.findIndex((id) => id === undefined);
    if (strange >= 0) throw new EngineError('invalid_request', `no token of this model spells ${JSON.stringify(tokens[strange]?.slice(0, 40))}, and it has none for the unknown`); // prettier-ignore
    const unknown = ids.find((id) => id >= this.#size);
    if (unknown === undefined) return ids;
    throw new EngineError('invalid_request', `the text spells the token ${describe(this.vocabulary.tokens[unknown])} (id ${unknown}); this model has tokens 0 to ${this.#size - 1}`); // prettier-ignore
  }

  /** Byte tokens of a piece that was encoded as the unknown token; undefined for a piece that is in the vocabulary. */
  #spelledByBytes(id: number, text: string): number[] | undefined {
    const { model } = this.#tokenizer;
    if (id !== model?.unk_token_id || model?.tokens_to_ids.has(text)) return undefined;
    return Array.from(new TextEncoder().encode(text), (byte) => this.#bytes![byte]!);
  }

  /** Decodes token ids. Ids without a token have no text, and bytes that are not UTF-8 become U+FFFD. */
  decode(ids: readonly number[], { skipSpecialTokens = true, keep }: DecodeOptions = {}): string {
    if (skipSpecialTokens && ids.some((id) => keep?.has(id))) {
      const shown = ids.filter((id) => keep!.has(id) || !this.#isHidden(id));
      return this.decode(shown, { skipSpecialTokens: false });
    }
    // Checkpoints pad their vocabulary. For an id without a token the library writes the unknown token, or throws if there is none.
    const spelled = ids.filter((id) => this.#tokenizer.id_to_token(id) !== undefined);
    if (spelled.length === 0) return '';
    return this.#tokenizer.decode(spelled, { skip_special_tokens: skipSpecialTokens, clean_up_tokenization_spaces: false });
  }

  /** Whether a token adds nothing to what `decode` gives with these options, wherever it stands. */
  isSilent(id: number, { skipSpecialTokens = true, keep }: DecodeOptions = {}): boolean {
    return (skipSpecialTokens && !keep?.has(id) && this.#isHidden(id)) || this.#tokenizer.id_to_token(id) === undefined;
  }

  #isHidden(id: number): boolean {
    this.#hidden ??= new Set((this.#json['added_tokens'] as readonly AddedToken[]).flatMap((token) => (token.special === true ? [token.id] : []))); // prettier-ignore
    return this.#hidden.has(id);
  }

  /** Id of the token with this spelling in tokenizer.json; undefined if there is none. */
  tokenId(token: string): number | undefined {
    return this.#tokenizer.token_to_id(token);
  }

  /** All tokens by id, and how they spell bytes. */
  get vocabulary(): Vocabulary {
    return (this.#vocabulary ??= readVocabulary(this.#json));
  }

  /** Length in characters of the longest token, as tokenizer.json spells it. */
  get longest(): number {
    return (this.#longest ??= this.vocabulary.tokens.reduce((most, token) => Math.max(most, token?.length ?? 0), 1));
  }

  /** The UTF-8 bytes that a token stands for. They may be part of a character, since byte-level tokens are cut anywhere. */
  bytes(id: number): Uint8Array {
    const { tokens, type, special } = this.vocabulary;
    const spelled = tokens[id] ?? '';
    if (type === 'byte_level' && special.has(id)) return new TextEncoder().encode(spelled);
    if (type === 'byte_level')
      return Uint8Array.from([...spelled].flatMap((char) => BYTE_OF_CHAR.get(char) ?? [...new TextEncoder().encode(char)]));
    const byte = type === 'byte_fallback' ? /^<0x([0-9A-F]{2})>$/.exec(spelled) : null;
    // The mark stands for a space in added tokens too, such as Gemma's runs of spaces.
    return byte ? Uint8Array.of(parseInt(byte[1]!, 16)) : new TextEncoder().encode(spelled.replaceAll('\u2581', ' '));
  }

  /** Spelling of the BOS or EOS token, as tokenizer_config.json (or special_tokens_map.json) names it. */
  special(name: 'bos_token' | 'eos_token'): string | undefined {
    const token = this.config[name];
    const content = isObject(token) ? token['content'] : token;
    return typeof content === 'string' ? content : undefined;
  }
}

/** Reads tokenizer_config.json. Older checkpoints name the BOS and EOS tokens, which chat templates write, in special_tokens_map.json instead. */
async function readConfig(folder: ModelFolder): Promise<TokenizerConfig> {
  const config = await folder.json('tokenizer_config.json', { optional: true });
  if ('bos_token' in config && 'eos_token' in config) return config;
  const { bos_token, eos_token } = await folder.json('special_tokens_map.json', { optional: true });
  return { ...(bos_token !== undefined && { bos_token }), ...(eos_token !== undefined && { eos_token }), ...config };
}

/** Ids of the tokens <0x00> to <0xFF> of a Unigram model with `byte_fallback`; undefined for any other model, and if one of them is missing. */
function byteTokens(tokenizer: HuggingFaceTokenizer, { model }: Json): readonly number[] | undefined {
  const { vocab, byte_fallback: falls } = model as Json;
  if (!Array.isArray(vocab) || falls !== true) return undefined;
  const ids = Array.from({ length: 256 }, (_, byte) => tokenizer.token_to_id(`<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`));
  return ids.every((id) => id !== undefined) ? ids : undefined;
}

/** Reads tokenizer.json and checks the fields that are read here, and bounds what the library would allocate. Throws EngineError('invalid_model'). */
export async function readTokenizerFile(folder: ModelFolder): Promise<Json & { readonly added_tokens: readonly AddedToken[] }> {
  const path = folder.where(FILE);
  const json = await folder.json(FILE);
  const refuse = (why: string): EngineError => new EngineError('invalid_model', `${path}: ${why}`);
  const { model, added_tokens: added = [] } = json;
  if (!isObject(model)) throw refuse(`model is ${describe(model)}, expected an object`);
  const { vocab } = model;
  // Unigram lists (token, score) pairs by id; the others map tokens to ids.
  const isVocabulary = Array.isArray(vocab)
    ? vocab.every((pair) => Array.isArray(pair) && typeof pair[0] === 'string')
    : isObject(vocab) && Object.values(vocab).every(isTokenId);
  if (!isVocabulary) throw refuse(`model.vocab is ${describe(vocab)}, expected tokens with ids below ${MAX_TOKEN_ID}`);
  const characters = Array.isArray(vocab) ? vocab.reduce((sum: number, [piece]: [string]) => sum + piece.length, 0) : 0;
  if (characters > MAX_PIECES) throw refuse(`model.vocab has pieces of ${characters} characters in all; at most ${MAX_PIECES} are read`);
  if (!Array.isArray(added) || !added.every((token) => isObject(token) && isTokenId(token['id']) && typeof token['content'] === 'string')) {
    throw refuse(`added_tokens must be a list of { id, content } with ids below ${MAX_TOKEN_ID}`);
  }
  for (const step of ['normalizer', 'pre_tokenizer', 'decoder'] as const) {
    if (growthOf(json[step]) > MAX_GROWTH) throw refuse(`${step} makes texts more than ${MAX_GROWTH} times as long`);
  }
  return { ...json, added_tokens: added as AddedToken[] };
}

/** Upper bound of the factor by which a normalizer, pre-tokenizer or decoder can lengthen a text, if each of its steps replaces every character. */
function growthOf(step: unknown): number {
  if (!isObject(step)) return 1;
  const steps = [step['normalizers'], step['pretokenizers'], step['decoders']].flatMap((list: unknown) => (Array.isArray(list) ? (list as unknown[]) : [])); // prettier-ignore
  const lengths = [step['content'], step['replacement']].map((text) => (typeof text === 'string' ? text.length : 1));
  return steps.reduce<number>((growth, each) => growth * growthOf(each), Math.max(1, ...lengths));
}

/** Largest id of the model's vocabulary, added tokens excluded. */
function largestId({ model }: Json): number {
  const { vocab } = model as { readonly vocab: readonly unknown[] | Readonly<Record<string, number>> };
  let largest = -1;
  if (Array.isArray(vocab)) largest = vocab.length - 1;
  else for (const id of Object.values(vocab as Readonly<Record<string, number>>)) largest = Math.max(largest, id);
  return largest;
}

/** Bound of token ids, since tables indexed by them are allocated. The largest published vocabularies have 300,000 tokens. */
const MAX_TOKEN_ID = 2 ** 21;

/** Bound of `growthOf`. Published tokenizers replace a space by a mark; a file with forty steps that each double a letter would exhaust any memory. */
const MAX_GROWTH = 256;

/** Bound of the characters of all pieces of a Unigram model: the library allocates about 200 bytes for each. The largest published ones have 2 million. */
const MAX_PIECES = 2 ** 22;

function isTokenId(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) < MAX_TOKEN_ID;
}

/** A tokenizer's tokens, in the terms of the grammar library. */
export interface Vocabulary {
  /** Spelling by id, as in tokenizer.json; '' for an id without a token. */
  readonly tokens: readonly string[];
  /** How tokens spell bytes: by GPT-2's characters, one by one as <0x41>, or not at all. */
  readonly type: 'byte_level' | 'byte_fallback' | 'raw';
  /** Ids of added tokens, which are spelled as plain text. */
  readonly special: ReadonlySet<number>;
}

function readVocabulary(json: Readonly<Record<string, unknown>>): Vocabulary {
  const model = json['model'] as { readonly vocab?: unknown; readonly byte_fallback?: boolean } | undefined;
  const added = (json['added_tokens'] ?? []) as readonly AddedToken[];
  const tokens: string[] = [];
  if (Array.isArray(model?.vocab)) (model.vocab as [string, number][]).forEach(([token], id) => (tokens[id] = token));
  else for (const [token, id] of Object.entries((model?.vocab ?? {}) as Record<string, number>)) tokens[id] = token;
  for (const { id, content } of added) tokens[id] = content;
  const whole = Array.from(tokens, (token) => token ?? '');
  const byteLevel = /"type":"ByteLevel"/.test(JSON.stringify([json['pre_tokenizer'], json['decoder']]));
  const type = byteLevel ? 'byte_level' : model?.byte_fallback ? 'byte_fallback' : 'raw';
  return { tokens: whole, type, special: new Set(added.map(({ id }) => id)) };
}

/** Byte-level BPE's alphabet: printable bytes are the character of the same number, the others follow in order from U+0100. */
const BYTE_OF_CHAR: ReadonlyMap<string, number> = new Map(
  (() => {
    const printable = (byte: number): boolean => (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    let next = 256;
    return Array.from({ length: 256 }, (_, byte) => [String.fromCharCode(printable(byte) ? byte : next++), byte] as const);
  })(),
);
