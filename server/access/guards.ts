/** Who may call a route: the checks of keys, and of callers on this machine. */
import { timingSafeEqual } from 'node:crypto';
import type { NextFunction, Request, Response } from 'express';
import type { AppOptions, ListenerContext } from '../http/context.ts';
import { HttpError } from '../http/errors.ts';
import { isLoopback } from '../http/origin.ts';
import { digestOf } from './keys.ts';

export type Guard = (request: Request, response: Response, next: NextFunction) => void;

const pass: Guard = (_request, _response, next) => next();

/** The key of a request; a scheme's name has no case. */
const givenKey = (request: Request): string | undefined => /^bearer +(.*)$/i.exec(request.get('authorization') ?? '')?.[1];

/** Whether it is one of the keys; all are compared, so that the time tells nothing. */
function isKey(given: string | undefined, keys: readonly (string | undefined)[]): boolean {
  if (given === undefined) return false;
  return keys.filter((key) => key !== undefined && timingSafeEqual(digestOf(given), digestOf(key))).length > 0;
}

/** Whether a key is needed at all. */
export const hasKey = ({ apiKey, keys }: AppOptions): boolean => apiKey !== undefined || keys !== undefined;

function unauthorized(given: string | undefined): HttpError {
  return new HttpError(401, 'invalid_api_key', 'a valid API key is required: Authorization: Bearer <key>', {
    type: 'authentication_error',
    headers: { 'www-authenticate': `Bearer realm="parley"${given === undefined ? '' : ', error="invalid_token"'}` },
  });
}

/** 401 without one of these keys, or of `options.keys`, whose use of them is left with the response. */
function requireOneOf(options: AppOptions, keys: readonly (string | undefined)[], withRing: boolean): Guard {
  return (request, response, next) => {
    const given = givenKey(request);
    const use = given !== undefined && withRing ? options.keys?.find(given) : undefined;
    if (!isKey(given, keys) && !use) throw unauthorized(given);
    if (use) {
      response.locals['keyUse'] = use;
      response.locals['note'] = { ...response.locals['note'], key: use.name };
    }
    next();
  };
}

/** For everybody who may use the models. */
export function requireKey({ options }: ListenerContext): Guard {
  return hasKey(options) ? requireOneOf(options, [options.apiKey], true) : pass;
}

/** For what a router asks of its worker: the admin key opens it too. */
export function requireEitherKey({ options }: ListenerContext): Guard {
  return hasKey(options) ? requireOneOf(options, [options.apiKey, options.adminKey], true) : pass;
}

/** The key of the admin routes: their own, else the one for everything. Those of a file administer nothing. */
const adminKey = ({ options }: ListenerContext): string | undefined => options.adminKey ?? options.apiKey;

/** Whether a request comes with what the settings and counters need: the admin key, or from this machine where only a file has keys. */
export function mayAdminister(context: ListenerContext, request: Request): boolean {
  const key = adminKey(context);
  if (key !== undefined) return isKey(givenKey(request), [key]);
  return context.options.keys === undefined || isLocal(request);
}

/** For what changes other people's requests: the admin key, or without one a caller on this machine. */
export function requireAdmin(context: ListenerContext): Guard {
  const key = adminKey(context);
  if (key !== undefined) return requireOneOf(context.options, [key], false);
  return (request, _response, next) => {
    if (isLocal(request)) return next();
    const message = 'without --api-key or --admin-key this route answers callers on its own machine only';
    throw new HttpError(403, 'loopback_only', message, { type: 'permission_error' });
  };
}

/** What a proxy adds says that the caller is somebody else, and cannot be trusted to say who. */
const FORWARDED = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip'];

const isLocal = (request: Request): boolean =>
  isLoopback(request.socket.remoteAddress ?? '') && FORWARDED.every((name) => request.get(name) === undefined);
