/** A chat answer from the engine's events: as one JSON body, or as chunks. */
import { randomBytes } from 'node:crypto';
import type { Response } from 'express';
import type { ChatEvent, FinishReason, TokenLogprob } from '../engine/api.ts';
import type { Job } from './app.ts';
import type { ChatCall } from './chat-schema.ts';
import { toHttpError } from './http-error.ts';
import { EventStream } from './sse.ts';

/** What every body and chunk of one answer has in common. */
export interface Envelope {
  readonly id: string;
  readonly created: number;
  readonly model: string;
  readonly system_fingerprint: string;
}

/** The envelope, and what was asked. */
export interface Answer extends Envelope {
  readonly call: ChatCall;
  readonly reasoningField: ReasoningField;
}

/** Where thoughts go: `reasoning_content` as SGLang and llama.cpp have it, `reasoning` as vLLM and Ollama do. */
export type ReasoningField = 'reasoning_content' | 'reasoning' | 'both';

type Delta = Extract<ChatEvent, { type: 'delta' }>;

/** Prompt and cached tokens count once, completion tokens are summed over the choices. */
class Usage {
  prompt = 0;
  cached = 0;
  #reasoning = 0;
  /** By choice: counted from deltas while it runs, exact once it has finished. */
  readonly #completion = new Map<number, number>();

  add(event: ChatEvent): void {
    if (event.type === 'start') {
      this.prompt = event.promptTokens;
      this.cached = event.cachedTokens;
    } else if (event.type === 'delta') {
      this.#completion.set(event.index, (this.#completion.get(event.index) ?? 0) + event.tokens);
      if (event.reasoning !== undefined) this.#reasoning += event.tokens;
    } else {
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
      completion_tokens_details: {
        reasoning_tokens: this.#reasoning,
        audio_tokens: 0,
        accepted_prediction_tokens: 0,
        rejected_prediction_tokens: 0,
      },
    };
  }
}

/** One choice as it grows; the whole message at the end, or the pieces on the way. */
class Choice {
  readonly index: number;
  readonly #field: ReasoningField;
  #text = '';
  #reasoning = '';
  readonly #calls: { readonly id: string; readonly name: string; arguments: string }[] = [];
  #logprobs: unknown[] | undefined;

  constructor(index: number, { reasoningField, call }: Answer) {
    this.index = index;
    this.#field = reasoningField;
    if (call.request.logprobs !== undefined) this.#logprobs = [];
  }

