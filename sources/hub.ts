/**
 * The hub's protocol: the commit of a revision, its files, and their URLs. The client is Hugging Face's own; what it does not do (ranges, resuming, hashes, errors
 * that say what to do) is in node/. Pure: the given fetch decides what may be reached.
 */
import type { RepoFile } from './choose.ts';
import { SourceError, networkProblem } from './errors.ts';
import { isCommit, quoteName } from './names.ts';
import { formatSeconds } from './progress.ts';
import { LONGEST_WAIT_SECONDS, secondsToWait } from './retry-after.ts';

/** A hub, and how to access it. */
export interface Hub {
  /** Base URL without a slash at the end. */
  readonly endpoint: string;
  /** Must add the token, to requests to the endpoint alone. */
  readonly fetch: typeof fetch;
  /** Whether there is a token; used only for the advice in messages. */
  readonly hasToken: boolean;
  /** Waits for as long as the hub asks. Without it a rate-limited request fails, and its message says when to try again. */
  readonly wait?: (seconds: number) => Promise<void>;
  /** How messages refer to the token; by default as environment variables. */
  readonly tokenWords?: TokenWords;
}

/** How messages refer to the hub's token. */
export interface TokenWords {
  /** What to do, such as "set HF_TOKEN". */
  readonly give: string;
  /** Where a token that was given is. */
  readonly place: string;
}

const IN_VARIABLES: TokenWords = { give: 'set HF_TOKEN', place: 'HF_TOKEN, or the file token in HF_HOME' };

/** A repository at one commit. */
export interface Repository {
  /** Commit: 40 hexadecimal digits. */
  readonly commit: string;
  readonly files: readonly RepoFile[];
}

/** Most waits for one request that the hub asks for; then it fails. */
const MOST_WAITS = 5;
/** Most entries of a repository, which is listed page by page; no model has this many files. */
const MAX_FILES = 50_000;

/** Reads the commit of a revision and its files from the hub; throws SourceError. */
export async function readRepository(hub: Hub, id: string, revision: string): Promise<Repository> {
  const { listFiles, modelInfo } = await import('@huggingface/hub');
  const access = { hubUrl: hub.endpoint, fetch: explained(hub, id, revision) };
  const commit: unknown = (await understood(id, modelInfo({ ...access, name: id, revision, additionalFields: ['sha'] }))).sha;
  if (typeof commit !== 'string' || !isCommit(commit)) throw nonsense(id, `no commit for ${revision}`);
  const files: RepoFile[] = [];
  let entries = 0;
  const list = async (): Promise<void> => {
    for await (const entry of listFiles({ ...access, repo: { type: 'model', name: id }, revision: commit, recursive: true })) {
      // Folders count too: a list of nothing else would never end.
      if (++entries > MAX_FILES) throw nonsense(id, `more than ${MAX_FILES} files and folders`);
      if (entry.type === 'file') files.push(readEntry(id, entry));
    }
  };
  await understood(id, list());
  return { commit, files };
}

/** URL of a file of a commit. */
export function fileUrl(endpoint: string, id: string, commit: string, path: string): string {
  return `${endpoint}/${id}/resolve/${commit}/${path.split('/').map(encodeURIComponent).join('/')}`;
}

/** Parses a URL that `fileUrl` made; undefined for any other. */
export function readFileUrl(url: string): { readonly endpoint: string; readonly id: string; readonly commit: string } | undefined {
  const [, endpoint, id, commit] = /^(https?:\/\/.+?)\/([^/]+\/[^/]+)\/resolve\/([0-9a-f]{40})\/./.exec(url) ?? [];
  return endpoint === undefined ? undefined : { endpoint, id: id!, commit: commit! };
}

function readEntry(
  id: string,
  entry: { readonly path: unknown; readonly size: unknown; readonly oid?: unknown; readonly lfs?: unknown },
): RepoFile {
  const { path, size, oid } = entry;
  const lfs = entry.lfs as { readonly oid?: unknown } | undefined;
  const isSize = typeof size === 'number' && Number.isSafeInteger(size) && size >= 0;
  if (typeof path !== 'string' || !isSize) throw nonsense(id, 'a file without name or size');
  if (typeof lfs?.oid === 'string' && /^[0-9a-f]{64}$/.test(lfs.oid)) return { path, size, sha256: lfs.oid };
  if (typeof oid === 'string' && /^[0-9a-f]{40}$/.test(oid)) return { path, size, git: oid };
  throw nonsense(id, `no hash for ${quoteName(path)}`);
}

const nonsense = (id: string, what: string): SourceError => new SourceError('network', `${id}: the hub answers what no hub does: ${what}`);

