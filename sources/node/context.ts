/** What every kind of pull is handed: settings, doors to the outside, and whom it tells how far it is. */
import type { ModelFormat } from '../choose.ts';
import type { SourceError } from '../errors.ts';
import type { PullProgress } from '../progress.ts';
import { DISK } from './disk.ts';
import type { DiskAccess } from './disk.ts';
import { checkedFetch } from './http.ts';
import type { Environment, SourceSettings } from './settings.ts';
import { sourceSettings } from './settings.ts';

export interface ResolveOptions {
  /** Default: the process's. */
  readonly env?: Environment;
  /** The fetch below the checks of redirects and tokens. */
  readonly fetch?: typeof fetch;
  /** Stops; what came is kept. */
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: PullProgress) => void;
  /** One line that a person should know. */
  readonly onNote?: (line: string) => void;
  /** Asks the hub for a newer commit although one is in the cache. */
  readonly update?: boolean;
  readonly disk?: DiskAccess;
  readonly tuning?: Partial<Tuning>;
  /** Shared by the pulls of one run. */
  readonly learnt?: Learnt;
}

/** What pulls of one run learn about the outside. */
export interface Learnt {
  /** Why the hub cannot be reached. */
  hubIsAway?: SourceError;
}

export interface Tuning {
  /** Bytes asked for in one request. */
  readonly pieceBytes: number;
  /** Requests at a time. */
  readonly connections: number;
  /** Attempts in a row that bring nothing, before a file is given up. */
  readonly attempts: number;
  /** Before the second attempt; doubled for each further one. */
  readonly retryMs: number;
  /** Between looks at what another process is fetching. */
  readonly pollMs: number;
  /** A connection that brings nothing for this long is given up. */
  readonly idleMs: number;
}

export interface PullContext {
  readonly settings: SourceSettings;
  readonly env: Environment;
  readonly fetch: typeof fetch;
  readonly disk: DiskAccess;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: PullProgress) => void;
  readonly onNote: (line: string) => void;
  readonly update: boolean;
  readonly tuning: Tuning;
  readonly learnt: Learnt;
}

/** A model that lies on this machine. */
export interface Resolved {
  /** The source, shortened to what people call the model. */
  readonly id: string;
  /** The folder or file to load. */
  readonly path: string;
  readonly files: readonly { readonly path: string; readonly size: number }[];
  readonly format?: ModelFormat;
  /** The hub's commit. */
  readonly commit?: string;
  /** Bytes that came over the network now. */
  readonly fetched: number;
}

/** Pieces are small enough that a cut loses little where a server has no ranges to speak of, and large enough that asking costs nothing. */
const TUNING: Tuning = { pieceBytes: 32 * 2 ** 20, connections: 8, attempts: 6, retryMs: 500, pollMs: 500, idleMs: 60_000 };

/** The options with everything filled in; throws SourceError for variables that cannot be used. */
export function pullContext(options: ResolveOptions): PullContext {
  const env = options.env ?? process.env;
  const settings = sourceSettings(env);
  const token = settings.token === undefined ? {} : { token: settings.token };
  return {
    settings,
    env,
    fetch: checkedFetch({ endpoint: settings.endpoint, ...token, ...(options.fetch && { fetch: options.fetch }) }),
    disk: options.disk ?? DISK,
    signal: options.signal ?? new AbortController().signal,
    onProgress: options.onProgress ?? (() => undefined),
    onNote: options.onNote ?? (() => undefined),
    update: options.update ?? false,
    tuning: { ...TUNING, ...options.tuning },
    learnt: options.learnt ?? {},
  };
}
