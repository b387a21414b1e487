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

  private constructor(tokenizer: HuggingFaceTokenizer, config: TokenizerConfig) {
    this.#tokenizer = tokenizer;
    this.config = config;
  }

  /** Reads tokenizer.json and, if there, tokenizer_config.json of a folder; throws EngineError('invalid_model'). */
  static async load(platform: Platform, folder: string): Promise<Tokenizer> {
    const path = platform.join(folder, 'tokenizer.json');
    const configPath = platform.join(folder, 'tokenizer_config.json');
    const json = parseJson(path, await platform.readText(path));
    const config = (await platform.exists(configPath)) ? parseJson(configPath, await platform.readText(configPath)) : {};
    try {
      return new Tokenizer(new HuggingFaceTokenizer(json, config), config);
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
