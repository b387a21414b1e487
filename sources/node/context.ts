/** Context of every kind of pull: settings, access to network and disk, and the receiver of its progress. */
import type { ModelFormat } from '../choose.ts';
import type { SourceError } from '../errors.ts';
import type { PullProgress } from '../progress.ts';
import { DISK } from './disk.ts';
import type { DiskAccess } from './disk.ts';
import { checkedFetch } from './http.ts';
import type { Environment, SourceSettings } from './settings.ts';
import { sourceSettings } from './settings.ts';

/** Options of finding and fetching models. */
export interface ResolveOptions {
  /** Environment variables; default: the process's. */
  readonly env?: Environment;
  /** Fetch to use beneath the checks of redirects and tokens. */
  readonly fetch?: typeof fetch;
  /** Stops the pull; what was fetched is kept. */
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: PullProgress) => void;
  /** Receives a line that the user should see. */
  readonly onNote?: (line: string) => void;
  /** Asks the hub for a newer commit although one is in the cache. */
  readonly update?: boolean;
  readonly disk?: DiskAccess;
  readonly tuning?: Partial<Tuning>;
  /** What the pulls of one run share. */
  readonly learnt?: Learnt;
}

/** What the pulls of one run have learnt about the network. */
export interface Learnt {
  /** Why the hub cannot be reached. */
  hubIsAway?: SourceError;
}

/** Limits and intervals of downloads. */
export interface Tuning {
  /** Bytes per request. */
  readonly pieceBytes: number;
  /** Most concurrent requests. */
  readonly connections: number;
  /** Consecutive attempts without data after which a file is given up. */
  readonly attempts: number;
  /** Milliseconds before the second attempt; doubled for each further one. */
  readonly retryMs: number;
  /** Milliseconds between checks of another process's pull. */
  readonly pollMs: number;
  /** Milliseconds without data after which a connection is given up. */
  readonly idleMs: number;
}

/** ResolveOptions with everything filled in. */
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

/** A model on this machine. */
export interface Resolved {
  /** Short name of the model, from its source. */
  readonly id: string;
  /** The folder or file to load. */
  readonly path: string;
  readonly files: readonly { readonly path: string; readonly size: number }[];
  readonly format?: ModelFormat;
  /** The hub's commit. */
  readonly commit?: string;
  /** Bytes that were fetched over the network by this call. */
  readonly fetched: number;
}

/** Pieces are small enough that an interruption loses little with a server without useful ranges, and large enough that requests cost nothing. */
const TUNING: Tuning = { pieceBytes: 32 * 2 ** 20, connections: 8, attempts: 6, retryMs: 500, pollMs: 500, idleMs: 60_000 };

/** Fills in all options; throws SourceError for environment variables that cannot be used. */
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
