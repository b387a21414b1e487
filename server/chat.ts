/** The chat listener: POST /v1/chat/completions, as one JSON body or as server-sent events. */
import { createHash, randomUUID } from 'node:crypto';
import type { Express } from 'express';
import type { ChatEvent } from '../engine/api.ts';
import { ListenerContext, createApp } from './app.ts';
import type { AppOptions, Job } from './app.ts';
import { sendStream, sendWhole } from './chat-answer.ts';
import type { Answer, Envelope, ReasoningField } from './chat-answer.ts';
import { parseChatBody } from './chat-schema.ts';
import { addRoute } from './common-routes.ts';
import { readJsonObject } from './json-body.ts';

export interface ChatAppOptions extends AppOptions {
  readonly maxRunningRequests?: number;
  readonly reasoningField?: ReasoningField;
}

/** The app of the chat listener; no side effects until it is listened on. */
export function createChatApp(options: ChatAppOptions): Express {
  const context = new ListenerContext('chat', options);
  const limits = { modelOptional: options.modelOptional ?? false, maxRunningRequests: options.maxRunningRequests ?? 128 };
  return createApp(context, (router) => {
    addRoute(
      router,
      'post',
      '/chat/completions',
      context.job(async (request, response, job) => {
        const call = parseChatBody(await readJsonObject(request), limits);
        if (call.model !== undefined) context.checkModel(call.model);
        job.note({ stream: call.stream });
        const events = countEvents(context, job, context.engine.chat(call.request, job.signal));
        const answer: Answer = { ...envelope(context), call, reasoningField: options.reasoningField ?? 'reasoning_content' };
        await (call.stream ? sendStream(response, events, answer, job) : sendWhole(response, events, answer));
      }),
    );
  });
}

function envelope(context: ListenerContext): Envelope {
  const { adapter } = context.engine.info();
  const model = context.model();
  const build = JSON.stringify([model?.id, model?.architecture, model?.parameters, model?.weightBytes, adapter.name, adapter.family]);
  return {
    id: `chatcmpl-${randomUUID().replaceAll('-', '')}`,
    created: Math.floor(Date.now() / 1000),
    model: context.options.modelId,
    system_fingerprint: `fp_${createHash('sha256').update(build).digest('hex').slice(0, 12)}`,
  };
}

/** Passes events through; times the first token and the ones after it, and puts the counts in the log line. */
async function* countEvents(context: ListenerContext, job: Job, events: AsyncIterable<ChatEvent>): AsyncGenerator<ChatEvent> {
  let lastToken = 0;
  let completion = 0;
  for await (const event of events) {
    if (event.type === 'start') job.note({ prompt_tokens: event.promptTokens });
    else if (event.type === 'delta') {
      const now = job.elapsed();
      if (lastToken === 0) context.metrics.firstOutput(now);
      else context.metrics.tokens(event.tokens, now - lastToken);
      lastToken = now;
    } else job.note({ completion_tokens: (completion += event.completionTokens), finish_reason: event.reason });
    yield event;
  }
}
