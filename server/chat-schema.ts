/** The chat request: every field the API knows is checked; what the engine cannot do is refused by name, never ignored. */
import { z } from 'zod';
import type { ChatMessage, ChatRequest } from '../engine/api.ts';
import { responseFormatSchema, toResponseFormat, toTools, toolFields } from './chat-tools.ts';
import { invalidValue, missingParameter, unsupportedParameter, unsupportedValue } from './http-error.ts';
import { defined, validate } from './validate.ts';

const ROLES = ['system', 'developer', 'user', 'assistant', 'tool', 'function'] as const;
const MAX_CHOICES = 128;
const MAX_STOPS = 16;
const MAX_BIASES = 1024;

const int = (min: number, max = Number.MAX_SAFE_INTEGER) => z.number().refine(Number.isInteger, 'must be an integer').min(min).max(max);
/** int64 in the API; JSON numbers beyond 2^53 arrive rounded, which is still deterministic. */
const seed = z.number().refine(Number.isInteger, 'must be an integer');
const bool = z.boolean();

/** Folds any integer that JSON can carry into the safe integers the engine takes. */
export const toSafeInteger = (value: number): number => (Number.isSafeInteger(value) ? value : value % Number.MAX_SAFE_INTEGER);
export { seed as seedSchema };

const textPart = z
  .object({ type: z.string(), text: z.string().optional() })
  .superRefine((part, context) => {
    if (part.type !== 'text') {
      context.addIssue({
        code: 'custom',
        path: ['type'],
        message: `only 'text' parts are served, got '${part.type.slice(0, 40)}'`,
        params: { code: 'unsupported_value' },
      });
    } else if (part.text === undefined) {
      context.addIssue({
        code: 'custom',
        path: ['text'],
        message: "a text part needs 'text'",
        params: { code: 'missing_required_parameter' },
      });
    }
  })
  .transform((part) => ({ type: 'text' as const, text: part.text ?? '' }));

const toolCall = z.object({
  id: z.string(),
  type: z.literal('function').optional(),
  function: z.object({ name: z.string(), arguments: z.union([z.string(), z.record(z.string(), z.unknown())]) }),
});

const message = z
  .object({
    role: z.enum(ROLES, { error: () => `must be one of ${ROLES.slice(0, 5).join(', ')}` }),
    content: z.union([z.string(), z.array(textPart).min(1, 'must have at least one part')]).nullish(),
    name: z.string().nullish(),
    tool_call_id: z.string().nullish(),
    tool_calls: z.array(toolCall).nullish(),
    reasoning_content: z.string().nullish(),
    reasoning: z.string().nullish(),
  })
  .superRefine((value, context) => {
    const missing = (key: string, why: string): void =>
      context.addIssue({ code: 'custom', path: [key], message: why, params: { code: 'missing_required_parameter' } });
    const mayBeEmpty = value.role === 'assistant' && (value.tool_calls ?? []).length > 0;
    if (value.content == null && !mayBeEmpty) missing('content', 'is required for this role');
    if (value.role === 'tool' && value.tool_call_id == null) missing('tool_call_id', "is required with role 'tool'");
  });

const penalty = z.number().min(-2).max(2);
const text = z.string();

const schema = z.object({
  model: text.optional(),
  messages: z.array(message).min(1, 'must have at least one message'),
  max_completion_tokens: int(1).optional(),
  max_tokens: int(1).optional(),
  temperature: z.number().min(0).max(2).optional(),
  top_p: z.number().min(0).max(1).optional(),
  top_k: int(-1).optional(),
  min_p: z.number().min(0).max(1).optional(),
  seed: seed.optional(),
  stop: z
    .union([text.min(1, 'must not be empty'), z.array(text.min(1, 'must not be empty')).max(MAX_STOPS, `has at most ${MAX_STOPS} strings`)])
    .optional(),
  stop_token_ids: z.array(int(0)).max(1024).optional(),
  ignore_eos: bool.optional(),
  n: int(1, MAX_CHOICES).optional(),
  stream: bool.optional(),
  stream_options: z
    .object({ include_usage: bool.nullish(), include_obfuscation: bool.nullish(), continuous_usage_stats: bool.nullish() })
    .optional(),
  reasoning_effort: z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']).optional(),
  chat_template_kwargs: z.record(z.string(), z.unknown()).optional(),
  priority: int(Number.MIN_SAFE_INTEGER).optional(),
  user: text.optional(),
  repetition_penalty: z.number().gt(0).max(2).optional(),
  presence_penalty: penalty.optional(),
  frequency_penalty: penalty.optional(),
  logit_bias: z
    .record(z.string().regex(/^\d+$/, 'keys are token ids'), z.number().min(-100).max(100))
    .refine((bias) => Object.keys(bias).length <= MAX_BIASES, `has at most ${MAX_BIASES} entries`)
    .optional(),
  logprobs: bool.optional(),
  top_logprobs: int(0, 20).optional(),
  response_format: responseFormatSchema.optional(),
  ...toolFields,
  continue_final_message: bool.optional(),
  separate_reasoning: bool.optional(),
  cache_salt: text.min(1, 'must not be empty').max(256).optional(),
  // Checked for their type here and refused below unless they ask for what happens anyway.
  min_tokens: int(0).optional(),
  skip_special_tokens: bool.optional(),
  modalities: z.array(text).optional(),
  audio: z.unknown().optional(),
  web_search_options: z.unknown().optional(),
  moderation: z.unknown().optional(),
});

