/** The routes every listener has besides its own. */
import type { IRouter, Request, RequestHandler, Response } from 'express';
import type { ChatRequest } from '../../engine/api.ts';
import type { ListenerContext } from './context.ts';
import { HttpError, deviceLost } from './errors.ts';
import { requireAdminKey } from './middleware.ts';
import { openApi } from './openapi.ts';
import type { BodyLimits } from './openapi.ts';

type Handler = (request: Request, response: Response) => unknown;

/** GET (or POST) only: any other method of the path is a JSON 405. `guards` come before the handler. */
export function addRoute(router: IRouter, method: 'get' | 'post', path: string, handler: Handler, ...guards: RequestHandler[]): void {
  const allow = method === 'get' ? 'GET, HEAD, OPTIONS' : 'POST, OPTIONS';
  router[method](path, ...guards, handler);
  router.all(path, (request) => {
    throw new HttpError(405, 'method_not_allowed', `${request.method} is not allowed here; allowed: ${allow}`, { headers: { allow } });
  });
}

/** /health and its aliases, /livez, /metrics, /get_server_info, /openapi.json: answered from this process's memory; only /health_generate waits for the engine. */
export function addHealth(app: IRouter, context: ListenerContext, limits: () => BodyLimits): void {
  const { engine, metrics, options, task } = context;
  const health = (_request: Request, response: Response): void => {
    const problem = context.unhealthy();
    if (problem) throw problem;
    response.json({ status: 'ok' });
  };
  for (const path of ['/health', '/healthz', '/v1/health', '/readyz']) addRoute(app, 'get', path, health);
  for (const path of ['/livez', '/live']) addRoute(app, 'get', path, (_request, response) => response.json({ status: 'ok' }));
  if (task === 'chat') addRoute(app, 'get', '/health_generate', probe(context, health));
  addRoute(app, 'get', '/metrics', async (_request, response) => {
    const text = await metrics.registry.metrics();
    response.set('content-type', metrics.registry.contentType).end(text);
  });
  const info = (_request: Request, response: Response): void => {
    const { state } = engine.status();
    const loaded = state === 'loading' ? undefined : engine.info();
    const model = loaded?.models.find((candidate) => candidate.task === task);
    response.json({
      task,
      served_model_name: options.modelId,
      state,
      ...options.settings,
      adapter: model?.adapter ?? loaded?.adapter ?? null,
      ...(model?.memory && { memory: model.memory }),
      ...(model?.ranks && { ranks: model.ranks }),
      status: engine.status(),
    });
  };
  for (const path of ['/get_server_info', '/server_info']) addRoute(app, 'get', path, info, requireAdminKey(context));
  const { modelId, aliases = [], modelOptional = false, apiKey, adminKey } = options;
  const document = {
    task,
    models: [modelId, ...aliases],
    modelOptional,
    hasKey: apiKey !== undefined,
    hasAdminKey: adminKey !== undefined,
  };
  addRoute(app, 'get', '/openapi.json', (_request, response) => response.json(openApi({ ...document, ...limits() })));
}

/** How long the probe's token may take. */
const PROBE_MS = 20_000;

/** Answers as `health` does while the model works, and makes it generate one token while it is idle. Probes at the same time share it. */
function probe({ engine }: ListenerContext, health: Handler): Handler {
  const generate = async (): Promise<void> => {
    const token: ChatRequest = { messages: [], prompt: [0], sampling: { temperature: 0 }, maxTokens: 1, ignoreEos: true };
    for await (const _ of engine.chat(token, AbortSignal.timeout(PROBE_MS)));
  };
  let running: Promise<void> | undefined;
  return async (request, response) => {
    const { running: busy, waiting, state } = engine.status();
    if (state === 'ready' && busy + waiting === 0) {
      running ??= generate().finally(() => (running = undefined));
      await running.catch(() => {
        throw deviceLost('the model does not generate');
      });
    }
    return health(request, response);
  };
}

/** /models lists this listener's model under all its names, also while it loads. */
export function addModels(router: IRouter, context: ListenerContext): void {
  const { options, created } = context;
  const describe = (id: string): Record<string, unknown> => {
    const model = context.model();
    const meta = model ? { architecture: model.architecture, parameters: model.parameters, weight_bytes: model.weightBytes } : null;
    return {
      id,
      object: 'model',
      created,
      owned_by: 'local',
      ...(model?.contextLength !== undefined && { max_model_len: model.contextLength }),
      ...(model?.sampling && { sampling: model.sampling }),
      meta,
    };
  };
  addRoute(router, 'get', '/models', (_request, response) =>
    response.json({ object: 'list', data: [options.modelId, ...(options.aliases ?? [])].map(describe) }),
  );
  addRoute(router, 'get', '/models/*id', (request, response) => {
    const id = ([] as string[]).concat(request.params['id'] ?? []).join('/');
    context.checkModel(id);
    response.json(describe(id));
  });
}
