/** Reads a JSON request body within limits, so that no body can block the event loop or overflow the stack. */
import type { Request } from 'express';
import { HttpError, requestTooLarge, unsupportedMediaType } from '../http/errors.ts';
import { Blocks } from './blocks.ts';
import { MAX_DEPTH, MAX_ELEMENTS, tooDeep, tooManyElements } from './shape.ts';
import type { Upload, UploadBudget } from './upload-budget.ts';

const MAX_JSON_BYTES = 16 << 20;
/** Milliseconds without data after which a request is given up. */
const IDLE_MS = 30_000;
/** Bodies up to this size are not counted; longer ones share the memory of `JSON_LIMITS`. */
const FREE_BYTES = 64 << 10;
/** Limits of all JSON bodies that one listener is receiving: thousands of connections, each with a large body, would otherwise exhaust the memory. */
export const JSON_LIMITS = { maxBytes: 256 << 20, minRate: 1 << 10 } as const;

/** Reads a request's JSON object, counted against the budget while it is received. Throws HttpError 400, 408, 413, 415 or 503; also when `signal` is aborted. */
export async function readJsonObject(
  request: Request,
  budget: UploadBudget,
  signal?: AbortSignal,
): Promise<Readonly<Record<string, unknown>>> {
  checkHeaders(request);
  const text = decode(await readBytes(request, MAX_JSON_BYTES, { budget, signal }));
  if (text.trim() === '') throw new HttpError(400, 'invalid_json', 'the body is empty, expected a JSON object');
  checkShape(text);
  const value = parse(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new HttpError(400, 'invalid_type', 'the body must be a JSON object');
  }
  return value as Record<string, unknown>;
}

function checkHeaders(request: Request): void {
  const type = request.get('content-type') ?? '';
  if (!/^application\/json\s*(;|$)/i.test(type.trim()))
    throw unsupportedMediaType(`Content-Type must be application/json, got '${type.slice(0, 100)}'`);
  checkEncoding(request);
}

/** Headers that can say that a body is compressed, and their value for one that is not. */
const PLAIN_ENCODINGS = [['Content-Encoding', 'identity'], ['Transfer-Encoding', 'chunked']] as const; // prettier-ignore

/** Refuses (415) compressed bodies, since decompressing them would need limits of its own. */
export function checkEncoding(request: Request): void {
  for (const [name, plain] of PLAIN_ENCODINGS) {
    const encoding = request.get(name);
    if (encoding !== undefined && encoding.toLowerCase() !== plain)
      throw unsupportedMediaType(`request bodies cannot be compressed, got ${name} '${encoding.slice(0, 100)}'`);
  }
}

/** Answers `Expect: 100-continue`, which curl sends with bodies above a MiB. */
export function askForBody(request: Request): void {
  if (request.get('expect') !== undefined && request.httpVersion === '1.1') request.res?.writeContinue();
}

interface Reading {
  readonly budget: UploadBudget;
  readonly signal: AbortSignal | undefined;
}

async function readBytes(request: Request, limit: number, { budget, signal }: Reading): Promise<Uint8Array> {
  const tooLarge = (): HttpError => requestTooLarge(`the body is larger than ${limit} bytes`);
  const declared = Number(request.get('content-length') ?? limit);
  if (declared > limit) throw tooLarge();
  // The body was read already, by express.json() of a program in which this app is mounted.
  if (request.readableEnded && request.body !== undefined) return Buffer.from(JSON.stringify(request.body));
  askForBody(request);
  const body = new Blocks();
  let upload: Upload | undefined;
  let idle: NodeJS.Timeout | undefined;
  const received = new Promise<void>((resolve, reject) => {
    const watch = (): void => {
      clearTimeout(idle);
      idle = setTimeout(() => reject(nothingCame()), IDLE_MS);
    };
    const reader = {
      // While the body is paused, the client is not idle.
      pause: () => (clearTimeout(idle), void request.pause()),
      resume: () => (watch(), void request.resume()),
      stop: reject,
    };
    const onData = (chunk: Buffer): void => {
      if (body.length + chunk.length > limit) return reject(tooLarge());
      watch();
      body.push(chunk);
      if (body.length <= FREE_BYTES) return;
      const bytes = upload ? chunk.length : body.length;
      try {
        upload ??= budget.open(request.socket.remoteAddress ?? '', declared, reader);
      } catch (error) {
        return reject(error);
      }
      if (!upload.take(bytes)) reader.pause();
    };
    watch();
    request.on('data', onData);
    request.on('end', () => resolve());
    request.on('error', reject);
    const cut = (): void => reject(new HttpError(400, 'invalid_json', 'the body ended early'));
    request.on('close', cut);
    // ListenerContext.job answers with the abort's own reason, which says more.
    signal?.addEventListener('abort', cut);
  });
  try {
    await received;
    return body.subarray(0);
  } finally {
    clearTimeout(idle);
    request.removeAllListeners('data');
    upload?.close();
  }
}

function nothingCame(): HttpError {
  return new HttpError(408, 'request_timeout', `nothing of the body came for ${IDLE_MS / 1000} s`, { type: 'timeout_error' });
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new HttpError(400, 'invalid_json', 'the body is not valid UTF-8', { cause });
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    // V8's message also quotes the text; only the position is shown.
    const position = /position \d+/.exec(String(cause))?.[0];
    throw new HttpError(400, 'invalid_json', `the body is not valid JSON${position ? ` (at ${position})` : ''}`, { cause });
  }
}

/** Checks depth and number of elements by counting brackets and commas outside strings, before the text is parsed. */
function checkShape(text: string): void {
  let depth = 0;
  let elements = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x22) i = endOfString(text, i);
    else if (code === 0x5b || code === 0x7b) {
      if (++depth > MAX_DEPTH) throw tooDeep();
    } else if (code === 0x5d || code === 0x7d) depth--;
    else if (code === 0x2c && ++elements > MAX_ELEMENTS) throw tooManyElements();
  }
}

function endOfString(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x5c) i++;
    else if (code === 0x22) return i;
  }
  return text.length;
}