type Fields = z.output<typeof schema>;

/** A checked chat body: what the engine is asked, and how the answer is sent. */
export interface ChatCall {
  readonly model: string | undefined;
  readonly request: ChatRequest;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly continuousUsage: boolean;
}

export interface ChatLimits {
  readonly modelOptional: boolean;
  /** Choices may not exceed what can run at once. */
  readonly maxRunningRequests: number;
}

/** Checks a body of POST /chat/completions; throws HttpError 400 that names the field. */
export function parseChatBody(body: Readonly<Record<string, unknown>>, limits: ChatLimits): ChatCall {
  const fields = validate(schema, body);
  if (fields.model === undefined && !limits.modelOptional) throw missingParameter('model');
  refuseUnsupported(fields);
  if ((fields.top_logprobs ?? 0) > 0 && fields.logprobs !== true)
    throw invalidValue('top_logprobs', "'top_logprobs' needs 'logprobs': true");
  if (fields.continue_final_message === true && fields.messages.at(-1)?.role !== 'assistant') {
    throw invalidValue('continue_final_message', "'continue_final_message' needs a last message of role 'assistant'");
  }
  const n = fields.n ?? 1;
  if (n > limits.maxRunningRequests) throw invalidValue('n', `'n' is ${n}; at most ${limits.maxRunningRequests} requests run at once`);
  const stream = fields.stream ?? false;
  if (fields.stream_options && !stream) throw invalidValue('stream_options', "'stream_options' needs 'stream': true");
  return {
    model: fields.model,
    request: toRequest(fields),
    stream,
    includeUsage: fields.stream_options?.include_usage === true,
    continuousUsage: fields.stream_options?.continuous_usage_stats === true,
  };
}

/** Fields whose meaning would be lost if they were ignored, and the values that change nothing. */
function refuseUnsupported(fields: Fields): void {
  const refuse = (name: keyof Fields, harmless: boolean): void => {
    if (fields[name] !== undefined && !harmless) throw unsupportedParameter(name);
  };
  refuse('min_tokens', fields.min_tokens === 0);
  refuse('skip_special_tokens', fields.skip_special_tokens === true);
  refuse('audio', false);
  refuse('web_search_options', false);
  refuse('moderation', false);
  if (fields.modalities?.some((kind) => kind !== 'text')) throw unsupportedValue('modalities', "only ['text'] is served");
}

function toRequest(fields: Fields): ChatRequest {
  const stop = typeof fields.stop === 'string' ? [fields.stop] : fields.stop;
  const seedValue = fields.seed === undefined || fields.seed === -1 ? undefined : toSafeInteger(fields.seed);
  return defined({
    messages: fields.messages.map(toMessage),
    sampling: defined({
      temperature: fields.temperature,
      topP: fields.top_p,
      topK: fields.top_k,
      minP: fields.min_p,
      seed: seedValue,
      repetitionPenalty: fields.repetition_penalty,
      presencePenalty: fields.presence_penalty,
      frequencyPenalty: fields.frequency_penalty,
      logitBias: fields.logit_bias,
    }),
    maxTokens: fields.max_completion_tokens ?? fields.max_tokens,
    stop,
    stopTokenIds: fields.stop_token_ids,
    ignoreEos: fields.ignore_eos,
    n: fields.n,
    templateKwargs: templateKwargs(fields),
    logprobs: fields.logprobs === true ? (fields.top_logprobs ?? 0) : undefined,
    responseFormat: toResponseFormat(fields.response_format),
    ...toTools(fields),
    parallelToolCalls: fields.parallel_tool_calls,
    cacheSalt: fields.cache_salt,
    continueFinalMessage: fields.continue_final_message,
    separateReasoning: fields.separate_reasoning,
  }) as ChatRequest;
}

/** `reasoning_effort` as template variables: 'none' switches thinking off, other levels are handed on. */
function templateKwargs({ reasoning_effort: effort, chat_template_kwargs: kwargs }: Fields): Record<string, unknown> | undefined {
  if (effort === undefined) return kwargs;
  const thinking = effort === 'none' ? { enable_thinking: false, thinking: false } : { reasoning_effort: effort };
  return { ...thinking, ...kwargs };
}

function toMessage(fields: z.output<typeof message>): ChatMessage {
  const legacy = fields.role === 'function';
  return defined({
    role: fields.role === 'function' ? ('tool' as const) : fields.role,
    content: fields.content ?? null,
    name: fields.name ?? undefined,
    tool_call_id: fields.tool_call_id ?? (legacy ? (fields.name ?? undefined) : undefined),
    tool_calls: fields.tool_calls ?? undefined,
    reasoning_content: fields.reasoning_content ?? fields.reasoning ?? undefined,
  }) as ChatMessage;
}
