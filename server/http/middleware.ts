/** The layers every request passes: identity and log line, host and origin checks, and the JSON error at the end. */
import { randomUUID } from 'node:crypto';
import type { NextFunction, Request, Response } from 'express';
import type { ListenerContext } from './context.ts';
import { HttpError, toHttpError } from './errors.ts';
import { DEFAULT_ORIGIN_RULES, isHostAllowed, isOriginAllowed } from './origin.ts';

/** What is asked every few seconds, by probes, scrapers and routers: in the log at its level `debug` only. */
const POLLED = /^(?:\/v1)?\/(?:health\w*|readyz|livez?|metrics|loads|get_load|is_sleeping)$/;

/** Request id, common headers, and one log line and one count when the answer is over. */
export function identify({ log, requestLog, metrics, lifecycle, options: { tracer, modelId } }: ListenerContext) {
  return (request: Request, response: Response, next: NextFunction): void => {
    const started = performance.now();
    const given = request.get('x-request-id');
    const id = given !== undefined && /^[\x21-\x7e]{1,128}$/.test(given) ? given : randomUUID();
    response.set({ 'x-request-id': id, 'cache-control': 'no-store' });
    if (lifecycle.state !== 'serving') response.set('connection', 'close');
    response.on('close', () => {
      const seconds = (performance.now() - started) / 1000;
      const status = response.writableFinished ? response.statusCode : 499;
      // The pattern, never the path: a path could carry content.
      const route = response.locals['unmatched'] === true ? 'unmatched' : String(request.route?.path ?? 'unmatched');
      metrics.finished({ route, status, seconds, isGeneration: response.locals['isGeneration'] === true });
      const { traced, note = {} } = response.locals;
      if (tracer && traced && response.locals['isGeneration'] === true) {
        const [ended, traceparent] = [performance.now(), request.get('traceparent')];
        tracer.request({
          route,
          method: request.method,
          model: modelId,
          status,
          traceparent,
          ...traced,
          ended,
          note,
        });
      }
      const entry = { id, method: request.method, route, status, ms: Math.round(seconds * 1000), ...response.locals['note'] };
      if (POLLED.test(route)) log.debug(entry);
      else requestLog.info(entry);
    });
    next();
  };
}

/**
 * 400 for a request without one Host, 403 for a Host header that a stranger's DNS could have pointed here: a key is no protection where a
 * browser would send it along. 417 for what the client expects besides 100-continue.
 */
export function checkHost({ options: { origins = DEFAULT_ORIGIN_RULES } }: ListenerContext) {
  return (request: Request, _response: Response, next: NextFunction): void => {
    const hosts = request.headersDistinct['host'] ?? [];
    if (hosts.length > 1 || (hosts.length === 0 && request.httpVersion === '1.1')) {
      throw new HttpError(
        400,
        'invalid_value',
        `a request must have one Host header, this has ${hosts.length === 0 ? 'none' : hosts.length}`,
      );
    }
    if (!isHostAllowed(hosts[0] ?? '', origins)) {
      throw new HttpError(403, 'host_not_allowed', 'this host name is not served; see --allowed-hosts', { type: 'permission_error' });
    }
    const expected = request.get('expect');
    if (expected !== undefined && expected.toLowerCase() !== '100-continue') {
      throw new HttpError(417, 'expectation_failed', `Expect can only be 100-continue, got '${expected.slice(0, 100)}'`);
    }
    next();
  };
}

const EXPOSED =
  'x-request-id, retry-after, retry-after-ms, x-should-retry, x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests, x-ratelimit-limit-tokens, x-ratelimit-remaining-tokens, x-ratelimit-reset-tokens, content-disposition, x-speech-seed, x-parley-warning';

/** CORS headers for allowed origins, every preflight answered, and 403 for writes by pages of other origins. */
export function cors({ options: { origins = DEFAULT_ORIGIN_RULES } }: ListenerContext) {
  return (request: Request, response: Response, next: NextFunction): void => {
    const origin = request.get('origin');
    const allowed = origin === undefined || isOriginAllowed(origin, request.get('host') ?? '', origins);
    response.vary('origin');
    if (origin !== undefined && allowed) {
      response.set({ 'access-control-allow-origin': origin, 'access-control-expose-headers': EXPOSED });
    }
    if (request.method === 'OPTIONS') {
      if (allowed) preflight(request, response);
      response.status(204).end();
    } else if (allowed || request.method === 'GET' || request.method === 'HEAD') next();
    else
      throw new HttpError(403, 'origin_not_allowed', 'this origin may not use the server; see --cors-origin', { type: 'permission_error' });
  };
}

/** The official clients send x-stainless-* headers, so the asked-for list is echoed; a fixed one would break them. */
function preflight(request: Request, response: Response): void {
  const asked = request.get('access-control-request-headers');
  response.set({ 'access-control-allow-methods': 'GET,POST,OPTIONS', 'access-control-max-age': '600' });
  if (asked !== undefined) response.set('access-control-allow-headers', asked);
  if (request.get('access-control-request-private-network') === 'true') response.set('access-control-allow-private-network', 'true');
}

/** Headers of what would have been answered; the error is another body. */
const OF_THE_ANSWER = ['content-disposition', 'content-encoding', 'content-type', 'accept-ranges', 'etag', 'last-modified'];

/** Every error that reaches Express, as JSON; what happens after the first byte is the handlers' own business. */
export function sendError({ log }: ListenerContext) {
  return (error: unknown, request: Request, response: Response, _next: NextFunction): void => {
    const http =
      error instanceof URIError ? new HttpError(404, 'unknown_url', 'the path is not valid percent-encoding') : toHttpError(error);
    response.locals['note'] = { ...response.locals['note'], code: http.code };
    response.locals['unmatched'] = http.code === 'unknown_url';
    if (http.code === 'internal_error' && !response.destroyed) {
      log.error({ id: response.get('x-request-id'), stack: http.cause instanceof Error ? http.cause.stack : undefined }, 'bug');
    }
    if (response.headersSent || response.destroyed) {
      response.destroy();
      return;
    }
    for (const name of OF_THE_ANSWER) response.removeHeader(name);
    response.status(http.status).set('cache-control', 'no-store').set(http.headers).json(http.body);
    if (!request.complete) drainRest(request);
  };
}

/** Bytes of a refused body that are still read, and for how long, so that its sender gets to read the answer. */
const DRAIN_BYTES = 64 << 20;
const DRAIN_MS = 10_000;

function drainRest(request: Request): void {
  let left = DRAIN_BYTES;
  const timer = setTimeout(() => request.destroy(), DRAIN_MS);
  request.on('data', (chunk: Buffer) => (left -= chunk.length) < 0 && request.destroy());
  request.on('close', () => clearTimeout(timer));
  request.resume();
}
