/** SGLang's routes around chat: /tokenize, /detokenize, and for administration /flush_cache and /abort_request. */
import type { IRouter, Request, Response } from 'express';
import type { AdminRoutes, ListenerContext } from '../http/context.ts';
import { addRoute } from '../http/common-routes.ts';
import { HttpError, invalidValue, missingParameter } from '../http/errors.ts';
import { readJsonObject } from '../body/json-body.ts';
import { abortSchema, detokenizeSchema, tokenizeSchema } from './token-schema.ts';
import { validate } from '../body/validate.ts';

/** Adds /tokenize and /detokenize. */
export function addTokenRoutes(router: IRouter, context: ListenerContext): void {
  const { engine } = context;
  addRoute(
    router,
    'post',
    '/tokenize',
    context.job(async (request, response) => {
      const {
        model,
        prompt,
        messages,
        add_special_tokens: addSpecialTokens = true,
      } = validate(tokenizeSchema, await readJsonObject(request));
      if (model !== undefined) context.checkModel(model);
      if (prompt !== undefined && messages) throw invalidValue('messages', "give 'prompt' or 'messages', not both");
      if (prompt === undefined && !messages) throw missingParameter('prompt');
      const one = (text: string) => engine.tokenize({ prompt: text, addSpecialTokens });
      const limit = { max_model_len: context.model()?.contextLength ?? null };
      if (Array.isArray(prompt)) {
        const tokens = await Promise.all(prompt.map(one));
        response.json({ tokens, count: tokens.map(({ length }) => length), ...limit });
      } else {
        const tokens = await (prompt === undefined ? engine.tokenize({ messages: messages! }) : one(prompt));
        response.json({ tokens, count: tokens.length, ...limit });
      }
    }),
  );
  addRoute(
    router,
    'post',
    '/detokenize',
    context.job(async (request, response) => {
      const { model, tokens } = validate(detokenizeSchema, await readJsonObject(request));
      if (model !== undefined) context.checkModel(model);
      const isBatch = Array.isArray(tokens[0]);
      const text = isBatch
        ? await Promise.all((tokens as number[][]).map((one) => engine.detokenize(one)))
        : await engine.detokenize(tokens as number[]);
      // vLLM calls it `prompt`, SGLang `text`.
      response.json({ prompt: text, text });
    }),
  );
}

/** Adds /flush_cache and /abort_request. */
export function addAdminRoutes({ router, guard }: AdminRoutes, context: ListenerContext): void {
  const flush = context.job(async (_request, response) => {
    await context.engine.flushCache();
    response.json({ status: 'ok' });
  });
  addRoute(router, 'post', '/flush_cache', flush, guard);
  const abort = async (request: Request, response: Response): Promise<void> => {
    const { rid, abort_all: all = false } = validate(abortSchema, await readJsonObject(request));
    if (rid === undefined && !all) throw missingParameter('rid');
    // Official clients retry 409 and 5xx, which would undo it.
    const error = new HttpError(400, 'request_aborted', 'the request was aborted by POST /abort_request');
    response.json({ aborted: context.abort(all ? undefined : rid, error) });
  };
  addRoute(router, 'post', '/abort_request', abort, guard);
}
