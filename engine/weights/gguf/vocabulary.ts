/** Reads the vocabulary of a GGUF file: tokens with their types, and those that begin and end sequences. */
import type { Metadata } from './metadata.ts';

/** Token types (llama.cpp's llama_token_type). */
export const KIND = { normal: 1, unknown: 2, control: 3, added: 4, unused: 5, byte: 6 } as const;

export interface GgufVocabulary {
  /** Tokens by id. */
  readonly tokens: readonly string[];
  readonly kinds: readonly number[];
  readonly bos: number | undefined;
  readonly unknown: number | undefined;
  /** All tokens that end generation. */
  readonly ends: readonly number[];
}

/** Reads the vocabulary; throws EngineError('invalid_model') that says what is missing or wrong. */
export function readVocabulary(metadata: Metadata): GgufVocabulary {
  const tokens = metadata.texts('tokenizer.ggml.tokens') ?? metadata.refuse('tokenizer.ggml.tokens is missing: it has no vocabulary');
  const long = tokens.findIndex((token) => token.length > MAX_TOKEN);
  if (long >= 0)
    metadata.refuse(`token ${long} of tokenizer.ggml.tokens has ${tokens[long]!.length} characters; at most ${MAX_TOKEN} are read`);
  const kinds = metadata.numbers('tokenizer.ggml.token_type') ?? tokens.map(() => KIND.normal);
  expectLength(metadata, 'tokenizer.ggml.token_type', kinds.length, tokens.length);
  const id = (key: string): number | undefined => {
    const value = metadata.number(`tokenizer.ggml.${key}`);
    if (value === undefined || (Number.isInteger(value) && value >= 0 && value < tokens.length)) return value;
    return metadata.refuse(`tokenizer.ggml.${key} is ${value}, expected a token below ${tokens.length}`);
  };
  const isControl = (token: string): boolean => kinds[tokens.indexOf(token)] !== KIND.normal && tokens.includes(token);
  // In Harmony (gpt-oss) <|end|> ends a message, which another may follow. This is looked up once, because a file may repeat a token any
  // number of times.
  const isHarmony = isControl('<|return|>') && isControl('<|call|>');
  const isEnd = (token: string): boolean => ENDS.has(token) && !(token === '<|end|>' && isHarmony);
  const named = tokens.flatMap((token, index) => (kinds[index] !== KIND.normal && isEnd(token) ? [index] : []));
  const given = END_KEYS.map(id).filter((end) => end !== undefined);
  return { tokens, kinds, bos: id('bos_token_id'), unknown: id('unknown_token_id'), ends: [...new Set([...given, ...named])] };
}

/** Throws EngineError('invalid_model') for a list that has not one value per token. */
export function expectLength(metadata: Metadata, key: string, length: number, expected: number): void {
  if (length !== expected) metadata.refuse(`${key} has ${length} values, but there are ${expected} tokens`);
}

/**
 * Most characters of a token, since merges are found by cutting every token at every place. The longest published ones are runs of 256
 * spaces.
 */
const MAX_TOKEN = 1024;

/** Keys of end tokens; the first is the one that templates see. */
const END_KEYS = ['eos_token_id', 'eot_token_id', 'eom_token_id'];

/** Control tokens that end generation, whatever a file's keys say: files name one, and models write others (llama.cpp, special_eog_ids). */
const ENDS: ReadonlySet<string> = new Set([
  '<|eot_id|>', '<|im_end|>', '<|end|>', '<|return|>', '<|call|>', '<end_of_turn>', '<|endoftext|>', '</s>', '<|eom_id|>', '<EOT>', '_<EOT>', '[EOT]', '[EOS]',
  '<|end_of_text|>', '<end_of_utterance>', '<eos>', '<turn|>', '<|tool_response>', '<｜end▁of▁sentence｜>',
]); // prettier-ignore
