/** Why a source gives no model. An error's message is one line for the person who named the source. */
export type SourceErrorKind =
  | 'syntax' // the text names no source
  | 'missing' // there is no such model, revision or file
  | 'denied' // it is there, but not for this token
  | 'unreachable' // the other side does not answer at all
  | 'network' // it answers with a failure, or ends too early
  | 'refused' // a name, a redirect or an archive that could do harm
  | 'damaged' // what came is not what was published
  | 'disk' // no room, or no right to write
  | 'offline' // it would have to be fetched, and fetching is forbidden
  | 'tool' // pip or npm is missing or failed
  | 'aborted'; // the caller went away; what came is kept

interface SourceErrorOptions extends ErrorOptions {
  readonly retryAfter?: number | undefined;
  readonly wantsToken?: boolean;
}

/** Thrown when a source gives no model. */
export class SourceError extends Error {
  readonly kind: SourceErrorKind;
  /** Seconds after which the server asks to try again. */
  readonly retryAfter: number | undefined;
  /** Whether a token, or another one, may give access. */
  readonly wantsToken: boolean;

  constructor(kind: SourceErrorKind, message: string, { retryAfter, wantsToken = false, ...options }: SourceErrorOptions = {}) {
    super(message, options);
    this.name = 'SourceError';
    this.kind = kind;
    this.retryAfter = retryAfter;
    this.wantsToken = wantsToken;
  }
}

/** The reason behind fetch's "fetch failed". */
export function networkProblem(error: unknown): string {
  const cause = (error as { readonly cause?: { readonly code?: string; readonly message?: string } }).cause;
  const why = cause?.code ?? cause?.message ?? (error instanceof Error ? error.message : String(error));
  return `the connection failed (${why.split('\n')[0]})`;
}
