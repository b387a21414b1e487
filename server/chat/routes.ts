/** The chat listener: POST /v1/chat/completions, as one JSON body or as SSE, and the other routes of its app. */
import type { Express, Response } from 'express';
import { countEvents, sendAnswer, startAnswer } from './send.ts';
import { createApp } from '../listener/app.ts';
import { ListenerContext } from '../listener/context.ts';
import type { AppOptions } from '../listener/context.ts';
import { chatChunkSchema, chatCompletionSchema } from './answer-schema.ts';
import type { ChatCompletion } from './answer-schema.ts';
import { chatAnswer } from './choice.ts';
import type { ReasoningField } from './choice.ts';
import { describeChatBody, parseChatBody } from './schema.ts';
import type { ChatLimits } from './schema.ts';
import { inBody } from '../http/errors.ts';
import { EVENT_TYPE, JSON_TYPE } from '../http/route.ts';
import type { Route } from '../http/route.ts';
import { completionRoute } from './completions.ts';
import { jsonBody } from '../body/describe.ts';
import { middleRoute } from './middle.ts';
import { adminRoutes, tokenRoutes } from './token-routes.ts';

export interface ChatAppOptions extends AppOptions {
  readonly reasoningField?: ReasoningField;
}

/** Makes the app of the chat listener; it does nothing until it is listened on. */
export function createChatApp(options: ChatAppOptions): Express {
  const context = new ListenerContext('chat', options);
  const limits = { modelOptional: options.modelOptional ?? false, maxRunningRequests: context.capacity.maxRunningRequests };
  return createApp(context, [
    chatRoute(context, limits, options.reasoningField ?? 'reasoning_content'),
    completionRoute(context, limits),
    middleRoute(context, limits),
    ...tokenRoutes(context),
    ...adminRoutes(context),
  ]);
}

function chatRoute(context: ListenerContext, limits: ChatLimits, reasoningField: ReasoningField): Route {
  return {
    method: 'post',
    path: '/v1/chat/completions',
    summary: 'Answers a conversation',
    tags: ['chat'],
    body: () => jsonBody(describeChatBody({ ...context.names, ...limits })),
    answers: { [JSON_TYPE]: chatCompletionSchema, [EVENT_TYPE]: chatChunkSchema },
    generates: { operation: 'chat', output: 'text' },
    handler: context.job(async (request, response: Response<ChatCompletion>, job) => {
      const call = parseChatBody(await context.readJson(request, job.signal), limits);
      if (call.model !== undefined) context.checkModel(call.model);
      job.note({ stream: call.stream });
      const sources = countEvents(context, job, [context.engine.chat({ ...call.request, ...context.loraOf(call.model) }, job.signal)]);
      const answer = chatAnswer(call, startAnswer(context, 'chatcmpl', call.model), reasoningField);
      await sendAnswer(response, sources, answer, job).catch((error: unknown) => {
        throw inBody(error, (param) => toolField(param, call.toolPaths));
      });
    }),
  };
}

/** The path in the body of a field of a tool, which the engine counts among the tools offered; undefined for other fields. */
function toolField(param: string, toolPaths: readonly string[]): string | undefined {
  const [given, index] = /^tools\[(\d+)\]/.exec(param) ?? [];
  return given && toolPaths[Number(index)]! + param.slice(given.length);
}
