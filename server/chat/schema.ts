/** Validates the body of POST /v1/chat/completions. Every field of the API is checked; what is not supported is refused by name, never ignored. */
import { z } from 'zod';
import type { ChatMessage, ChatRequest } from '../../engine/api.ts';
import { hasFunctions, responseFormatSchema, toResponseFormat, toTools, toolFields, toolPaths } from './tools.ts';
import { invalidValue, missingParameter, unsupportedParameter } from '../http/errors.ts';
import { DELIVERY_RULE, checkChoices, describeChoices, samplingFields, toDelivery, toGeneration } from './sampling-schema.ts';
import type { Delivery } from './sampling-schema.ts';
import { entries, list } from '../body/bounded.ts';
import { NULL, absent, describeBody, describeModel, given } from '../body/describe.ts';
import type { ModelNames } from '../body/describe.ts';
import { int } from '../body/fields.ts';
import { defined, validate } from '../body/validate.ts';
import type { Json } from '../http/route.ts';

const ROLES = ['system', 'developer', 'user', 'assistant', 'tool', 'function'] as const;
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
  .meta({ allOf: [{ required: ['text'], properties: { type: { const: 'text' } } }] })
  .transform((part) => ({ type: 'text' as const, text: part.text ?? '' }));

/**
 * Arguments of an earlier call: JSON text, as in OpenAI's API, or an object, as other clients send them. Text that is not JSON is accepted, since models write it
 * and clients send it back; the engine shows it to the model as well as it can. So are null and absent arguments, as in vLLM and SGLang.
 */
const said = z
  .union([z.string(), z.record(z.string(), z.unknown())])
  .nullish()
  .transform((args) => args ?? '');
const called = z.object({ name: z.string(), arguments: said });
const toolCall = z.object({ id: z.string(), type: z.literal('function').optional(), function: called });

const messageFields = z
  .object({
    role: z.enum(ROLES, { error: () => `must be one of ${ROLES.slice(0, 5).join(', ')}` }),
    content: z.union([z.string(), list(textPart, (parts) => parts.min(1, 'must have at least one part'))]).nullish(),
    name: z.string().nullish(),
    tool_call_id: z.string().nullish(),
    tool_calls: list(toolCall).nullish(),
    /** The older form of a call, which a message of role `function` answers. */
    function_call: called.nullish(),
    reasoning_content: z.string().nullish(),
    reasoning: z.string().nullish(),
    /** Mistral's and DeepSeek's name for a last message that the answer continues. */
    prefix: z.boolean().nullish(),
  })
  .superRefine((value, context) => {
    const missing = (key: string, why: string): void =>
      context.addIssue({ code: 'custom', path: [key], message: why, params: { code: 'missing_required_parameter' } });
    const mayBeEmpty = value.role === 'assistant' && ((value.tool_calls ?? []).length > 0 || value.function_call != null);
    if (value.content == null && !mayBeEmpty) missing('content', 'is required for this role');
    if (value.role === 'tool' && value.tool_call_id == null) missing('tool_call_id', "is required with role 'tool'");
    if (value.role === 'function' && value.name == null) missing('name', "is required with role 'function'");
  })
  .meta({
    allOf: [
      {
        anyOf: [
          { required: ['content'], properties: { content: { not: { type: 'null' } } } },
          { required: ['tool_calls'], properties: { role: { const: 'assistant' }, tool_calls: { type: 'array', minItems: 1 } } },
          { required: ['function_call'], properties: { role: { const: 'assistant' }, function_call: { type: 'object' } } },
        ],
      },
      {
        if: { properties: { role: { const: 'tool' } } },
        then: { required: ['tool_call_id'], properties: { tool_call_id: { type: 'string' } } },
      },
      {
        if: { properties: { role: { const: 'function' } } },
        then: { required: ['name'], properties: { name: { type: 'string' } } },
      },
    ],
  });

/** Schema of one message; its output is the engine's form. */
export const messageSchema = messageFields.transform(toMessage);

/** Most values within `chat_template_kwargs`: each is copied for the template, which takes 5 s for 190,000. */
const MAX_VARIABLES = 10_000;
const valuesIn = (value: unknown): number =>
  typeof value === 'object' && value !== null ? Object.values(value).reduce((sum: number, one) => sum + valuesIn(one), 1) : 1;

/** The body of POST /chat/completions. */
export const chatSchema = z.object({
  model: z.string().optional(),
  messages: list(messageFields, (all) => all.min(1, 'must have at least one message')),
  max_completion_tokens: int(1).optional(),
  ...samplingFields,
  reasoning_effort: z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']).optional(),
  chat_template_kwargs: entries(
    z.record(z.string(), z.unknown()),
    (kwargs) => valuesIn(kwargs) <= MAX_VARIABLES,
    `must have at most ${MAX_VARIABLES} values in all`,
  ).optional(),
  logprobs: z.boolean().optional(),
  top_logprobs: int(0, 20).optional(),
  response_format: responseFormatSchema.optional(),
  ...toolFields,
  continue_final_message: z.boolean().optional(),
  separate_reasoning: z.boolean().optional(),
  // Unsupported fields: their type is checked here, and refuseUnsupported accepts only values that change nothing.
  modalities: list(z.string()).optional(),
  audio: z.unknown().optional(),
  web_search_options: z.unknown().optional(),
  moderation: z.unknown().optional(),
});

type Fields = z.output<typeof chatSchema>;

