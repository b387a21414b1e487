/**
 * The routes by which routers query a worker, on every listener: SGLang's `/server_info`, `/model_info`, `/v1/loads`, `/get_load` and `/flush_cache`, and vLLM's
 * `/is_sleeping`. Routers parse the answers into typed fields, and one field of the wrong type invalidates all, so unknown values are omitted, never null.
 * docs/fleet.md says who asks for what.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Request, Response } from 'express';
import type { z } from 'zod';
import { VERSION } from '../version.ts';
import type { ListenerContext } from './context.ts';
import { HttpError, invalidValue } from '../http/errors.ts';
import { mayAdminister } from './guards.ts';
import { JSON_TYPE } from '../http/route.ts';
import type { Handler, Route } from '../http/route.ts';
import { statusSchema } from '../http/answers.ts';
import type { StatusAnswer } from '../http/answers.ts';
import { loadsSchema, modelInfoSchema, serverInfoSchema, shortLoadsSchema, sleepingSchema } from './worker-answers.ts';
import type { LoadsAnswer, ModelInfoAnswer, ServerInfo, ShortLoads, Sleeping } from './worker-answers.ts';

/** The routes for routers. All but /flush_cache are answered from this process's own state. */
export function workerRoutes(context: ListenerContext): Route[] {
  const reads = (path: string, summary: string, answer: z.ZodType, handler: Handler): Route => ({
    method: 'get',
    path,
    summary,
    tags: ['worker'],
    access: 'worker',
    answers: { [JSON_TYPE]: answer },
    handler,
  });
  const info = serverInfoSchema(context.options.shownSettings ?? {});
  return [
    ...['/server_info', '/get_server_info'].map((path) => reads(path, 'The worker as routers register it', info, serverInfo(context))),
    ...['/model_info', '/get_model_info'].map((path) =>
      reads(path, 'The model as routers register it', modelInfoSchema, modelInfo(context)),
    ),
    reads('/v1/loads', 'What runs, what waits and what there is room for', loadsSchema, loads(context)),
    reads('/get_load', 'The same in short', shortLoadsSchema, getLoad(context)),
    reads('/is_sleeping', 'Whether the model is put away, which it never is', sleepingSchema, (_request, response: Response<Sleeping>) =>
      response.json({ is_sleeping: false }),
    ),
    ...flushRoutes(context),
  ];
}

/** /server_info: SGLang's fields, and for administrators also settings, adapter, memory and counters. */
function serverInfo(context: ListenerContext): Handler {
  const { engine, options, task, capacity } = context;
  return (request, response: Response<ServerInfo>) => {
    const status = engine.status();
    const loaded = status.state === 'loading' ? undefined : engine.info();
    const model = context.model();
    const { total } = context.load();
    response.json({
      task,
      state: status.state,
      version: VERSION,
      model_path: options.modelId,
      tokenizer_path: options.modelId,
      served_model_name: options.modelId,
      ...splitInfo(context),
      ...(model?.contextLength !== undefined && { context_length: model.contextLength }),
      ...(task === 'chat' && total > 0 && { max_total_tokens: total }),
      max_running_requests: context.load().maxRunning,
      ...(capacity.maxPrefillTokens !== undefined && { max_prefill_tokens: capacity.maxPrefillTokens }),
      is_embedding: false,
      disaggregation_mode: 'null',
      enable_http2: false,
      ...weightVersion(context),
      ...(mayAdminister(context, request) && {
        ...options.settings,
        // The actual value, which may differ from the setting.
        ...(model?.numerics && { numerics: model.numerics }),
        adapter: model?.adapter ?? loaded?.adapter ?? null,
        ...(loaded?.memory && { memory_plan: loaded.memory }),
        ...(loaded?.kernels && { kernels: loaded.kernels }),
        ...(model?.memory && { memory: model.memory }),
        ...(model?.ranks && { ranks: model.ranks }),
        status,
      }),
    });
  };
}

/** How the loaded model is actually split, whatever the settings asked for. */
function splitInfo(context: ListenerContext): Pick<ServerInfo, 'dp_size' | 'tp_size' | 'pp_size'> {
  const parts = context.model()?.ranks?.length ?? 1;
  const pp = parts === 1 ? 1 : context.capacity.ppSize;
  return { dp_size: 1, tp_size: parts / pp, pp_size: pp };
}