/** Converts the client's own errors, which it throws for answers that it cannot parse, to SourceError. */
async function understood<T>(id: string, work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    if (error instanceof SourceError || (error instanceof Error && error.name === 'AbortError')) throw error;
    throw nonsense(id, error instanceof Error ? error.message.split('\n')[0]! : String(error));
  });
}

/** Wraps the hub's fetch: a refusal becomes a SourceError that says what to do. */
function explained(hub: Hub, id: string, revision: string): typeof fetch {
  return async (input, init) => {
    for (let waits = 0; ; waits++) {
      const answer = await hub.fetch(input, init).catch((error: unknown) => {
        if (error instanceof SourceError || (error as Error).name === 'AbortError') throw error;
        throw new SourceError('unreachable', `the hub at ${hub.endpoint} cannot be reached: ${networkProblem(error)}`, { cause: error });
      });
      if (answer.ok) return answer;
      const error = await refusal(hub, id, revision, answer);
      const { retryAfter = Infinity } = error;
      if (!hub.wait || waits === MOST_WAITS || retryAfter > LONGEST_WAIT_SECONDS) throw error;
      await hub.wait(retryAfter);
    }
  };
}

/** Converts an error response of the hub to a SourceError that says what to do. */
export async function refusal(hub: Hub, id: string, revision: string, answer: Response): Promise<SourceError> {
  const code = answer.headers.get('x-error-code') ?? '';
  const said = await whatItSaid(answer);
  const page = `${hub.endpoint}/${id}`;
  const { give, place } = hub.tokenWords ?? IN_VARIABLES;
  const wantsToken = { wantsToken: true };
  if (code === 'GatedRepo' || answer.status === 403) {
    const ways = hub.hasToken ? `accept them at ${page} with the account of your token` : `accept them at ${page}, then ${give}`;
    return new SourceError('denied', `${id} is given only to who has accepted its terms: ${ways}${said}`, wantsToken);
  }
  if (code === 'RevisionNotFound') return new SourceError('missing', `${id} has no revision ${quoteName(revision)}`);
  if (code === 'EntryNotFound') return new SourceError('missing', `${id} has no such file any more${said}`);
  if (answer.status === 401 && hub.hasToken && code !== 'RepoNotFound')
    return new SourceError('denied', `the hub does not accept the token for ${id}; see ${place}${said}`, wantsToken);
  if (answer.status === 401 || answer.status === 404) {
    const way = hub.hasToken ? 'or it is private and not for your token' : `or it is private: then ${give}`;
    return new SourceError('missing', `the hub has no open model ${id}; its name may be wrong, ${way}`, { wantsToken: !hub.hasToken });
  }
  const retryAfter = answer.status === 429 || answer.status === 503 ? secondsToWait(answer.headers, Date.now()) : undefined;
  const again = retryAfter === undefined ? '' : `; it takes them again in ${formatSeconds(retryAfter)}`;
  if (answer.status === 429)
    return new SourceError(
      'network',
      `the hub takes no more requests for now (HTTP 429)${again}${hub.hasToken ? '' : hub.tokenWords ? '; with a token it takes more' : '; with HF_TOKEN set it takes more'}`,
      { retryAfter },
    );
  return new SourceError('network', `${id}: the hub answered HTTP ${answer.status}${said}${again}`, { retryAfter });
}

/** Converts the error response for a file to a SourceError; `name` is the file's. */
export async function fileRefusal(hub: Hub, id: string, revision: string, answer: Response, name: string): Promise<SourceError> {
  const { host, origin } = new URL(answer.url || hub.endpoint);
  // The storage behind the hub refuses URLs that are too old; the hub then gives a new one.
  if (origin !== new URL(hub.endpoint).origin) return new SourceError('network', `${name}: ${host} answered HTTP ${answer.status}`);
  const { kind, message, retryAfter, wantsToken } = await refusal(hub, id, revision, answer);
  return new SourceError(kind, `${name}: ${message}`, { retryAfter, wantsToken });
}

/** The hub's own message, from the header or the body. It is foreign text, so it is shortened and quoted. */
async function whatItSaid(answer: Response): Promise<string> {
  let text = answer.headers.get('x-error-message') ?? '';
  if (text === '' && answer.headers.get('content-type')?.startsWith('application/json')) {
    const body = (await answer.json().catch(() => ({}))) as { readonly error?: unknown } | null;
    if (typeof body?.error === 'string') text = body.error;
  } else await answer.body?.cancel().catch(() => undefined);
  return text === '' ? '' : ` (it says ${quoteName(text.slice(0, 300))})`;
}
