/** A route as one object: the app mounts it, and /openapi.json describes it. */
import type { IRouter, Request, RequestHandler, Response } from 'express';
import { HttpError } from './errors.ts';

export type Json = Readonly<Record<string, unknown>>;

/** Content types of bodies and answers. */
export const JSON_TYPE = 'application/json';
export const EVENT_TYPE = 'text/event-stream';

export type Handler = (request: Request, response: Response) => unknown;

export interface Route {
  readonly method: 'get' | 'post';
  /** In Express's spelling. A path under /v1 also answers without that prefix, unless the route is open. */
  readonly path: string;
  /** One sentence without its full stop. */
  readonly summary: string;
  readonly tags: readonly string[];
  /**
   * Who may call it: `key` (the default) = whoever has the key, if there is one; `open` = everybody; `admin-reads` = whoever has the admin
   * key, or the key; `admin-acts` = the same, and without any key only callers on this machine.
   */
  readonly access?: 'key' | 'open' | 'admin-reads' | 'admin-acts';
  /** JSON Schema of the body, by content type; asked for when the document is, because a loaded model says more. */
  readonly body?: () => Readonly<Record<string, Json>>;
  /** Content types of a 200; default: JSON. */
  readonly answers?: readonly string[];
  readonly handler: Handler;
}

const PREFIX = '/v1';

/** Whether it is part of the API, and so answers under /v1 and without it. */
export const isPrefixed = ({ path, access }: Route): boolean => path.startsWith(`${PREFIX}/`) && access !== 'open';

/** Mounts a route, with guards before its handler. Any other method of its path is a JSON 405. */
export function mount(router: IRouter, route: Route, ...guards: RequestHandler[]): void {
  const { method, handler } = route;
  const path = isPrefixed(route) ? route.path.slice(PREFIX.length) : route.path;
  const allow = method === 'get' ? 'GET, HEAD, OPTIONS' : 'POST, OPTIONS';
  router[method](path, ...guards, handler);
  router.all(path, (request) => {
    throw new HttpError(405, 'method_not_allowed', `${request.method} is not allowed here; allowed: ${allow}`, { headers: { allow } });
  });
}
