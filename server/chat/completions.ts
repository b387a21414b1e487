/** POST /v1/completions: continues raw prompts, as one JSON body or as SSE. */
import type { Response } from 'express';
import type { ChatEvent, ChatRequest, FinishReason } from '../../engine/api.ts';
import { finite } from './answer.ts';
import { countEvents, sendAnswer, startAnswer } from './send.ts';
import { textChunkSchema, textCompletionSchema } from './answer-schema.ts';
import type { TextChunk, TextCompletion, TextLogprobs } from './answer-schema.ts';
import type { Bodies, Choice, Delta, Envelope } from './answer.ts';
import type { ListenerContext } from '../listener/context.ts';
import type { ChatLimits } from './schema.ts';
import { EngineError } from '../../engine/errors.ts';
import { invalidValue } from '../http/errors.ts';
import { EVENT_TYPE, JSON_TYPE } from '../http/route.ts';
import type { Route } from '../http/route.ts';
import { describeCompletionBody, parseCompletionBody } from './completion-schema.ts';
import { jsonBody } from '../body/describe.ts';
import { defined } from '../body/validate.ts';

/** The route of text completions. */
export function completionRoute(context: ListenerContext, limits: ChatLimits): Route {
  return {
    method: 'post',
    path: '/v1/completions',
    summary: 'Continues a prompt',
    tags: ['chat'],
    body: () => jsonBody(describeCompletionBody({ ...context.names, ...limits })),
    answers: { [JSON_TYPE]: textCompletionSchema, [EVENT_TYPE]: textChunkSchema },
    generates: { operation: 'text_completion', output: 'text' },
    handler: context.job(async (request, response: Response<TextCompletion>, job) => {
      const call = parseCompletionBody(await context.readJson(request, job.signal), limits);
      if (call.model !== undefined) context.checkModel(call.model);
      job.note({ stream: call.stream, prompts: call.prompts.length });
      // If one prompt fails, the others are aborted.
      const ended = new AbortController();
      // Each call listens to a signal of its own: Node takes more than ten listeners of one signal for a leak, and warns.
      const ending = (): AbortSignal => AbortSignal.any([job.signal, ended.signal]);
      try {
        const requests = call.requests.map((one) => ({ ...one, ...context.loraOf(call.model) }));
        const echoed = call.echo ? await Promise.all(requests.map((one) => echo(context.engine, one, ending()))) : [];
        const choices = Array.from({ length: requests.length * call.n }, (_, i) => new TextChoice(i, echoed[Math.floor(i / call.n)]));
        const events = requests.map((one) => (one.maxTokens === 0 ? onlyPrompt(context.engine, one) : context.engine.chat(one, ending())));
        const sources = countEvents(context, job, events);
        const bodies = textBodies(startAnswer(context, 'cmpl', call.model));
        await sendAnswer(response, sources, { delivery: call, bodies, choices }, job);
      } finally {
        ended.abort();
      }
    }),
  };
}

/** Puts the bodies of a text completion together. */
const textBodies = (envelope: Envelope): Bodies<TextCompletion, TextChunk> => ({
  whole: (choices, usage) => ({ ...envelope, object: 'text_completion', choices, usage }),
  chunk: (choices, usage) => ({ ...envelope, object: 'text_completion', choices, ...usage }),
});

type ChunkChoice = TextChunk['choices'][number];
/** Log-probabilities that tokens can be added to. */
type GrowingLogprobs = { readonly [K in keyof TextLogprobs]: TextLogprobs[K][number][] };

/** One choice of POST /v1/completions; `echoed` is the prompt if the request asked to repeat it. */
class TextChoice implements Choice<TextCompletion, TextChunk> {
  readonly #index: number;
  readonly #echoed: Echo | undefined;
  #text: string;
  #offset: number;
  #logprobs: GrowingLogprobs | undefined;

  constructor(index: number, echoed: Echo | undefined) {
    this.#index = index;
    this.#echoed = echoed;
    this.#text = echoed?.text ?? '';
    this.#offset = echoed?.logprobs ? this.#text.length : 0;
    this.#logprobs = structuredClone(echoed?.logprobs);
  }

