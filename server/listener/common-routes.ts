/** The routes that every listener has: health, metrics, models. */
import type { Request, Response } from 'express';
import { z } from 'zod';
import type { ChatRequest } from '../../engine/api.ts';
import { TRANSCRIPTION_RATE } from '../../engine/audio/sample-source.ts';
import type { ListenerContext } from './context.ts';
import { deviceLost } from '../http/errors.ts';
import { JSON_TYPE } from '../http/route.ts';
import type { Handler, Route } from '../http/route.ts';
import { byteCount, count, named, statusSchema, unixTime } from '../http/answers.ts';
import type { Sent, StatusAnswer } from '../http/answers.ts';

/** /health and /livez with their aliases, answered from this process's own state, and /health_generate, which makes the model compute. */
export function healthRoutes(context: ListenerContext): Route[] {
  const health = (_request: Request, response: Response<StatusAnswer>): void => {
    const problem = context.unhealthy();
    if (problem) throw problem;
    response.json({ status: 'ok' });
  };
  const alive = (_request: Request, response: Response<StatusAnswer>) => response.json({ status: 'ok' });
  const open = (path: string, summary: string, handler: Handler): Route => ({
    method: 'get',
    path,
    summary,
    tags: ['health'],
    access: 'open',
    answers: { [JSON_TYPE]: statusSchema },
    handler,
  });
  return [
    ...['/health', '/healthz', '/v1/health', '/readyz'].map((path) => open(path, 'Whether requests can be served', health)),
    ...['/livez', '/live'].map((path) => open(path, 'Whether the process lives', alive)),
    open('/health_generate', 'Whether the model computes', probe(context, health)),
  ];
}

/** /metrics. */
export function metricsRoute({ metrics }: ListenerContext): Route {
  return {
    method: 'get',
    path: '/metrics',
    summary: 'Prometheus metrics',
    tags: ['server'],
    access: 'open',
    answers: { 'text/plain': z.string() },
    handler: async (_request, response) => {
      const text = await metrics.registry.metrics();
      response.set('content-type', metrics.registry.contentType).end(text);
    },
  };
}

/** Time limit of a probe's computation, and the time for which its success is reused. */
const PROBE_MS = 20_000;
const PROBE_STANDS_MS = 5_000;

/** Samples of silence (0.1 s) that a transcription model is probed with. */
const PROBE_SAMPLES = TRANSCRIPTION_RATE / 10;

/** Asks the listener's model for the smallest possible piece of work. */
function leastWork(context: ListenerContext, signal: AbortSignal): AsyncIterable<unknown> {
  const { task, engine } = context;
  if (task === 'chat') {
    const token: ChatRequest = { messages: [], prompt: [0], sampling: { temperature: 0 }, maxTokens: 1, ignoreEos: true };
    return engine.chat(token, signal);
  }
  if (task === 'transcription') return engine.transcribe({ samples: new Float32Array(PROBE_SAMPLES), vad: false }, signal);
  return engine.synthesize({ text: 'a', voice: context.model()?.voices?.[0] ?? '' }, signal);
}

/**
 * Answers like `health` while requests are in flight. An idle model is made to compute first, at most every 5 s; concurrent probes share the computation.
 */
function probe(context: ListenerContext, health: Handler): Handler {
  let [running, worked]: [Promise<void> | undefined, number] = [undefined, -Infinity];
  const compute = async (): Promise<void> => {
    for await (const _ of leastWork(context, AbortSignal.timeout(PROBE_MS)));
    worked = performance.now();
  };
  return async (request, response) => {
    const isIdle = context.metrics.inFlight === 0 && !context.notReady();
    if (isIdle && performance.now() - worked > PROBE_STANDS_MS) {
      running ??= compute().finally(() => (running = undefined));
      await running.catch(() => {
        throw deviceLost('the model does not compute');
      });
    }
    return health(request, response);
  };
}

const modelSchema = named('Model', 'A name of the model, or a LoRA adapter of it', {
  id: z.string(),
  object: z.literal('model'),
  created: unixTime,
  owned_by: z.string(),
  root: z.string().describe('The id of the model that a name stands for'),
  parent: z.string().nullable().describe('Of a LoRA adapter: the model that it goes with'),
  max_model_len: count.optional().describe('Of a chat model: its context in tokens'),
  sampling: z
    .record(z.string(), z.number())
    .optional()
    .describe('Of a chat model: the values of sampling fields that a request leaves out'),
  meta: named('ModelMeta', 'The model as it was loaded', {
    architecture: z.string(),
    parameters: count,
    weight_bytes: byteCount,
    format: z.string().optional(),
    sample_rate: count.optional().describe('Of a speech model, in Hz'),
    languages: z.array(z.string()).optional(),
  })
    .nullable()
    .describe('Null while it is being loaded'),
});
type ModelAnswer = Sent<typeof modelSchema>;

const modelsSchema = named('ModelList', "The listener's model under all its names", {
  object: z.literal('list'),
  data: z.array(modelSchema),
});

/** /v1/models, which lists the listener's model under all its names (even while it loads), and /v1/models/{id}. */
export function modelRoutes(context: ListenerContext): Route[] {
  const describe = (id: string): ModelAnswer => {
    const model = context.model();
    const isLora = context.loraOf(id).lora !== undefined;
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
      // Routers recognise the protocol of a worker by this.
      owned_by: 'sglang',
      root: isLora ? id : context.options.modelId,
      // As in vLLM: the model that a LoRA adapter goes with.
      parent: isLora ? context.options.modelId : null,
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
      answers: { [JSON_TYPE]: modelsSchema },
      handler: (_request, response: Response<Sent<typeof modelsSchema>>) =>
        response.json({ object: 'list', data: context.names.models.map(describe) }),
    },
    {
      method: 'get',
      path: '/v1/models/*id',
      summary: 'One model',
      tags: ['models'],
      answers: { [JSON_TYPE]: modelSchema },
      handler: (request, response: Response<ModelAnswer>) => {
        // Like every other path, it may end in a slash.
        const id = ([] as string[])
          .concat(request.params['id'] ?? [])
          .join('/')
          .replace(/\/$/, '');
        context.checkModel(id);
        response.json(describe(id));
      },
    },
  ];
}
