/** Serves the built playground, with the headers that its `_headers` file sets, and compressed copies of text files where the client accepts them. */
import { existsSync, readFileSync } from 'node:fs';
import { extname, join, relative, sep } from 'node:path';
import express from 'express';
import type { NextFunction, Request, Response } from 'express';
import { HttpError } from '../http/errors.ts';
import { PACKED_SUFFIXES } from './packed.ts';

/** A rule of a `_headers` file: headers for the paths that match a pattern. */
interface HeaderRule {
  readonly pattern: RegExp;
  readonly headers: readonly (readonly [string, string])[];
}

/**
 * Makes middleware that serves the files of `folder` at `/` and those of other folders at the paths of `beside`. Requests for other paths and methods go to the
 * next handler.
 */
export function playground(folder: string, beside: Readonly<Record<string, readonly string[]>> = {}) {
  const rulesFile = join(folder, '_headers');
  const rules = existsSync(rulesFile) ? parseHeaderRules(readFileSync(rulesFile, 'utf8')) : [];
  const setHeaders = (response: Response, file: string): void => {
    const path = `/${relative(folder, file).split(sep).join('/')}`.replace(packedSuffix(response), '');
    // Browsers revalidate a cached file each time, unless a rule says otherwise.
    response.set('cache-control', 'no-cache').vary('accept-encoding');
    for (const { pattern, headers } of rules) if (pattern.test(path)) for (const [name, value] of headers) response.set(name, value);
  };
  const serve = express.Router();
  serve.use(express.static(folder, { redirect: false, setHeaders }));
  for (const [path, others] of Object.entries(beside))
    for (const other of others) serve.use(path, express.static(other, { redirect: false, index: false, setHeaders }));
  const files = (request: Request, response: Response, next: (error?: unknown) => void): void =>
    void serve(request, response, (error?: unknown) => next(asRefusal(error)));
  return (request: Request, response: Response, next: NextFunction): void => {
    const { url, path } = request;
    // A range refers to the file itself, not to a compressed copy.
    const wanted = request.get('range') === undefined ? Object.keys(PACKED_SUFFIXES) : [];
    const encodings = wanted.filter((encoding) => request.acceptsEncodings(encoding));
    const tryNext = (): void => {
      request.url = url;
      response.removeHeader('content-encoding');
      response.removeHeader('content-type');
      const encoding = encodings.shift();
      if (encoding === undefined) return files(request, response, next);
      const file = path.endsWith('/') ? `${path}index.html` : path;
      request.url = file + PACKED_SUFFIXES[encoding];
      response.set('content-encoding', encoding).type(extname(file) || 'application/octet-stream');
      files(request, response, tryNext);
    };
    tryNext();
  };
}

/** Errors of serving a file that the request is to blame for: a precondition that does not hold, a range that the file does not have. */
const REFUSALS: Readonly<Record<number, readonly [code: string, message: string]>> = {
  412: ['precondition_failed', 'the file is not as If-Match or If-Unmodified-Since wants it'],
  416: ['range_not_satisfiable', 'the file does not have the bytes that Range asks for'],
};

function asRefusal(error: unknown): unknown {
  const { status, headers = {} } = (error ?? {}) as { readonly status?: number; readonly headers?: Readonly<Record<string, string>> };
  const refusal = status === undefined ? undefined : REFUSALS[status];
  return refusal ? new HttpError(status!, ...refusal, { headers }) : error;
}

function packedSuffix(response: Response): RegExp {
  const suffix = PACKED_SUFFIXES[response.get('content-encoding') ?? ''];
  return suffix === undefined ? /$/ : new RegExp(`\\${suffix}$`);
}

/**
 * Parses a `_headers` file, the format of Netlify and Cloudflare Pages: a path pattern, in which `*` matches any text, then its headers, each on an indented line.
 * Throws an Error that names a line that it cannot read.
 */
export function parseHeaderRules(text: string): HeaderRule[] {
  const rules: { pattern: RegExp; headers: [string, string][] }[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '' || line.trimStart().startsWith('#')) continue;
    const [, name, value] = /^\s+([\w-]+):\s*(.*?)\s*$/.exec(line) ?? [];
    if (name !== undefined && rules.length > 0) rules.at(-1)!.headers.push([name, value!]);
    else if (/^\/\S*\s*$/.test(line)) rules.push({ pattern: patternOf(line.trim()), headers: [] });
    else throw new Error(`_headers, line ${index + 1}: neither a path nor an indented "Name: value": ${line}`);
  }
  return rules;
}

function patternOf(path: string): RegExp {
  const parts = path.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`);
}