  begin(): ChunkChoice | undefined {
    return this.#echoed && this.#chunk(this.#echoed.text, this.#echoed.logprobs);
  }

  take({ text, logprobs }: Delta): ChunkChoice {
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

  end(reason: FinishReason, stopReason: string | number | null): ChunkChoice {
    return { ...this.#chunk('', undefined, reason), stop_reason: stopReason };
  }

  whole(reason: FinishReason, stopReason: string | number | null): TextCompletion['choices'][number] {
    return { ...this.#chunk(this.#text, this.#logprobs), finish_reason: reason, stop_reason: stopReason };
  }

  #chunk(text: string, logprobs?: TextLogprobs, reason: FinishReason | null = null): ChunkChoice {
    return { index: this.#index, text, logprobs: logprobs ?? null, finish_reason: reason };
  }

  #describe(logprobs: NonNullable<Delta['logprobs']>): GrowingLogprobs {
    const all = emptyLogprobs();
    for (const one of logprobs) {
      addLogprob(all, one);
      all.text_offset.push(this.#offset);
      this.#offset += one.token.length;
    }
    return all;
  }
}

/** A prompt as it is repeated, with its log-probabilities if the request asked for those. */
interface Echo {
  readonly text: string;
  readonly logprobs?: GrowingLogprobs;
}

type Engine = ListenerContext['engine'];

/** Spells out a request's prompt. Its log-probabilities are those of an answer to its first token that is held to the others. */
async function echo(engine: Engine, { logprobs: top, ...request }: ChatRequest, signal: AbortSignal): Promise<Echo> {
  const { prompt = '', cacheSalt, priority, lora } = request;
  const text = typeof prompt === 'string' ? prompt : await engine.detokenize(prompt).catch(nameField);
  if (top === undefined) return { text };
  const [first, ...forcedTokens] = typeof prompt === 'string' ? await engine.tokenize({ prompt }) : prompt;
  const beginning = first === undefined ? '' : await engine.detokenize([first]);
  const logprobs: GrowingLogprobs = { tokens: [beginning], token_logprobs: [null], top_logprobs: [null], text_offset: [] };
  if (forcedTokens.length > 0) {
    const asked = defined({
      messages: [],
      prompt: [first!],
      forcedTokens,
      sampling: { temperature: 0 },
      logprobs: top,
      cacheSalt,
      priority,
      lora,
    });
    for await (const event of engine.chat(asked, signal)) {
      for (const one of (event.type === 'delta' && event.logprobs) || []) addLogprob(logprobs, one);
    }
  }
  // From the end: what a tokenizer puts before a text takes no room in it.
  let offset = text.length;
  for (const token of logprobs.tokens.toReversed()) logprobs.text_offset.unshift((offset = Math.max(0, offset - token.length)));
  return { text, logprobs };
}

/** The events of an answer without tokens: the prompt's are counted. */
async function* onlyPrompt(engine: Engine, { prompt = '', n = 1 }: ChatRequest): AsyncGenerator<ChatEvent> {
  const { length } = typeof prompt === 'string' ? await engine.tokenize({ prompt }) : prompt;
  yield { type: 'start', promptTokens: length, cachedTokens: 0 };
  const nothing = { reason: 'length', stopReason: null, completionTokens: 0, cachedTokens: 0 } as const;
  for (let index = 0; index < n; index++) yield { type: 'finish', index, ...nothing };
}

/** Throws an error of spelling a prompt out, with this route's name for what was spelled. */
function nameField(error: unknown): never {
  if (!(error instanceof EngineError) || error.param !== 'tokens') throw error;
  throw invalidValue('prompt', error.message.replace("'tokens'", "'prompt'"));
}

/** Appends a token's log-probability in the old form; its offset is left to the caller. */
function addLogprob(to: GrowingLogprobs, { token, logprob, top }: NonNullable<Delta['logprobs']>[number]): void {
  to.tokens.push(token);
  to.token_logprobs.push(finite(logprob));
  to.top_logprobs.push(Object.fromEntries([...top, { token, logprob }].map((one) => [one.token, finite(one.logprob)])));
}

const emptyLogprobs = (): GrowingLogprobs => ({ tokens: [], token_logprobs: [], top_logprobs: [], text_offset: [] });
