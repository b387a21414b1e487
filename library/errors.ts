/** The error classes of the OpenAI client: one per status, with the fields of the API's error object. */

/** The `error` object of an API response. */
export interface ErrorObject {
  readonly message?: string;
  readonly type?: string;
  readonly param?: string | null;
  readonly code?: string | null;
  readonly [more: string]: unknown;
}

/** A call was refused or failed. `status` is that of the HTTP API in the same case. */
export class APIError extends Error {
  // A literal, because minifiers rename classes.
  override name = 'APIError';
  readonly status: number | undefined;
  readonly error: ErrorObject | undefined;
  readonly headers: Headers | undefined;
  readonly code: string | null | undefined;
  readonly param: string | null | undefined;
  readonly type: string | undefined;
  readonly requestID: string | null | undefined = undefined;

  constructor(status: number | undefined, error: ErrorObject | undefined, message?: string, headers?: Headers, cause?: unknown) {
    const said = error?.message ?? message ?? '(no message)';
    super(status === undefined ? said : `${status} ${said}`, cause === undefined ? undefined : { cause });
    this.status = status;
    this.error = error;
    this.headers = headers;
    this.code = error?.code;
    this.param = error?.param;
    this.type = error?.type;
  }
}

export class APIUserAbortError extends APIError {
  override name = 'APIUserAbortError';
  constructor({ message }: { readonly message?: string } = {}) {
    super(undefined, undefined, message ?? 'Request was aborted.');
  }
}

export class BadRequestError extends APIError {
  override name = 'BadRequestError';
}
export class AuthenticationError extends APIError {
  override name = 'AuthenticationError';
}
export class PermissionDeniedError extends APIError {
  override name = 'PermissionDeniedError';
}
export class NotFoundError extends APIError {
  override name = 'NotFoundError';
}
export class ConflictError extends APIError {
  override name = 'ConflictError';
}
export class UnprocessableEntityError extends APIError {
  override name = 'UnprocessableEntityError';
}
export class RateLimitError extends APIError {
  override name = 'RateLimitError';
}
export class InternalServerError extends APIError {
  override name = 'InternalServerError';
}

const CLASSES: ReadonlyMap<number, typeof APIError> = new Map([
  [400, BadRequestError],
  [401, AuthenticationError],
  [403, PermissionDeniedError],
  [404, NotFoundError],
  [409, ConflictError],
  [422, UnprocessableEntityError],
  [429, RateLimitError],
]);

/** The OpenAI client's error class for a status. */
export function errorClass(status: number): typeof APIError {
  return CLASSES.get(status) ?? (status >= 500 ? InternalServerError : APIError);
}
