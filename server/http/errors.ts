/** Errors of the HTTP API, `{"error": {message, type, param, code}}`, and the table that maps engine errors to statuses. */
import { EngineError, fromPlainError, toPlainError } from '../../engine/errors.ts';
import type { EngineErrorCode } from '../../engine/errors.ts';
import { inFlags } from '../remedies.ts';
import type { ErrorAnswer } from './answers.ts';

export type ErrorType =
  | 'invalid_request_error'
  | 'authentication_error'
  | 'permission_error'
  | 'timeout_error'
  | 'server_error'
  | 'requests'
  | 'tokens';

export interface HttpErrorOptions {
  readonly type?: ErrorType;
  /** Dotted path of the offending field. */
  readonly param?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Extra numbers inside the error object, e.g. n_ctx. */
  readonly details?: Readonly<Record<string, number | string>>;
  readonly cause?: unknown;
}

/** An error with everything its response needs. `code` is a stable slug, never a number: typed clients reject those. */
export class HttpError extends Error {
  readonly status: number;
  readonly code: string;
  readonly type: ErrorType;
  readonly param: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly details: Readonly<Record<string, number | string>> | undefined;

  constructor(status: number, code: string, message: string, options: HttpErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'HttpError';
    this.status = status;
    this.code = code;
    this.type = options.type ?? (status >= 500 ? 'server_error' : 'invalid_request_error');
    this.param = options.param;
    this.headers = options.headers ?? {};
    this.details = options.details;
  }

  /** The response body; all four keys are always there. */
  get body(): ErrorAnswer {
    return { error: { message: this.message, type: this.type, param: this.param ?? null, code: this.code, ...this.details } };
  }
}

interface Row {
  readonly status: number;
  readonly code?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The field to name if the error names none. */
  readonly param?: string;
}

/** OpenAI's clients retry every 5xx; a failure that is deterministic must not be computed three times. */
const NO_RETRY = { 'x-should-retry': 'false' };
const RETRY_SOON = { 'retry-after': '1' };
const RETRY_LATER = { 'retry-after': '5' };

const ROWS: Readonly<Record<EngineErrorCode, Row>> = {
  invalid_request: { status: 400, code: 'invalid_value' },
  context_length_exceeded: { status: 400, param: 'messages' },
  invalid_json_schema: { status: 400 },
  invalid_audio: { status: 400, param: 'file' },
  unsupported: { status: 400, code: 'unsupported_value' },
  queue_full: { status: 503, headers: RETRY_SOON },
  // Only if the engine gave up by itself: a client that went away gets no response.
  aborted: { status: 500, code: 'internal_error', headers: NO_RETRY },
  out_of_memory: { status: 503, headers: RETRY_LATER },
  no_adapter: { status: 503, code: 'device_lost', headers: RETRY_LATER },
  device_lost: { status: 503, headers: RETRY_LATER },
  shutting_down: { status: 503, headers: RETRY_LATER },
  invalid_model: { status: 500, code: 'internal_error', headers: NO_RETRY },
  internal: { status: 500, code: 'internal_error', headers: NO_RETRY },
};

/** API names of the fields of engine requests, where they differ. */
const FIELDS: ReadonlyMap<string, string> = new Map([
  ['continueFinalMessage', 'continue_final_message'],
  ['responseFormat.schema', 'response_format.json_schema.schema'],
  ['sampling.logitBias', 'logit_bias'],
  ['stopTokenIds', 'stop_token_ids'],
  ['samples', 'file'],
  ['vad', 'chunking_strategy'],
  // `translate` is refused because of the model: another one could do it.
  ['task', 'model'],
]);

const fieldOf = (param: string): string => FIELDS.get(param) ?? param.replace(/^(tools\[\d+\])\.parameters$/, '$1.function.parameters');

/** API names of numbers in engine errors: those of llama.cpp. */
const NUMBERS: ReadonlyMap<string, string> = new Map([['promptTokens', 'n_prompt_tokens'], ['contextLength', 'n_ctx']]); // prettier-ignore

function numbersOf(details: Readonly<Record<string, number | string>>): Record<string, number | string> {
  return Object.fromEntries(Object.entries(details).map(([name, number]) => [NUMBERS.get(name) ?? name, number]));
}

