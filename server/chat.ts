/** The chat listener: POST /v1/chat/completions, as one JSON body or as server-sent events. */
import { createHash, randomUUID } from 'node:crypto';
import type { Express, Response } from 'express';
import type { ChatEvent, FinishReason } from '../engine/api.ts';
import { ListenerContext, createApp } from './app.ts';
import type { AppOptions, Job } from './app.ts';
import { parseChatBody } from './chat-schema.ts';
import type { ChatCall } from './chat-schema.ts';
import { addRoute } from './common-routes.ts';
import { toHttpError } from './http-error.ts';
import { readJsonObject } from './json-body.ts';
import { EventStream } from './sse.ts';

export interface ChatAppOptions extends AppOptions {
  readonly maxRunningRequests?: number;
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
        const answer = { ...envelope(context), call };
        await (call.stream ? sendStream(response, events, answer, job) : sendWhole(response, events, answer));
      }),
    );
  });
}

/** What every body and chunk of one answer has in common. */
interface Envelope {
  readonly id: string;
  readonly created: number;
  readonly model: string;
  readonly system_fingerprint: string;
}

interface Answer extends Envelope {
  readonly call: ChatCall;
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
  for await (const event of events) {
    if (event.type === 'start') job.note({ prompt_tokens: event.promptTokens });
    else if (event.type === 'delta') {
      const now = job.elapsed();
      if (lastToken === 0) context.metrics.firstOutput(now);
      else context.metrics.tokens(event.tokens, now - lastToken);
      lastToken = now;
    } else job.note({ completion_tokens: event.completionTokens, finish_reason: event.reason });
    yield event;
  }
}

/** Prompt and cached tokens count once, completion tokens are summed over the choices. */
class Usage {
  prompt = 0;
  cached = 0;
  /** By choice: counted from deltas while it runs, exact once it has finished. */
  readonly #completion = new Map<number, number>();

  add(event: ChatEvent): void {
    if (event.type === 'start') {
      this.prompt = event.promptTokens;
      this.cached = event.cachedTokens;
    } else if (event.type === 'delta') this.#completion.set(event.index, (this.#completion.get(event.index) ?? 0) + event.tokens);
    else {
      this.#completion.set(event.index, event.completionTokens);
      // Later choices share the first one's prompt, which is no hit of the cache.
      if (event.index === 0) this.cached = event.cachedTokens;
    }
  }

  toJSON(): Record<string, unknown> {
    const completion = [...this.#completion.values()].reduce((sum, tokens) => sum + tokens, 0);
    return {
      prompt_tokens: this.prompt,
      completion_tokens: completion,
      total_tokens: this.prompt + completion,
      prompt_tokens_details: { cached_tokens: this.cached, audio_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0, accepted_prediction_tokens: 0, rejected_prediction_tokens: 0 },
    };
  }
}

async function sendWhole(response: Response, events: AsyncIterable<ChatEvent>, { call, ...envelope }: Answer): Promise<void> {
  const usage = new Usage();
  const choices = Array.from({ length: call.request.n ?? 1 }, () => ({
    text: '',
    reason: 'stop' as FinishReason,
    stopReason: null as string | number | null,
  }));
  for await (const event of events) {
    usage.add(event);
    const choice = event.type === 'start' ? undefined : choices[event.index];
    if (!choice) continue;
    if (event.type === 'delta') choice.text += event.text;
    else if (event.type === 'finish') Object.assign(choice, { reason: event.reason, stopReason: event.stopReason });
  }
  response.json({
    ...envelope,
    object: 'chat.completion',
    choices: choices.map(({ text, reason, stopReason }, index) => ({
      index,
      message: { role: 'assistant', content: text, refusal: null },
      logprobs: null,
      finish_reason: reason,
      stop_reason: stopReason,
    })),
    usage,
  });
}

async function sendStream(response: Response, events: AsyncIterable<ChatEvent>, answer: Answer, job: Job): Promise<void> {
  const { call, ...envelope } = answer;
  const stream = new EventStream(response);
  const usage = new Usage();
  let begun = false;
  const chunk = (choices: readonly unknown[], last = false): Record<string, unknown> => ({
    ...envelope,
    object: 'chat.completion.chunk',
    choices,
    ...(call.includeUsage && { usage: last || call.continuousUsage ? usage : null }),
  });
  try {
    for await (const event of events) {
      usage.add(event);
      if (event.type === 'start') {
        begun = true;
        stream.begin();
        const roles = Array.from({ length: call.request.n ?? 1 }, (_, index) => choiceOf(index, { role: 'assistant', content: '' }));
        for (const choice of roles) await stream.send(chunk([choice]));
      } else if (event.type === 'delta') await stream.send(chunk([choiceOf(event.index, { content: event.text })]));
      else await stream.send(chunk([{ ...choiceOf(event.index, {}, event.reason), stop_reason: event.stopReason }]));
    }
    if (call.includeUsage) await stream.send(chunk([], true));
  } catch (error) {
    // Before the first byte it is a plain error; after it, a frame that clients raise as one.
    if (!begun) throw error;
    if (response.destroyed) return;
    const reason = toHttpError(job.signal.aborted ? job.signal.reason : error);
    job.note({ code: reason.code });
    await stream.send(reason.body);
  }
  await stream.sendDone();
  stream.end();
}

const choiceOf = (index: number, delta: Record<string, unknown>, reason: FinishReason | null = null) => ({
  index,
  delta,
  logprobs: null,
  finish_reason: reason,
});