const weightVersion = (context: ListenerContext) => (context.model() ? { weight_version: context.fingerprint() } : {});

function modelInfo(context: ListenerContext): Handler {
  const { options, task } = context;
  return (_request, response: Response<ModelInfoAnswer>) => {
    const model = context.model();
    response.json({
      model_path: options.modelId,
      tokenizer_path: options.modelId,
      // Routers take a worker that does not generate for one of embeddings.
      is_generation: true,
      has_image_understanding: false,
      has_audio_understanding: task === 'transcription',
      ...(model && { model_type: model.architecture, architectures: [model.architecture] }),
      ...weightVersion(context),
    });
  };
}

/** /v1/loads: always all fields, whatever `include` asks for, since readers ignore the ones that they do not know. */
function loads(context: ListenerContext): Handler {
  return (_request, response: Response<LoadsAnswer>) => {
    const load = context.load();
    response.json({
      timestamp: new Date().toISOString(),
      version: VERSION,
      dp_rank_count: 1,
      loads: [
        {
          dp_rank: 0,
          num_running_reqs: load.running,
          num_waiting_reqs: load.waiting,
          num_waiting_uncached_tokens: load.waitingTokens,
          num_total_reqs: load.running + load.waiting,
          num_used_tokens: load.used,
          max_total_num_tokens: load.total,
          token_usage: load.usage,
          gen_throughput: context.metrics.throughput(),
          cache_hit_rate: load.hitRate,
          utilization: Math.min(1, load.running / load.maxRunning),
          max_running_requests: load.maxRunning,
        },
      ],
    });
  };
}

function getLoad(context: ListenerContext): Handler {
  return (_request, response: Response<ShortLoads>) => {
    const { running, waiting, used, waitingTokens } = context.load();
    response.json([{ dp_rank: 0, num_reqs: running + waiting, num_waiting_reqs: waiting, num_tokens: used + waitingTokens }]);
  };
}

const FLUSH_POLL_MS = 20;
/** Longest `timeout` of /flush_cache, in seconds. */
const MAX_FLUSH_WAIT = 600;

/** /flush_cache by SGLang's rule: waits up to `?timeout=` seconds until nothing runs, then answers 200, else 400. Audio listeners have no cache and just answer 200. */
function flushRoutes(context: ListenerContext): Route[] {
  const flush = async (request: Request, response: Response<StatusAnswer>): Promise<void> => {
    const { timeout = '0' } = request.query;
    const seconds = typeof timeout === 'string' ? Number(timeout) : NaN;
    if (!(seconds >= 0 && seconds <= MAX_FLUSH_WAIT))
      throw invalidValue('timeout', `'timeout' must be seconds from 0 to ${MAX_FLUSH_WAIT}`);
    const until = performance.now() + seconds * 1000;
    while (context.metrics.inFlight > 0 && performance.now() < until && !response.destroyed) await sleep(FLUSH_POLL_MS);
    if (context.metrics.inFlight > 0) {
      throw new HttpError(
        400,
        'requests_running',
        `the cache is flushed while nothing runs; running or waiting: ${context.metrics.inFlight}`,
      );
    }
    const problem = context.notReady();
    if (problem) throw problem;
    if (context.task === 'chat') await context.engine.flushCache();
    response.json({ status: 'ok' });
  };
  const timeout = { type: 'number', minimum: 0, maximum: MAX_FLUSH_WAIT, default: 0, description: 'Seconds to wait for running requests' };
  const answers = { [JSON_TYPE]: statusSchema };
  const admin = { path: '/v1/flush_cache', tags: ['administration'], access: 'admin-acts', query: { timeout }, answers } as const;
  return [
    { ...admin, method: 'post', summary: 'Forgets cached prefixes', handler: flush },
    {
      ...admin,
      method: 'get',
      summary: 'The same; not for pages of other sites',
      handler: (request, response) => {
        // Another site's page can make a visitor's browser send a GET, but Sec-Fetch-Site then says so.
        if (!['same-origin', 'none', undefined].includes(request.get('sec-fetch-site'))) {
          throw new HttpError(403, 'origin_not_allowed', 'a page of another site may not flush the cache', { type: 'permission_error' });
        }
        return flush(request, response);
      },
    },
  ];
}