/** A validated chat request: the engine's request, and how to send the answer. */
export interface ChatCall extends Delivery {
  readonly model: string | undefined;
  readonly request: ChatRequest;
  /** Whether request and answer have the older `functions` and `function_call`. */
  readonly hasFunctions: boolean;
  /** Path in the body of each tool of `request`. */
  readonly toolPaths: readonly string[];
}

export interface ChatLimits {
  readonly modelOptional: boolean;
  /** Most choices of a request: all of them run at once. */
  readonly maxRunningRequests: number;
}

/** The body of POST /chat/completions as JSON Schema. */
export function describeChatBody({ maxRunningRequests, ...names }: ChatLimits & ModelNames): Json {
  const { required, properties, example } = describeModel(names);
  const choice = { not: { enum: ['none', null] } };
  return describeBody(chatSchema, {
    required,
    example: { ...example, messages: [{ role: 'user', content: 'What is 2+2?' }] },
    properties: {
      ...properties,
      n: describeChoices(maxRunningRequests),
      modalities: { type: 'array', items: { const: 'text' } },
      audio: NULL,
      web_search_options: NULL,
      moderation: NULL,
    },
    rules: [
      DELIVERY_RULE,
      { if: given('top_logprobs', { type: 'integer', minimum: 1 }), then: given('logprobs', { const: true }) },
      { if: given('tool_choice', choice), then: SOME_TOOLS },
      { if: { allOf: [given('function_call', choice), absent('tool_choice')] }, then: SOME_TOOLS },
    ],
  });
}

/** JSON Schema rule: every `tool_choice` but 'none' needs tools. */
const SOME_TOOLS: Json = {
  anyOf: [given('tools', { type: 'array', minItems: 1 }), { allOf: [absent('tools'), given('functions', { type: 'array', minItems: 1 })] }],
};

/** Validates a body of POST /v1/chat/completions; throws HttpError 400 that names the field. */
export function parseChatBody(body: Readonly<Record<string, unknown>>, limits: ChatLimits): ChatCall {
  const fields = validate(chatSchema, body);
  if (fields.model === undefined && !limits.modelOptional) throw missingParameter('model');
  refuseUnsupported(fields);
  if ((fields.top_logprobs ?? 0) > 0 && fields.logprobs !== true)
    throw invalidValue('top_logprobs', "'top_logprobs' needs 'logprobs': true");
  if (fields.continue_final_message === true && fields.messages.at(-1)?.role !== 'assistant') {
    throw invalidValue('continue_final_message', "'continue_final_message' needs a last message of role 'assistant'");
  }
  checkChoices(fields.n ?? 1, limits.maxRunningRequests);
  const request = toRequest(fields);
  const form = { hasFunctions: hasFunctions(fields), toolPaths: toolPaths(fields, request.tools ?? []) };
  return { model: fields.model, request, ...form, ...toDelivery(fields) };
}

/** Refuses unsupported fields that would change the answer, unless their value asks for what happens anyway. */
function refuseUnsupported(fields: Fields): void {
  const refuse = (name: keyof Fields, harmless: boolean): void => {
    if (fields[name] !== undefined && !harmless) throw unsupportedParameter(name);
  };
  refuse('audio', false);
  refuse('web_search_options', false);
  refuse('moderation', false);
  const other = fields.modalities?.find((kind) => kind !== 'text');
  if (other !== undefined) throw unsupportedParameter('modalities', `only ['text'] is, got '${other.slice(0, 50)}'`);
}

function toRequest(fields: Fields): ChatRequest {
  return defined({
    messages: fields.messages.map(toMessage),
    ...toGeneration(fields, fields.max_completion_tokens ?? fields.max_tokens),
    templateKwargs: templateKwargs(fields),
    logprobs: fields.logprobs === true ? (fields.top_logprobs ?? 0) : undefined,
    responseFormat: toResponseFormat(fields.response_format),
    ...toTools(fields),
    parallelToolCalls: hasFunctions(fields) ? false : fields.parallel_tool_calls,
    continueFinalMessage: continuesLast(fields),
    separateReasoning: fields.separate_reasoning,
  });
}

/** Whether the answer continues the last message. One that an earlier request continued may still be marked so. */
function continuesLast({ continue_final_message: asked, messages }: Fields): boolean | undefined {
  const last = messages.at(-1)!;
  return asked ?? (last.role === 'assistant' && last.prefix === true ? true : undefined);
}

/** Merges `reasoning_effort` into the template's variables: 'none' switches reasoning off, other levels are passed on. */
function templateKwargs({ reasoning_effort: effort, chat_template_kwargs: kwargs }: Fields): Record<string, unknown> | undefined {
  if (effort === undefined) return kwargs;
  const thinking = effort === 'none' ? { enable_thinking: false, thinking: false } : { reasoning_effort: effort };
  return { ...thinking, ...kwargs };
}

/** Converts a validated message to the engine's form. The older `function_call` and its result get the function's name as their id. */
function toMessage({ function_call: call, ...fields }: z.output<typeof messageFields>): ChatMessage {
  const isResult = fields.role === 'function';
  return defined({
    role: fields.role === 'function' ? ('tool' as const) : fields.role,
    content: fields.content ?? null,
    name: fields.name ?? undefined,
    tool_call_id: fields.tool_call_id ?? (isResult ? (fields.name ?? undefined) : undefined),
    tool_calls: fields.tool_calls ?? (call ? [{ id: call.name, type: 'function', function: call }] : undefined),
    reasoning_content: fields.reasoning_content ?? fields.reasoning ?? undefined,
  });
}
