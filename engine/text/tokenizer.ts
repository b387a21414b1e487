import { Tokenizer as HuggingFaceTokenizer } from '@huggingface/tokenizers';
import { EngineError } from '../errors.ts';
import type { Platform } from '../platform/platform.ts';

/** tokenizer_config.json, as far as we read it; the rest is the tokenizer library's. */
export interface TokenizerConfig {
  readonly chat_template?: string | readonly { readonly name: string; readonly template: string }[];
  readonly bos_token?: SpecialToken | null;
  readonly eos_token?: SpecialToken | null;
  readonly [key: string]: unknown;
}

type SpecialToken = string | { readonly content: string };

/** Text <-> token ids by a checkpoint's tokenizer.json. */
export class Tokenizer {
  readonly config: TokenizerConfig;
  readonly #tokenizer: HuggingFaceTokenizer;
  readonly #json: Readonly<Record<string, unknown>>;
  #vocabulary: Vocabulary | undefined;

  private constructor(tokenizer: HuggingFaceTokenizer, json: Readonly<Record<string, unknown>>, config: TokenizerConfig) {
    this.#tokenizer = tokenizer;
    this.#json = json;
    this.config = config;
  }

  /** Reads tokenizer.json and, if there, tokenizer_config.json of a folder; throws EngineError('invalid_model'). */
  static async load(platform: Platform, folder: string): Promise<Tokenizer> {
    const path = platform.join(folder, 'tokenizer.json');
    const configPath = platform.join(folder, 'tokenizer_config.json');
    const json = parseJson(path, await platform.readText(path));
    const config = (await platform.exists(configPath)) ? parseJson(configPath, await platform.readText(configPath)) : {};
    try {
      return new Tokenizer(new HuggingFaceTokenizer(json, config), json, config);
    } catch (error) {
      throw new EngineError('invalid_model', `${path} cannot be used: ${String(error)}`, { cause: error });
    }
  }

  /** Token ids of a text. Chat prompts bring their special tokens in the text, so nothing is added by default. */
  encode(text: string, { addSpecialTokens = false }: { addSpecialTokens?: boolean } = {}): number[] {
    return this.#tokenizer.encode(text, { add_special_tokens: addSpecialTokens }).ids;
  }

  /** Text of token ids; bytes that are not UTF-8 become U+FFFD. */
  decode(ids: readonly number[], { skipSpecialTokens = true }: { skipSpecialTokens?: boolean } = {}): string {
    if (ids.length === 0) return '';
    return this.#tokenizer.decode([...ids], { skip_special_tokens: skipSpecialTokens, clean_up_tokenization_spaces: false });
  }

  /** Id of a token as spelled in the vocabulary. */
  tokenId(token: string): number | undefined {
    return this.#tokenizer.token_to_id(token);
  }

  /** Every token as tokenizer.json spells it, by id, and how it spells bytes. */
  get vocabulary(): Vocabulary {
    return (this.#vocabulary ??= readVocabulary(this.#json));
  }

  /** The UTF-8 bytes a token stands for: several tokens may make one character. */
  bytes(id: number): Uint8Array {
    const { tokens, type, special } = this.vocabulary;
    const spelled = tokens[id] ?? '';
    if (special.has(id)) return new TextEncoder().encode(spelled);
    if (type === 'byte_level')
      return Uint8Array.from([...spelled].flatMap((char) => BYTE_OF_CHAR.get(char) ?? [...new TextEncoder().encode(char)]));
    const byte = type === 'byte_fallback' ? /^<0x([0-9A-F]{2})>$/.exec(spelled) : null;
    return byte ? Uint8Array.of(parseInt(byte[1]!, 16)) : new TextEncoder().encode(spelled.replaceAll('\u2581', ' '));
  }

  /** Spelling of bos_token or eos_token. */
  special(name: 'bos_token' | 'eos_token'): string | undefined {
    const token = this.config[name];
    return typeof token === 'object' && token !== null ? token.content : (token ?? undefined);
  }
}

function parseJson(path: string, text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch (error) {
    throw new EngineError('invalid_model', `${path} is not JSON: ${String(error)}`, { cause: error });
  }
}

export interface Vocabulary {
  readonly tokens: readonly string[];
  readonly type: 'byte_level' | 'byte_fallback' | 'raw';
  /** Ids of added tokens, which stand for themselves. */
  readonly special: ReadonlySet<number>;
}

function readVocabulary(json: Readonly<Record<string, unknown>>): Vocabulary {
  const model = json['model'] as { readonly vocab?: unknown; readonly byte_fallback?: boolean } | undefined;
  const added = (json['added_tokens'] ?? []) as readonly { readonly id: number; readonly content: string }[];
  const tokens: string[] = [];
  // Unigram lists (token, score) pairs by id; the others map tokens to ids.
  if (Array.isArray(model?.vocab)) (model.vocab as [string, number][]).forEach(([token], id) => (tokens[id] = token));
  else for (const [token, id] of Object.entries((model?.vocab ?? {}) as Record<string, number>)) tokens[id] = token;
  for (const { id, content } of added) tokens[id] = content;
  const whole = Array.from(tokens, (token) => token ?? '');
  const byteLevel = /"type":"ByteLevel"/.test(JSON.stringify([json['pre_tokenizer'], json['decoder']]));
  const type = byteLevel ? 'byte_level' : model?.byte_fallback ? 'byte_fallback' : 'raw';
  return { tokens: whole, type, special: new Set(added.map(({ id }) => id)) };
}

/** GPT-2's printable stand-ins: bytes that print stand for themselves, the others follow from U+0100 on, in order. */
const BYTE_OF_CHAR: ReadonlyMap<string, number> = new Map(
  (() => {
    const printable = (byte: number): boolean => (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    let next = 256;
    return Array.from({ length: 256 }, (_, byte) => [String.fromCharCode(printable(byte) ? byte : next++), byte] as const);
  })(),
);
