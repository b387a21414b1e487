/** POST /v1/completions: continues raw prompts, as one JSON body or as SSE. */
import type { FinishReason } from '../../engine/api.ts';
import { finite } from './answer.ts';
import { countEvents, sendAnswer, startAnswer } from './send.ts';
import type { Choice, Delta } from './answer.ts';
import type { ListenerContext } from '../http/context.ts';
import type { ChatLimits } from './schema.ts';
import { EVENT_TYPE, JSON_TYPE } from '../http/route.ts';
import type { Route } from '../http/route.ts';
import { describeCompletionBody, parseCompletionBody } from './completion-schema.ts';
import { jsonBody } from '../body/describe.ts';
import { readJsonObject } from '../body/json-body.ts';

/** The route of text completions. */
export function completionRoute(context: ListenerContext, limits: ChatLimits): Route {
  return {
    method: 'post',
    path: '/v1/completions',
    summary: 'Continues a prompt',
    tags: ['chat'],
    body: () => jsonBody(describeCompletionBody({ ...context.names, ...limits })),
    answers: [JSON_TYPE, EVENT_TYPE],
    handler: context.job(async (request, response, job) => {
      const call = parseCompletionBody(await readJsonObject(request, context.bodies, job.signal), limits);
      if (call.model !== undefined) context.checkModel(call.model);
      job.note({ stream: call.stream, prompts: call.prompts.length });
      const spell = async (prompt: string | readonly number[]) => (typeof prompt === 'string' ? prompt : context.engine.detokenize(prompt));
      const echoed = call.echo ? await Promise.all(call.prompts.map(spell)) : [];
      const choices = Array.from(
        { length: call.requests.length * call.n },
        (_, i) => new TextChoice(i, echoed[Math.floor(i / call.n)] ?? ''),
      );
      // If one prompt fails, the others are aborted.
      const ended = new AbortController();
      const signal = AbortSignal.any([job.signal, ended.signal]);
      try {
        const events = call.requests.map((one) => context.engine.chat(one, signal));
        const sources = countEvents(context, job, events);
        const objects = ['text_completion', 'text_completion'] as const;
        const answer = { envelope: startAnswer(context, 'cmpl'), delivery: call, objects, choices };
        await sendAnswer(response, sources, answer, job);
      } finally {
        ended.abort();
      }
    }),
  };
}

interface TextLogprobs {
  readonly tokens: string[];
  readonly token_logprobs: number[];
  /** For each token: log-probabilities of the likeliest tokens and of the chosen one, by spelling. */
  readonly top_logprobs: Record<string, number>[];
  /** Offset of each token in the text, in UTF-16 code units. */
  readonly text_offset: number[];
}

/** One choice of POST /v1/completions; `echoed` is the prompt if the request asked to repeat it, else ''. */
class TextChoice implements Choice {
  readonly #index: number;
  readonly #echoed: string;
  #text: string;
  #offset = 0;
  #logprobs: TextLogprobs | undefined;

  constructor(index: number, echoed: string) {
    this.#index = index;
    this.#echoed = echoed;
    this.#text = echoed;
  }

  begin(): object | undefined {
    return this.#echoed === '' ? undefined : this.#chunk(this.#echoed);
  }

  take({ text, logprobs }: Delta): object {
    this.#text += text;
    const described = logprobs && this.#describe(logprobs);
    if (described) {
      this.#logprobs ??= emptyLogprobs();
      this.#logprobs.tokens.push(...described.tokens);
      this.#logprobs.token_logprobs.push(...described.token_logprobs);
      this.#logprobs.top_logprobs.push(...described.top_logprobs);
      this.#logprobs.text_offset.push(...described.text_offset);
    }
    return this.#chunk(text, described);
  }

  end(reason: FinishReason, stopReason: string | number | null): object {
    return { ...this.#chunk('', undefined, reason), stop_reason: stopReason };
  }

  whole(reason: FinishReason, stopReason: string | number | null): object {
    return { ...this.#chunk(this.#text, this.#logprobs, reason), stop_reason: stopReason };
  }

  #chunk(text: string, logprobs?: TextLogprobs, reason: FinishReason | null = null): object {
    return { index: this.#index, text, logprobs: logprobs ?? null, finish_reason: reason };
  }

  #describe(logprobs: NonNullable<Delta['logprobs']>): TextLogprobs {
    const all = emptyLogprobs();
    for (const { token, logprob, top } of logprobs) {
      all.tokens.push(token);
      all.token_logprobs.push(finite(logprob));
      all.top_logprobs.push(Object.fromEntries([...top, { token, logprob }].map((one) => [one.token, finite(one.logprob)])));
      all.text_offset.push(this.#offset);
      this.#offset += token.length;
    }
    return all;
  }
}

const emptyLogprobs = (): TextLogprobs => ({ tokens: [], token_logprobs: [], top_logprobs: [], text_offset: [] });
