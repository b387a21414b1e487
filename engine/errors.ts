import type { ENGINE_SETTINGS } from './config.ts';

/**
 * Codes of EngineError, the engine's only error class. They are stable, and callers map them to their own terms: the server to an HTTP status, the playground to
 * a message.
 */
export type EngineErrorCode =
  | 'invalid_request' // the caller's input is wrong; `param` names the field
  | 'context_length_exceeded' // prompt (and reserved output) do not fit the context
  | 'invalid_json_schema' // a schema whose keywords cannot all be enforced; says which and where
  | 'invalid_audio' // audio that cannot be decoded
  | 'unsupported' // understood, but this model or build does not do it
  | 'queue_full' // no capacity now; try again later
  | 'aborted' // the caller went away
  | 'out_of_memory' // device memory does not suffice
  | 'no_adapter' // no WebGPU adapter matches
  | 'device_lost' // the GPU (or the engine process) is gone; it is being rebuilt
  | 'shutting_down' // the engine is closing
  | 'invalid_model' // a checkpoint that cannot be loaded: says which file, what was found, what is expected
  | 'internal'; // a bug

/** What an operator can do about an error. Whoever shows it spells the settings as they are set there, and leaves out those that cannot be set. */
export interface Remedy {
  /** What it achieves, such as "load it". */
  readonly does: string;
  /** Settings, any one of which helps; `value` is one that does. */
  readonly settings: readonly { readonly name: keyof typeof ENGINE_SETTINGS; readonly value?: string | number | boolean }[];
}

/** The remedy for weights that f16 cannot represent. */
export const LOAD_AS_F32: Remedy = { does: 'load it', settings: [{ name: 'dtype', value: 'f32' }] };

export interface EngineErrorOptions {
  /** Dotted path of the offending field of the engine's request, e.g. `sampling.logitBias`. */
  readonly param?: string;
  /** Numbers and words of the message, by name; plain JSON values only. */
  readonly details?: Readonly<Record<string, number | string>>;
  readonly remedies?: readonly Remedy[];
  readonly cause?: unknown;
}

export class EngineError extends Error {
  readonly code: EngineErrorCode;
  readonly param: string | undefined;
  readonly details: Readonly<Record<string, number | string>> | undefined;
  readonly remedies: readonly Remedy[];

  constructor(code: EngineErrorCode, message: string, options: EngineErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'EngineError';
    this.code = code;
    this.param = options.param;
    this.details = options.details;
    this.remedies = options.remedies ?? [];
  }
}

/** The error of a request whose caller went away. */
export function requestAborted(cause?: unknown): EngineError {
  return new EngineError('aborted', 'the request was aborted', { cause });
}

/** The error of a request whose signal was aborted: the signal's reason if that is an EngineError, such as a server's that shuts down. */
export function abortErrorOf({ reason }: { readonly reason: unknown }): EngineError {
  return reason instanceof EngineError ? reason : requestAborted(reason);
}

/** The error of all requests after a failed step, since nothing more can be computed on the device. `model` names whose step it was, such as `chat`. */
export function stepFailed(model: string, error: unknown): EngineError {
  if (error instanceof EngineError && error.code === 'device_lost') return error;
  return new EngineError('device_lost', `a step of the ${model} model failed: ${String(error)}`, { cause: error });
}

/** The error of requests that are running or arrive while the engine closes. */
export function engineClosing(): EngineError {
  return new EngineError('shutting_down', 'the engine is closing');
}

/**
 * The error of a prompt, or of a prompt and the `asked` tokens of its answer, that `context` tokens do not hold; `length` says the prompt's. Clients know such an error by its
 * text, since many show their code the message alone: "this model's maximum context length is N tokens" is what most of them look for, since OpenAI and vLLM say it.
 */
export function contextExceeded(length: string, details: ContextDetails, asked?: number): EngineError {
  const { promptTokens, contextLength: most, param } = details;
  const left = most - promptTokens;
  const also = asked === undefined ? '' : ` and ${asked} tokens were asked for`;
  const leaves = asked !== undefined && left > 0 ? `, which leaves ${left} for the answer` : '';
  const message = `the prompt has ${length}${also}; this model's maximum context length is ${most} tokens${leaves}`;
  return new EngineError('context_length_exceeded', message, { param, details: { promptTokens, contextLength: most } });
}

/** What is known of a prompt that is too long: its tokens (or how many it has at least), the tokens that the context holds, and the request's field. */
export interface ContextDetails {
  readonly promptTokens: number;
  readonly contextLength: number;
  readonly param: string;
}

/** Errors that name their model's path already. Of a model that is loaded as part of another, that must not become the other's path. */
const placed = new WeakSet<EngineError>();

/** Waits for `loading`. Adds the model's path to an error that refuses the model, unless it names a file there. */
export async function namingModel<T>(path: string, loading: Promise<T>): Promise<T> {
  try {
    return await loading;
  } catch (error) {
    if (!(error instanceof EngineError) || !['invalid_model', 'unsupported'].includes(error.code) || placed.has(error)) throw error;
    const { code, message, param, details, remedies, cause } = error;
    const options = { remedies, cause, ...(param !== undefined && { param }), ...(details && { details }) };
    const named = message.includes(path) ? error : new EngineError(code, `${path}: ${message}`, options);
    placed.add(named);
    throw named;
  }
}

/** Throws EngineError('internal') if a condition that only a bug can break does not hold. The message has both sides of the expectation. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new EngineError('internal', `assertion failed: ${message}`);
}

/** An EngineError as plain data: structured clones drop the fields of error subclasses. */
export interface PlainError {
  readonly code: EngineErrorCode;
  readonly message: string;
  readonly param?: string;
  readonly details?: Readonly<Record<string, number | string>>;
  readonly remedies?: readonly Remedy[];
}

/** Converts anything thrown to plain data; an error that is no EngineError is a bug and becomes `internal`. */
export function toPlainError(error: unknown): PlainError {
  if (!(error instanceof EngineError)) return { code: 'internal', message: error instanceof Error ? error.message : String(error) };
  const { code, message, param, details, remedies } = error;
  return { code, message, ...(param !== undefined && { param }), ...(details && { details }), ...(remedies.length > 0 && { remedies }) };
}

/** Restores the EngineError of a PlainError. */
export function fromPlainError({ code, message, ...options }: PlainError): EngineError {
  return new EngineError(code, message, options);
}
