/** Guards of routes: checks of API keys, and of callers on this machine. */
import { timingSafeEqual } from 'node:crypto';
import type { NextFunction, Request, Response } from 'express';
import { addNote, localsOf } from './context.ts';
import type { AppOptions, ListenerContext } from './context.ts';
import { HttpError } from '../http/errors.ts';
import { isLoopback } from '../http/origin.ts';
import { digestOf } from '../access/keys.ts';

export type Guard = (request: Request, response: Response, next: NextFunction) => void;

const pass: Guard = (_request, _response, next) => next();

/** The bearer token of a request; the scheme's name is case-insensitive. */
const givenKey = (request: Request): string | undefined => /^bearer +(.*)$/i.exec(request.get('authorization') ?? '')?.[1];

/** Whether `given` is one of the keys. All are compared, in constant time, so that timing reveals nothing. */
function isKey(given: string | undefined, keys: readonly (string | undefined)[]): boolean {
  if (given === undefined) return false;
  return keys.filter((key) => key !== undefined && timingSafeEqual(digestOf(given), digestOf(key))).length > 0;
}

/** Whether the listener requires a key. */
export const hasKey = ({ apiKey, keys }: AppOptions): boolean => apiKey !== undefined || keys !== undefined;

function unauthorized(given: string | undefined): HttpError {
  return new HttpError(401, 'invalid_api_key', 'a valid API key is required: Authorization: Bearer <key>', {
    type: 'authentication_error',
    headers: { 'www-authenticate': `Bearer realm="parley"${given === undefined ? '' : ', error="invalid_token"'}` },
  });
}

/** A guard that answers 401 unless the request has one of `keys` or, `withRing`, a key of the key file; the limits of the latter are left in the locals. */
function requireOneOf(options: AppOptions, keys: readonly (string | undefined)[], withRing: boolean): Guard {
  return (request, response, next) => {
    const given = givenKey(request);
    const use = given !== undefined && withRing ? options.keys?.find(given) : undefined;
    if (!isKey(given, keys) && !use) throw unauthorized(given);
    if (use) {
      localsOf(response).keyUse = use;
      addNote(response, { key: use.name });
    }
    next();
  };
}

/** Guard of the models' routes: any key of the listener, if it has one. */
export function requireKey({ options }: ListenerContext): Guard {
  return hasKey(options) ? requireOneOf(options, [options.apiKey], true) : pass;
}

/** Guard of the routes for routers: any key of the listener, or the admin key. */
export function requireEitherKey({ options }: ListenerContext): Guard {
  return hasKey(options) ? requireOneOf(options, [options.apiKey, options.adminKey], true) : pass;
}

/** The key of the admin routes: --admin-key, else --api-key. Keys of a key file do not administer. */
const adminKey = ({ options }: ListenerContext): string | undefined => options.adminKey ?? options.apiKey;

/** Whether a request may see settings and counters. That takes the admin key; without one, everybody may or, if there is a key file, callers on this machine. */
export function mayAdminister(context: ListenerContext, request: Request): boolean {
  const key = adminKey(context);
  if (key !== undefined) return isKey(givenKey(request), [key]);
  return context.options.keys === undefined || isLocal(request);
}

/** Guard of the admin routes, which affect other people's requests: the admin key or, if there is none, a caller on this machine. */
export function requireAdmin(context: ListenerContext): Guard {
  const key = adminKey(context);
  if (key !== undefined) return requireOneOf(context.options, [key], false);
  return (request, _response, next) => {
    if (isLocal(request)) return next();
    const message = 'without --api-key or --admin-key this route answers callers on its own machine only';
    throw new HttpError(403, 'loopback_only', message, { type: 'permission_error' });
  };
}

/** Headers that a proxy adds: they show that the caller is not on this machine, and cannot be trusted to say who it is. */
const FORWARDED = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip'];

const isLocal = (request: Request): boolean =>
  isLoopback(request.socket.remoteAddress ?? '') && FORWARDED.every((name) => request.get(name) === undefined);
