/** POST /v1/fim/completions: what stands between two texts, asked for as of Mistral's API, which editors know, and answered as a conversation is. */
import type { Response } from 'express';
import { z } from 'zod';
import type { ChatRequest } from '../../engine/api.ts';
import type { ListenerContext } from '../listener/context.ts';
import { missingParameter } from '../http/errors.ts';
import { EVENT_TYPE, JSON_TYPE } from '../http/route.ts';
import type { Json, Route } from '../http/route.ts';
import { describeBody, describeModel, jsonBody } from '../body/describe.ts';
import type { ModelNames } from '../body/describe.ts';
import { int, seedSchema } from '../body/fields.ts';
import { defined, validate } from '../body/validate.ts';
import { chatChunkSchema, chatCompletionSchema } from './answer-schema.ts';
import type { ChatCompletion } from './answer-schema.ts';
import { ChatChoice, chatBodies } from './choice.ts';
import { DELIVERY_RULE, checkChoices, describeChoices, samplingFields, toDelivery, toGeneration } from './sampling-schema.ts';
import type { Delivery } from './sampling-schema.ts';
import type { ChatLimits } from './schema.ts';
import { countEvents, sendAnswer, startAnswer } from './send.ts';

const middleSchema = z.object({
  model: z.string().optional(),
  prompt: z.string(),
  suffix: z.string().optional(),
  ...samplingFields,
  max_completion_tokens: int(1).optional(),
  /** Mistral's name of `seed`. */
  random_seed: seedSchema.optional(),
});

/** A validated request for what stands between two texts. */
export interface MiddleCall extends Delivery {
  readonly model: string | undefined;
  readonly request: ChatRequest;
}

/** The route of fill in the middle. */
export function middleRoute(context: ListenerContext, limits: ChatLimits): Route {
  return {
    method: 'post',
    path: '/v1/fim/completions',
    summary: 'Fills in what stands between two texts',
    tags: ['chat'],
    body: () => jsonBody(describeMiddleBody({ ...context.names, ...limits })),
    answers: { [JSON_TYPE]: chatCompletionSchema, [EVENT_TYPE]: chatChunkSchema },
    generates: { operation: 'text_completion', output: 'text' },
    handler: context.job(async (request, response: Response<ChatCompletion>, job) => {
      const call = parseMiddleBody(await context.readJson(request, job.signal), limits);
      if (call.model !== undefined) context.checkModel(call.model);
      job.note({ stream: call.stream });
      const sources = countEvents(context, job, [context.engine.chat({ ...call.request, ...context.loraOf(call.model) }, job.signal)]);
      const form = { reasoningField: 'reasoning_content', logprobs: false, hasFunctions: false, alwaysContent: true } as const;
      const choices = Array.from({ length: call.request.n ?? 1 }, (_, i) => new ChatChoice(i, form));
      const bodies = chatBodies(startAnswer(context, 'fim', call.model));
      await sendAnswer(response, sources, { delivery: call, bodies, choices }, job);
    }),
  };
}

/** The body of POST /fim/completions as JSON Schema. */
function describeMiddleBody({ maxRunningRequests, ...names }: ChatLimits & ModelNames): Json {
  const { required, properties, example } = describeModel(names);
  return describeBody(middleSchema, {
    required,
    example: { ...example, prompt: 'def add(a, b):\n    ', suffix: '\n\nprint(add(1, 2))\n' },
    properties: { ...properties, n: describeChoices(maxRunningRequests) },
    rules: [DELIVERY_RULE],
  });
}

/** Validates a body of POST /v1/fim/completions; throws HttpError 400 that names the field. */
export function parseMiddleBody(body: Readonly<Record<string, unknown>>, limits: ChatLimits): MiddleCall {
  const fields = validate(middleSchema, body);
  if (fields.model === undefined && !limits.modelOptional) throw missingParameter('model');
  checkChoices(fields.n ?? 1, limits.maxRunningRequests);
  const { prompt, suffix = '', seed = fields.random_seed, max_completion_tokens: most = fields.max_tokens } = fields;
  const request = { messages: [], ...toGeneration({ ...fields, ...defined({ seed }) }, most), prompt, suffix };
  return { model: fields.model, request, ...toDelivery(fields) };
}