  /** Takes a delta of the engine and gives the chunk's choice. */
  take({ text, reasoning, toolCalls, logprobs }: Delta): Record<string, unknown> {
    this.#text += text;
    this.#reasoning += reasoning ?? '';
    const calls = toolCalls?.map(({ call, name, arguments: piece = '' }) => this.#takeCall(call, name, piece));
    const described = logprobs?.map(describeLogprob);
    if (described) this.#logprobs?.push(...described);
    const delta = { ...(text !== '' && { content: text }), ...this.#reasoningFields(reasoning), ...(calls && { tool_calls: calls }) };
    return this.chunk(delta, described && { content: described, refusal: null });
  }

  chunk(delta: object, logprobs: unknown = null, reason: FinishReason | null = null): Record<string, unknown> {
    return { index: this.index, delta, logprobs: logprobs ?? null, finish_reason: reason };
  }

  /** The choice of a whole answer. */
  finish(reason: FinishReason, stopReason: string | number | null): Record<string, unknown> {
    const calls = this.#calls.map(({ id, ...call }) => ({ id, type: 'function', function: call }));
    return {
      index: this.index,
      message: {
        role: 'assistant',
        content: this.#text === '' && calls.length > 0 ? null : this.#text,
        refusal: null,
        ...this.#reasoningFields(this.#reasoning || undefined),
        ...(calls.length > 0 && { tool_calls: calls }),
      },
      logprobs: this.#logprobs ? { content: this.#logprobs, refusal: null } : null,
      finish_reason: reason,
      stop_reason: stopReason,
    };
  }

  /** Id, type and name belong to a call's first piece only: clients that assemble calls reject a second name. */
  #takeCall(index: number, name: string | undefined, piece: string): Record<string, unknown> {
    const known = this.#calls[index];
    if (known) {
      known.arguments += piece;
      return { index, function: { arguments: piece } };
    }
    const call = { id: `call_${randomBytes(12).toString('hex')}`, name: name ?? '', arguments: piece };
    this.#calls[index] = call;
    return { index, id: call.id, type: 'function', function: { name: call.name, arguments: piece } };
  }

  #reasoningFields(reasoning: string | undefined): Record<string, string> {
    if (reasoning === undefined) return {};
    return {
      ...(this.#field !== 'reasoning' && { reasoning_content: reasoning }),
      ...(this.#field !== 'reasoning_content' && { reasoning }),
    };
  }
}

/** JSON has no infinity; -9999 is what OpenAI sends. */
const finite = (logprob: number): number => (Number.isFinite(logprob) ? logprob : -9999);

function describeLogprob({ token, logprob, bytes, top }: NonNullable<Delta['logprobs']>[number]): Record<string, unknown> {
  const plain = (one: TokenLogprob) => ({ token: one.token, logprob: finite(one.logprob), bytes: one.bytes });
  return { ...plain({ token, logprob, bytes }), top_logprobs: top.map(plain) };
}

const choicesOf = (answer: Answer): Choice[] => Array.from({ length: answer.call.request.n ?? 1 }, (_, index) => new Choice(index, answer));

/** Sends one JSON body once everything is there. */
export async function sendWhole(response: Response, events: AsyncIterable<ChatEvent>, answer: Answer): Promise<void> {
  const { id, created, model, system_fingerprint } = answer;
  const usage = new Usage();
  const choices = choicesOf(answer);
  const finished: Record<string, unknown>[] = [];
  for await (const event of events) {
    usage.add(event);
    if (event.type === 'delta') choices[event.index]?.take(event);
    else if (event.type === 'finish') finished[event.index] = choices[event.index]?.finish(event.reason, event.stopReason) ?? {};
  }
  response.json({ id, created, model, system_fingerprint, object: 'chat.completion', choices: finished, usage });
}

/** Sends chunks as they come: roles, deltas, finishes, usage if asked, [DONE]. */
export async function sendStream(response: Response, events: AsyncIterable<ChatEvent>, answer: Answer, job: Job): Promise<void> {
  const { call, id, created, model, system_fingerprint } = answer;
  const stream = new EventStream(response);
  const usage = new Usage();
  const choices = choicesOf(answer);
  let begun = false;
  const send = (chosen: readonly unknown[], last = false): Promise<void> =>
    stream.send({
      id,
      created,
      model,
      system_fingerprint,
      object: 'chat.completion.chunk',
      choices: chosen,
      ...(call.includeUsage && { usage: last || call.continuousUsage ? usage : null }),
    });
  try {
    for await (const event of events) {
      usage.add(event);
      if (event.type === 'start') {
        begun = true;
        stream.begin();
        for (const choice of choices) await send([choice.chunk({ role: 'assistant', content: '' })]);
        continue;
      }
      const choice = choices[event.index];
      if (!choice) continue;
      if (event.type === 'delta') await send([choice.take(event)]);
      else await send([{ ...choice.chunk({}, null, event.reason), stop_reason: event.stopReason }]);
    }
    if (call.includeUsage) await send([], true);
  } catch (error) {
    // Before the first byte it is a plain error; after it, a frame that clients raise as one.
    if (!begun) throw error;
    if (response.destroyed) return;
    const shown = toHttpError(job.signal.aborted ? job.signal.reason : error);
    job.note({ code: shown.code });
    await stream.send(shown.body);
  }
  await stream.sendDone();
  stream.end();
}
