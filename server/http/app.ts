/**
 * What the three listeners have in common: one Express app with request ids, origin and key checks, health, models, metrics, JSON
 * errors for every path and method.
 */
import express from 'express';
import type { Express, IRouter } from 'express';
import { addHealth, addModels } from './common-routes.ts';
import type { AdminRoutes, ListenerContext } from './context.ts';
import { HttpError } from './errors.ts';
import { checkHost, cors, identify, requireAdmin, requireKey, sendError } from './middleware.ts';
import type { BodyLimits } from './openapi.ts';
import { playground } from './playground.ts';

/**
 * A listener's app. `addRoutes` gets a router that is mounted under /v1 and, as an alias, at the root; and another for routes that change
 * other people's requests, each of which begins with `guard`.
 * `limits` are what /openapi.json says of the bodies besides their schemas.
 */
export function createApp(
  context: ListenerContext,
  addRoutes: (router: IRouter, admin: AdminRoutes) => void,
  limits: () => BodyLimits = () => ({}),
): Express {
  const app = express();
  app.disable('x-powered-by').disable('etag').set('query parser', 'simple');
  app.use(identify(context), checkHost(context), cors(context));
  addHealth(app, context, limits);
  const router = express.Router({ caseSensitive: true });
  if (context.options.apiKey !== undefined) router.use(requireKey(context.options.apiKey));
  addModels(router, context);
  const admin = express.Router({ caseSensitive: true });
  addRoutes(router, { router: admin, guard: requireAdmin(context) });
  app.use('/v1', admin, router);
  if (context.options.staticFolder !== undefined) app.use(playground(context.options.staticFolder));
  app.use(admin, router);
  app.use((request) => {
    throw new HttpError(404, 'unknown_url', `there is no ${request.method} ${request.path.slice(0, 200)} here`);
  });
  app.use(sendError(context));
  return app;
}
