/** SGLang's routes around chat: /tokenize, /detokenize, vLLM's /tokenizer_info, and for administration /abort_request. */
import type { Request, Response } from 'express';
import { requestAborted } from '../../engine/errors.ts';
import type { ListenerContext } from '../listener/context.ts';
import { JSON_TYPE } from '../http/route.ts';
import type { Route } from '../http/route.ts';
import { HttpError, invalidValue, missingParameter } from '../http/errors.ts';
import {
  ABORT_BODY,
  abortSchema,
  abortedSchema,
  describeDetokenizeBody,
  describeTokenizeBody,
  detokenizeSchema,
  textSchema,
  tokenizeSchema,
  tokenizerInfoSchema,
  tokensSchema,
} from './token-schema.ts';
import type { AbortedAnswer, TextAnswer, TokenizerInfoAnswer, TokensAnswer } from './token-schema.ts';
import { jsonBody } from '../body/describe.ts';
import { validate } from '../body/validate.ts';

/** Characters or tokens of a list that the engine is given at once, some milliseconds of work. Each item counts ITEM more, for its overhead. */
const PIECE = 4096;
const ITEM = 64;

/** Maps a list piece by piece, so that other requests get their turn in between. Throws EngineError('aborted') when the signal is. */
async function byPieces<Item extends { readonly length: number }, Result>(
  items: readonly Item[],
  one: (item: Item) => Promise<Result>,
  signal: AbortSignal,
): Promise<Result[]> {
  const results: Result[] = [];
  for (let at = 0, end = 0; at < items.length; at = end) {
    if (signal.aborted) throw requestAborted();
    for (let left = PIECE; left > 0 && end < items.length; end++) left -= ITEM + items[end]!.length;
    results.push(...(await Promise.all(items.slice(at, end).map(one))));
  }
  return results;
}

/** /v1/tokenize, /v1/detokenize and /v1/tokenizer_info. */
export const tokenRoutes = (context: ListenerContext): Route[] => [
  tokenizeRoute(context),
  detokenizeRoute(context),
  tokenizerInfoRoute(context),
];

function tokenizeRoute(context: ListenerContext): Route {
  const { engine } = context;
  return {
    method: 'post',
    path: '/v1/tokenize',
    summary: 'Token ids of a prompt or a conversation',
    tags: ['tokens'],
    body: () => jsonBody(describeTokenizeBody(context.names)),
    answers: { [JSON_TYPE]: tokensSchema },
    handler: context.job(async (request, response: Response<TokensAnswer>, job) => {
      const {
        model,
        prompt,
        messages,
        add_special_tokens: addSpecialTokens = true,
      } = validate(tokenizeSchema, await context.readJson(request, job.signal));
      if (model !== undefined) context.checkModel(model);
      if (prompt !== undefined && messages) throw invalidValue('messages', "give 'prompt' or 'messages', not both");
      if (prompt === undefined && !messages) throw missingParameter('prompt');
      const one = (text: string) => engine.tokenize({ prompt: text, addSpecialTokens });
      const limit = { max_model_len: context.model()?.contextLength ?? null };
      if (Array.isArray(prompt)) {
        const tokens = await byPieces(prompt, one, job.signal);
        response.json({ tokens, count: tokens.map(({ length }) => length), ...limit });
      } else {
        const tokens = await (prompt === undefined ? engine.tokenize({ messages: messages! }) : one(prompt));
        response.json({ tokens, count: tokens.length, ...limit });
      }
    }),
  };
}

function detokenizeRoute(context: ListenerContext): Route {
  const { engine } = context;
  return {
    method: 'post',
    path: '/v1/detokenize',
    summary: 'Text of token ids',
    tags: ['tokens'],
    body: () => jsonBody(describeDetokenizeBody(context.names)),
    answers: { [JSON_TYPE]: textSchema },
    handler: context.job(async (request, response: Response<TextAnswer>, job) => {
      const { model, tokens } = validate(detokenizeSchema, await context.readJson(request, job.signal));
      if (model !== undefined) context.checkModel(model);
      const isBatch = Array.isArray(tokens[0]);
      const text = isBatch
        ? await byPieces(tokens as number[][], (one) => engine.detokenize(one), job.signal)
        : await engine.detokenize(tokens as number[]);
      // vLLM calls it `prompt`, SGLang `text`.
      response.json({ prompt: text, text });
    }),
  };
}

function tokenizerInfoRoute(context: ListenerContext): Route {
  return {
    method: 'get',
    path: '/v1/tokenizer_info',
    summary: 'Special tokens and chat template',
    tags: ['tokens'],
    answers: { [JSON_TYPE]: tokenizerInfoSchema },
    handler: context.job(async (_request, response: Response<TokenizerInfoAnswer>) => {
      const { bosToken, eosToken, chatTemplate } = await context.engine.tokenizerInfo();
      response.json({ bos_token: bosToken, eos_token: eosToken, chat_template: chatTemplate });
    }),
  };
}

/** /v1/abort_request. */
export function adminRoutes(context: ListenerContext): Route[] {
  const abort = async (request: Request, response: Response<AbortedAnswer>): Promise<void> => {
    const { rid, abort_all: all = false } = validate(abortSchema, await context.readJson(request));
    if (rid === undefined && !all) throw missingParameter('rid');
    // Official clients retry 409 and 5xx, which would undo it.
    const error = new HttpError(400, 'request_aborted', 'the request was aborted by POST /abort_request');
    response.json({ aborted: context.abort(all ? undefined : rid, error) });
  };
  const admin = { method: 'post', tags: ['administration'], access: 'admin-acts' } as const;
  return [
    {
      ...admin,
      path: '/v1/abort_request',
      summary: 'Ends running requests by the id in x-request-id',
      body: () => jsonBody(ABORT_BODY),
      answers: { [JSON_TYPE]: abortedSchema },
      handler: abort,
    },
  ];
}