/** Gives the field that an engine error names its name in the body, which `nameOf` returns; undefined = no other. Anything else is returned as it is. */
export function inBody(error: unknown, nameOf: (param: string) => string | undefined): unknown {
  const param = error instanceof EngineError && error.param !== undefined ? nameOf(error.param) : undefined;
  return param === undefined ? error : fromPlainError({ ...toPlainError(error), param });
}

/** Converts any thrown value to an HttpError; `say` words an engine error for its reader. The message of an internal error is kept out, since it may quote the request. */
export function toHttpError(error: unknown, say: (error: EngineError) => string = inFlags): HttpError {
  if (error instanceof HttpError) return error;
  if (!(error instanceof EngineError)) return internal(error);
  const { status, code = error.code, headers, param: standard } = ROWS[error.code];
  if (code === 'internal_error') return internal(error);
  const param = error.param === undefined ? standard : fieldOf(error.param);
  return new HttpError(status, code, say(error), {
    ...(param !== undefined && { param }),
    ...(headers && { headers }),
    ...(error.details && { details: numbersOf(error.details) }),
    cause: error,
  });
}

function internal(cause: unknown): HttpError {
  return new HttpError(500, 'internal_error', 'an internal error; the server log has it under this x-request-id', {
    headers: NO_RETRY,
    cause,
  });
}

/** 503 while the model is being loaded. */
export function modelLoading(): HttpError {
  return new HttpError(503, 'model_loading', 'the model is still being loaded', { headers: RETRY_LATER });
}

/** 503 while the engine is being restarted. */
export function deviceLost(message = 'the engine was lost and is being restarted'): HttpError {
  return new HttpError(503, 'device_lost', message, { headers: RETRY_LATER });
}

/** 503 to new requests while the process drains; the connection is closed with the response. */
export function shuttingDown(): HttpError {
  return new HttpError(503, 'shutting_down', 'the server is shutting down', { headers: { ...RETRY_LATER, connection: 'close' } });
}

/** 500 because a codec worker died while it decoded or encoded for this request. */
export function codecFailed(cause?: unknown): HttpError {
  return new HttpError(500, 'internal_error', 'the audio codec failed', { headers: NO_RETRY, cause });
}

/** 400 for a required field that is missing. */
export function missingParameter(param: string): HttpError {
  return new HttpError(400, 'missing_required_parameter', `'${param}' is required`, { param });
}

/** 400 for a form whose `file` is a text field. */
export function notAnUpload(): HttpError {
  return new HttpError(400, 'invalid_type', "'file' must be a file upload, not a text field: its part needs a filename", { param: 'file' });
}

/** 400 for a field of the wrong type; `expected` includes its article, as in 'a string'. */
export function invalidType(param: string, expected: string, value: unknown): HttpError {
  // JSON's 1e400 is read as Infinity.
  const kind = typeof value === 'number' && !Number.isFinite(value) ? String(value) : typeof value;
  const found = value === null ? 'null' : Array.isArray(value) ? 'array' : kind;
  return new HttpError(400, 'invalid_type', `'${param}' must be ${expected}, got ${found}`, { param });
}

/** 404 unless `name` is one of the names that a model is served under. */
export function checkModelName(name: string, models: readonly string[]): void {
  if (models.includes(name)) return;
  const served = models.map((id) => `'${id}'`).join(', ');
  throw new HttpError(404, 'model_not_found', `the model '${name.slice(0, 100)}' is not served here; served: ${served}`, {
    param: 'model',
  });
}

/** 400 for a field with a value that is not allowed. */
export function invalidValue(param: string, message: string): HttpError {
  return new HttpError(400, 'invalid_value', message, { param });
}

/** 400 for a value of the OpenAI API that is not served (yet). */
export function unsupportedValue(param: string, message: string): HttpError {
  return new HttpError(400, 'unsupported_value', message, { param });
}

/** 400 for a field of the OpenAI API that is not served (yet): refused, because ignoring it would change the answer's meaning. */
export function unsupportedParameter(param: string, why?: string): HttpError {
  return new HttpError(400, 'unsupported_parameter', `'${param}' is not supported by this server${why ? `: ${why}` : ''}`, { param });
}

/** 413 for a body that is too large; the connection is kept, so that the client can read the response. */
export function requestTooLarge(message: string, param?: string): HttpError {
  return new HttpError(413, 'request_too_large', message, param === undefined ? {} : { param });
}

/** 415 for a content type that is not accepted. */
export function unsupportedMediaType(message: string): HttpError {
  return new HttpError(415, 'unsupported_media_type', message);
}
