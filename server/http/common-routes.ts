/** The routes every listener has besides its own. */
import type { Request, Response } from 'express';
import type { ChatRequest } from '../../engine/api.ts';
import type { ListenerContext } from './context.ts';
import { deviceLost } from './errors.ts';
import type { Handler, Route } from './route.ts';

/** /health and its aliases, /livez: answered from this process's memory; only /health_generate waits for the engine. */
export function healthRoutes(context: ListenerContext): Route[] {
  const health = (_request: Request, response: Response): void => {
    const problem = context.unhealthy();
    if (problem) throw problem;
    response.json({ status: 'ok' });
  };
  const alive: Handler = (_request, response) => response.json({ status: 'ok' });
  const open = (path: string, summary: string, handler: Handler): Route => ({
    method: 'get',
    path,
    summary,
    tags: ['health'],
    access: 'open',
    handler,
  });
  return [
    ...['/health', '/healthz', '/v1/health', '/readyz'].map((path) => open(path, 'Whether requests can be served', health)),
    ...['/livez', '/live'].map((path) => open(path, 'Whether the process lives', alive)),
    ...(context.task === 'chat' ? [open('/health_generate', 'Whether the model generates a token', probe(context, health))] : []),
  ];
}

/** /metrics and /get_server_info. */
export function informationRoutes({ engine, metrics, options, task }: ListenerContext): Route[] {
  const info: Handler = (_request, response) => {
    const { state } = engine.status();
    const loaded = state === 'loading' ? undefined : engine.info();
    const model = loaded?.models.find((candidate) => candidate.task === task);
    response.json({
      task,
      served_model_name: options.modelId,
      state,
      ...options.settings,
      adapter: model?.adapter ?? loaded?.adapter ?? null,
      ...(loaded?.memory && { memory_plan: loaded.memory }),
      ...(model?.memory && { memory: model.memory }),
      ...(model?.ranks && { ranks: model.ranks }),
      status: engine.status(),
    });
  };
  return [
    {
      method: 'get',
      path: '/metrics',
      summary: 'Prometheus metrics',
      tags: ['server'],
      access: 'open',
      answers: ['text/plain'],
      handler: async (_request, response) => {
        const text = await metrics.registry.metrics();
        response.set('content-type', metrics.registry.contentType).end(text);
      },
    },
    ...['/get_server_info', '/server_info'].map((path): Route => ({
      method: 'get',
      path,
      summary: 'Settings, adapter and counters',
      tags: ['server'],
      access: 'admin-reads',
      handler: info,
    })),
  ];
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
export function modelRoutes(context: ListenerContext): Route[] {
  const describe = (id: string): Record<string, unknown> => {
    const model = context.model();
    const meta = model
      ? {
          architecture: model.architecture,
          parameters: model.parameters,
          weight_bytes: model.weightBytes,
          ...(model.format !== undefined && { format: model.format }),
          ...(model.sampleRate !== undefined && { sample_rate: model.sampleRate }),
          ...(model.languages && { languages: model.languages }),
        }
      : null;
    return {
      id,
      object: 'model',
      created: context.created,
      owned_by: 'local',
      ...(model?.contextLength !== undefined && { max_model_len: model.contextLength }),
      ...(model?.sampling && { sampling: model.sampling }),
      meta,
    };
  };
  return [
    {
      method: 'get',
      path: '/v1/models',
      summary: "The listener's model under all its names",
      tags: ['models'],
      handler: (_request, response) => response.json({ object: 'list', data: context.names.models.map(describe) }),
    },
    {
      method: 'get',
      path: '/v1/models/*id',
      summary: 'One model',
      tags: ['models'],
      handler: (request, response) => {
        const id = ([] as string[]).concat(request.params['id'] ?? []).join('/');
        context.checkModel(id);
        response.json(describe(id));
      },
    },
  ];
}
