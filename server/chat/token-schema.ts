/** The bodies of SGLang's routes around chat. */
import { z } from 'zod';
import { messageSchema } from './schema.ts';
import { list } from '../body/bounded.ts';
import { absent, describeBody, given } from '../body/describe.ts';
import type { ModelNames } from '../body/describe.ts';
import { count, integer, named } from '../http/answers.ts';
import type { Sent } from '../http/answers.ts';
import { int } from '../body/fields.ts';
import type { Json } from '../http/route.ts';

const MAX_PROMPTS = 1024;

const several = <T extends z.ZodType>(one: T) => z.union([one, z.array(one).min(1, 'must not be empty').max(MAX_PROMPTS)]);

/** The body of POST /tokenize: one prompt or several, or a conversation as the chat template renders it. */
export const tokenizeSchema = z.object({
  model: z.string().optional(),
  prompt: several(z.string()).optional(),
  messages: list(messageSchema, (all) => all.min(1, 'must have at least one message')).optional(),
  add_special_tokens: z.boolean().optional(),
});

/** The body of POST /detokenize. */
export const detokenizeSchema = z.object({ model: z.string().optional(), tokens: z.union([list(int(0)), list(list(int(0)))]) });

/** The body of POST /abort_request. */
export const abortSchema = z.object({ rid: z.string().min(1, 'must not be empty').optional(), abort_all: z.boolean().optional() });

/** The body of POST /tokenize as JSON Schema. */
export function describeTokenizeBody({ models }: ModelNames): Json {
  const one = [{ allOf: [given('prompt'), absent('messages')] }, { allOf: [given('messages'), absent('prompt')] }];
  return describeBody(tokenizeSchema, {
    example: { prompt: 'Hello' },
    properties: { model: { enum: models } },
    rules: [{ oneOf: one }],
  });
}

/** The body of POST /detokenize as JSON Schema. */
export function describeDetokenizeBody({ models }: ModelNames): Json {
  return describeBody(detokenizeSchema, { example: { tokens: [72, 105] }, properties: { model: { enum: models } } });
}

/** The body of POST /abort_request as JSON Schema. */
export const ABORT_BODY: Json = describeBody(abortSchema, {
  example: { rid: 'my-request' },
  rules: [{ anyOf: [given('rid'), given('abort_all', { const: true })] }],
});

/** What POST /tokenize answers. */
export const tokensSchema = named('Tokens', 'Tokens of a prompt; where the request gave a list of prompts, a list of each', {
  tokens: z.union([z.array(integer), z.array(z.array(integer))]),
  count: z.union([count, z.array(count)]),
  max_model_len: count.nullable().describe('Context of the model in tokens; null until it is loaded'),
});
export type TokensAnswer = Sent<typeof tokensSchema>;

const texts = z.union([z.string(), z.array(z.string())]);

/** What POST /detokenize answers. */
export const textSchema = named('Detokenized', 'Text of tokens, under two names; where the request gave lists of tokens, a list', {
  prompt: texts,
  text: texts,
});
export type TextAnswer = Sent<typeof textSchema>;

/** What GET /tokenizer_info answers: names of tokenizer_config.json, as vLLM has them. */
export const tokenizerInfoSchema = named('TokenizerInfo', 'Special tokens and chat template; null where the model has none', {
  bos_token: z.string().nullable(),
  eos_token: z.string().nullable(),
  chat_template: z.string().nullable().describe('In Jinja'),
});
export type TokenizerInfoAnswer = Sent<typeof tokenizerInfoSchema>;

/** What POST /abort_request answers. */
export const abortedSchema = named('Aborted', 'How many requests were ended', { aborted: count });
export type AbortedAnswer = Sent<typeof abortedSchema>;
