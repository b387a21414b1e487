/** Validates the body of POST /v1/completions, whose prompts go to the model without a chat template. */
import { z } from 'zod';
import type { ChatRequest } from '../../engine/api.ts';
import type { ChatLimits } from './schema.ts';
import { invalidValue, missingParameter, unsupportedValue } from '../http/errors.ts';
import { DELIVERY_RULE, checkChoices, describeChoices, samplingFields, toDelivery, toGeneration } from './sampling-schema.ts';
import type { Delivery } from './sampling-schema.ts';
import { list } from '../body/bounded.ts';
import { NULL, absent, describeBody, describeModel, given } from '../body/describe.ts';
import type { ModelNames } from '../body/describe.ts';
import { int } from '../body/fields.ts';
import { validate } from '../body/validate.ts';
import type { Json } from '../http/route.ts';

/** The API's default of `max_tokens`. */
const DEFAULT_MAX_TOKENS = 16;

const notEmpty = (all: z.ZodArray<z.ZodUnknown>) => all.min(1, 'must not be empty');
const tokens = list(int(0), notEmpty);

/** The body of POST /completions. */
export const completionSchema = z.object({
  model: z.string().optional(),
  prompt: z.union([z.string(), tokens, list(z.string(), notEmpty), list(tokens, notEmpty)]),
  ...samplingFields,
  /** 0 = only the prompt comes back, which is scored so. */
  max_tokens: int(0).optional(),
  echo: z.boolean().optional(),
  logprobs: int(0, 5).optional(),
  suffix: z.string().optional(),
  // An unsupported field: its type is checked here, and a value that would change the answer is refused below.
  best_of: int(1).optional(),
});

const STRING: Json = { type: 'string' };
/** Bodies that ask for log-probabilities of their prompt. */
const SCORED: Json = { allOf: [given('echo', { const: true }), given('logprobs')] };

type Prompt = string | readonly number[];

/** A validated completion request: the engine's request for each prompt, and how to send the answer. */
export interface CompletionCall extends Delivery {
  readonly model: string | undefined;
  readonly prompts: readonly Prompt[];
  readonly requests: readonly ChatRequest[];
  /** Choices per prompt. */
  readonly n: number;
  readonly echo: boolean;
}

/** The body of POST /completions as JSON Schema. */
export function describeCompletionBody({ maxRunningRequests, ...names }: ChatLimits & ModelNames): Json {
  const { required, properties, example } = describeModel(names);
  return describeBody(completionSchema, {
    required,
    example: { ...example, prompt: 'Once upon a time' },
    properties: { ...properties, n: describeChoices(maxRunningRequests) },
    rules: [
      DELIVERY_RULE,
      { if: absent('n'), then: { properties: { best_of: { enum: [1, null] } } } },
      {
        if: given('suffix', { type: 'string', minLength: 1 }),
        then: { properties: { prompt: { anyOf: [STRING, { type: 'array', items: STRING }] } }, not: SCORED },
      },
      { if: given('max_tokens', { const: 0 }), then: given('echo', { const: true }) },
      { if: absent('max_tokens'), then: { properties: { min_tokens: { anyOf: [{ maximum: DEFAULT_MAX_TOKENS }, NULL] } } } },
    ],
  });
}

/** Validates a body of POST /v1/completions; throws HttpError 400 that names the field. */
export function parseCompletionBody(body: Readonly<Record<string, unknown>>, limits: ChatLimits): CompletionCall {
  const fields = validate(completionSchema, body);
  if (fields.model === undefined && !limits.modelOptional) throw missingParameter('model');
  const { n = 1, logprobs, echo = false, suffix = '' } = fields;
  if (fields.max_tokens === 0 && !echo) throw invalidValue('max_tokens', "'max_tokens' must be at least 1; it may be 0 with 'echo'");
  if (fields.best_of !== undefined && fields.best_of !== n) throw unsupportedValue('best_of', "'best_of' can only be 'n'");
  const prompts = toPrompts(fields.prompt);
  if (suffix !== '' && typeof prompts[0] === 'object') throw invalidValue('suffix', "'suffix' goes with a prompt that is a text");
  // What would be scored is a prompt without it.
  if (suffix !== '' && echo && logprobs !== undefined) throw unsupportedValue('echo', "'echo' with 'logprobs' does not go with 'suffix'");
  checkChoices(n, limits.maxRunningRequests);
  checkChoices(n * prompts.length, limits.maxRunningRequests, 'prompt');
  const shared = {
    messages: [],
    ...toGeneration(fields, fields.max_tokens ?? DEFAULT_MAX_TOKENS),
    ...(logprobs !== undefined && { logprobs }),
    ...(suffix !== '' && { suffix }),
  };
  const requests = prompts.map((prompt) => ({ ...shared, prompt }));
  return { model: fields.model, prompts, requests, n, echo, ...toDelivery(fields) };
}

function toPrompts(prompt: z.output<typeof completionSchema>['prompt']): readonly Prompt[] {
  if (typeof prompt === 'string') return [prompt];
  return typeof prompt[0] === 'number' ? [prompt as number[]] : (prompt as Prompt[]);
}
