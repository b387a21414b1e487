/** The bodies of SGLang's routes around chat. */
import { z } from 'zod';
import { messageSchema } from './schema.ts';
import { list } from '../body/bounded.ts';
import { absent, describeBody, given } from '../body/describe.ts';
import type { ModelNames } from '../body/describe.ts';
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
