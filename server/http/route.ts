/** Routes as objects: the app mounts them, and /openapi.json is generated from them. */
import type { IRouter, Request, RequestHandler, Response } from 'express';
import { HttpError } from './errors.ts';
import type { Answers } from './answers.ts';

export type Json = Readonly<Record<string, unknown>>;

/** Content types of bodies and answers. */
export const JSON_TYPE = 'application/json';
export const EVENT_TYPE = 'text/event-stream';

export type Handler = (request: Request, response: Response) => unknown;

export interface Route {
  readonly method: 'get' | 'post';
  /** In Express's syntax. A path under /v1 is also served without that prefix, unless `access` is `open`. */
  readonly path: string;
  /** One sentence without its full stop. */
  readonly summary: string;
  readonly tags: readonly string[];
  /**
   * Who may call it: `key` (the default) = whoever has the key, if there is one; `open` = everybody; `worker` = the same as `key`, and whoever has the
   * admin key; `admin-acts` = whoever has the admin key, or the key where that is the only one, and without any key only callers on this machine.
   */
  readonly access?: 'key' | 'open' | 'worker' | 'admin-acts';
  /** JSON Schema of the body by content type; a function, because more is known once the model is loaded. */
  readonly body?: () => Readonly<Record<string, Json>>;
  /** JSON Schemas of the query parameters, by name. */
  readonly query?: Json;
  /** Schemas of successful answers by content type. */
  readonly answers: Answers;
  /** What the model is asked for; absent = nothing. Requests that ask for something are counted and traced. */
  readonly generates?: Generation;
  readonly handler: Handler;
}

/** What a route has a model make, in the words of OpenTelemetry's conventions, which have no operations for speech and transcription. */
export interface Generation {
  /** `gen_ai.operation.name`. */
  readonly operation: string;
  /** `gen_ai.output.type`. */
  readonly output: 'text' | 'speech';
}

const PREFIX = '/v1';

/** Whether a route belongs to the API, which is served under /v1 and without that prefix. */
export const isPrefixed = ({ path, access }: Route): boolean => path.startsWith(`${PREFIX}/`) && access !== 'open';

const mountedPath = (route: Route): string => (isPrefixed(route) ? route.path.slice(PREFIX.length) : route.path);

/** Mounts a route, with guards before its handler. */
export function mount(router: IRouter, route: Route, ...guards: RequestHandler[]): void {
  router[route.method](mountedPath(route), ...guards, route.handler);
}

/** Answers any method that no route of a path has with a JSON 405. */
export function refuseOtherMethods(router: IRouter, routes: readonly [Route, ...Route[]]): void {
  const methods = new Set(routes.map(({ method }) => method));
  const allow = [...(methods.has('get') ? ['GET', 'HEAD'] : []), ...(methods.has('post') ? ['POST'] : []), 'OPTIONS'].join(', ');
  router.all(mountedPath(routes[0]), (request) => {
    throw new HttpError(405, 'method_not_allowed', `${request.method} is not allowed here; allowed: ${allow}`, { headers: { allow } });
  });
}
