/** The middleware of every listener: request id and log line, host and origin checks, and JSON errors. */
import { randomUUID } from 'node:crypto';
import type { NextFunction, Request, Response } from 'express';
import { localsOf, noteFailure } from './context.ts';
import type { ListenerContext } from './context.ts';
import { HttpError, toHttpError } from '../http/errors.ts';
import { discardRest } from './listen.ts';
import { DEFAULT_ORIGIN_RULES, hostOf, isHostAllowed, isOriginAllowed } from '../http/origin.ts';

/** Routes that probes, scrapers and routers poll every few seconds; logged at level `debug` only. */
const POLLED = /^(?:\/v1)?\/(?:health\w*|readyz|livez?|metrics|loads|get_load|is_sleeping)$/;

/** Sets the request id and the common headers; when the response has ended, logs it, counts it and traces it. */
export function identify({ log, requestLog, metrics, lifecycle, options: { tracer, modelId } }: ListenerContext) {
  return (request: Request, response: Response, next: NextFunction): void => {
    const started = performance.now();
    const given = request.get('x-request-id');
    const id = given !== undefined && /^[\x21-\x7e]{1,128}$/.test(given) ? given : randomUUID();
    response.set({ 'x-request-id': id, 'cache-control': 'no-store' });
    if (lifecycle.state !== 'serving') response.set('connection', 'close');
    response.on('close', () => {
      const seconds = (performance.now() - started) / 1000;
      // The route's pattern, never the path, which could carry content.
      const { unmatched = false, traced, note = {}, failure, route: found } = localsOf(response);
      const status = failure ?? (response.writableFinished ? response.statusCode : 499);
      const route = unmatched ? 'unmatched' : String(request.route?.path ?? 'unmatched');
      metrics.finished({ route, status, seconds, isGeneration: found?.generates !== undefined });
      if (tracer && traced && found?.generates) {
        const [ended, traceparent] = [performance.now(), request.get('traceparent')];
        tracer.request({
          route,
          generates: found.generates,
          method: request.method,
          model: modelId,
          status,
          traceparent,
          ...traced,
          ended,
          note,
        });
      }
      const entry = { id, method: request.method, route, status, ms: Math.round(seconds * 1000), ...note };
      if (POLLED.test(route)) log.debug(entry);
      else requestLog.info(entry);
    });
    next();
  };
}

/**
 * Checks the Host header: 400 unless there is exactly one (HTTP/1.0 may have none), 403 for a name that a stranger's DNS could have pointed here (DNS rebinding, against which a
 * key does not help, because the browser would send it along). Also 417 for an Expect header other than 100-continue.
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
      throw new HttpError(403, 'host_not_allowed', describeHost(hosts[0] ?? ''), { type: 'permission_error' });
    }
    const expected = request.get('expect');
    if (expected !== undefined && expected.toLowerCase() !== '100-continue') {
      throw new HttpError(417, 'expectation_failed', `Expect can only be 100-continue, got '${expected.slice(0, 100)}'`);
    }
    next();
  };
}

/** Most characters of a Host header that are quoted. */
const SHOWN_HOST = 100;

function describeHost(header: string): string {
  const host = hostOf(header);
  if (host === undefined) return `'${header.slice(0, SHOWN_HOST)}' is no host name`;
  const name = host.slice(0, SHOWN_HOST);
  return `'${name}' is not a host name of this server; --allowed-hosts ${name} allows it`;
}

const EXPOSED =
  'x-request-id, retry-after, retry-after-ms, x-should-retry, x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests, x-ratelimit-limit-tokens, x-ratelimit-remaining-tokens, x-ratelimit-reset-tokens, content-disposition, x-speech-seed, x-parley-warning';

/** CORS: sets headers for allowed origins, answers every preflight, and refuses (403) other methods than GET and HEAD from other origins. */
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

/** Headers that describe the body that was to be sent; they are removed when an error takes its place. */
const OF_THE_ANSWER = ['content-disposition', 'content-encoding', 'content-type', 'accept-ranges', 'etag', 'last-modified'];

/** Express's error handler: sends the error as JSON. If the response has begun, its connection is closed; handlers of streams report their own errors. */
export function sendError({ log }: ListenerContext) {
  return (error: unknown, request: Request, response: Response, _next: NextFunction): void => {
    const http =
      error instanceof URIError ? new HttpError(404, 'unknown_url', 'the path is not valid percent-encoding') : toHttpError(error);
    noteFailure(log, response, http);
    localsOf(response).unmatched = http.code === 'unknown_url';
    if (response.headersSent || response.destroyed) {
      response.destroy();
      return;
    }
    for (const name of OF_THE_ANSWER) response.removeHeader(name);
    response.status(http.status).set('cache-control', 'no-store').set(http.headers).json(http.body);
    if (!request.complete) discardRest(request);
  };
}
