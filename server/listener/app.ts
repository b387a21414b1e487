/**
 * The Express app that every listener is made from: request ids, origin and key checks, health, models, metrics, and JSON errors for every path and
 * method.
 */
import express from 'express';
import type { Express, RequestHandler, Response } from 'express';
import { hasKey, requireAdmin, requireEitherKey, requireKey } from './guards.ts';
import { healthRoutes, metricsRoute, modelRoutes } from './common-routes.ts';
import { localsOf } from './context.ts';
import type { ListenerContext } from './context.ts';
import { HttpError } from '../http/errors.ts';
import { checkHost, cors, identify, sendError } from './middleware.ts';
import { describeAnswers, documentSchema, openApi } from '../http/openapi.ts';
import type { DescribedAnswers, OpenApiDocument } from '../http/openapi.ts';
import { playground } from './playground.ts';
import { JSON_TYPE, isPrefixed, mount, refuseOtherMethods } from '../http/route.ts';
import type { Route } from '../http/route.ts';
import { BESIDE_PAGE } from '../setup/layout.mjs';
import { workerRoutes } from './worker-routes.ts';

/**
 * Makes a listener's app from its own routes and the common ones, each mounted behind the guards of its `access`. Routes under /v1 are also served without that
 * prefix, after the files of the playground.
 */
export function createApp(context: ListenerContext, own: readonly Route[]): Express {
  const { staticFolder } = context.options;
  const routes: readonly Route[] = [
    ...healthRoutes(context),
    metricsRoute(context),
    ...workerRoutes(context),
    documentRoute(context, () => routes),
    ...modelRoutes(context),
    ...own,
  ];
  const app = express();
  app.disable('x-powered-by').disable('etag').set('query parser', 'simple');
  app.use(identify(context), checkHost(context), cors(context));
  const router = express.Router({ caseSensitive: true });
  router.use(requireKey(context));
  const admin = express.Router({ caseSensitive: true });
  // Admin and worker routes come before the router that asks for the key, because the admin key opens them too.
  const floor = ({ access }: Route) => (access === 'admin-acts' || access === 'worker' ? admin : router);
  for (const route of routes) {
    const guards = route.access === 'admin-acts' ? [requireAdmin(context)] : route.access === 'worker' ? [requireEitherKey(context)] : [];
    const known: RequestHandler = (_request, response, next) => {
      localsOf(response).route = route;
      next();
    };
    mount(isPrefixed(route) ? floor(route) : app, route, ...guards, known);
  }
  for (const route of routes) {
    const others = routes.filter((other) => other !== route && other.path === route.path);
    refuseOtherMethods(isPrefixed(route) ? floor(route) : app, [route, ...others]);
  }
  app.use('/v1', admin, router);
  if (staticFolder !== undefined) app.use(playground(staticFolder, BESIDE_PAGE));
  app.use(admin, router);
  app.use((request) => {
    throw new HttpError(
      404,
      'unknown_url',
      `there is no ${request.method} ${request.path.slice(0, 200)} here${whereInstead(request.path)}`,
    );
  });
  app.use(sendError(context));
  return app;
}

/**
 * Hints for 404s of clients that use one base URL for all three tasks, another API than OpenAI's (a newer one of OpenAI's, Anthropic's, Ollama's, llama.cpp's, whisper.cpp's),
 * or a misspelt path. The first that matches is given.
 */
const ELSEWHERE: readonly (readonly [RegExp, string])[] = [
  [/^(\/v1)?\/(chat\/)?completions$/, 'the chat listener has it (--port)'],
  [/^(\/v1)?\/audio\/(speech|voices)$/, 'the speech listener has it (--speech-port)'],
  [/^(\/v1)?\/audio\/(transcriptions|translations)$/, 'the transcription listener has it (--transcription-port)'],
  [/^(\/v1)?\/responses(\/|$)/, 'the Responses API is not served; POST /v1/chat/completions is'],
  [/^(\/v1)?\/messages(\/|$)/, "Anthropic's Messages API is not served; POST /v1/chat/completions is"],
  [/^(\/v1)?\/realtime(\/|$)/, 'the Realtime API is not served'],
  [/^(\/v1)?\/embeddings$/, 'embeddings are not served'],
  [/^\/api\/(chat|generate|embed|ps|show|tags|version)$/, "Ollama's API is not served; OpenAI's is, under /v1"],
  [/^\/(completion|generate)$/, 'POST /v1/completions continues a prompt'],
  [/^\/inference$/, 'POST /v1/audio/transcriptions transcribes'],
  [/^\/(v1\/?)?$/, 'the API is under /v1; GET /v1/models lists the models'],
  [/^\/v1\/v1\//, 'the base URL has /v1 twice'],
  [/\/\//, 'the path has // where / is meant; perhaps the base URL ends in /'],
  [/\/(completions|models|audio\/(speech|transcriptions|translations))$/, 'the base URL ends in /v1, which follows the port'],
];

function whereInstead(path: string): string {
  const [, hint] = ELSEWHERE.find(([pattern]) => pattern.test(path)) ?? [];
  return hint === undefined ? '' : `: ${hint}`;
}

function documentRoute({ task, options }: ListenerContext, routes: () => readonly Route[]): Route {
  const document = { title: `Parley: ${task}`, hasKey: hasKey(options), hasAdminKey: options.adminKey !== undefined };
  let answers: DescribedAnswers | undefined;
  return {
    method: 'get',
    path: '/openapi.json',
    summary: 'This document',
    tags: ['server'],
    access: 'open',
    answers: { [JSON_TYPE]: documentSchema },
    handler: (_request, response: Response<OpenApiDocument>) => {
      answers ??= describeAnswers(routes());
      response.json(openApi(routes(), answers, document));
    },
  };
}
