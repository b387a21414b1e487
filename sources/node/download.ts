/** Downloads a file by concurrent range requests, resumes where an earlier try ended, and gives the file its name only if its hash is right. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { SourceError, networkProblem } from '../errors.ts';
import { formatSeconds } from '../progress.ts';
import { missingPieces } from '../ranges.ts';
import type { Range } from '../ranges.ts';
import { LONGEST_WAIT_SECONDS } from '../retry-after.ts';
import type { PullContext } from './context.ts';
import { PartFile } from './part-file.ts';

/** Published hash of a file's content: SHA-256 of its bytes, or the SHA-1 of its git blob (`blob <size>\0`, then the bytes). */
export interface FileHash {
  readonly kind: 'sha256' | 'git';
  readonly hex: string;
}

/** A file to download. */
export interface FileJob {
  /** Name for messages. */
  readonly name: string;
  readonly url: string;
  readonly size: number;
  /** Identifies the content, so that two versions are never mixed. */
  readonly version: string;
  /** Sent as If-Range with each request, if the version is a strong ETag. */
  readonly ifRange?: string;
  /** The file's `tagOf` before, if no hash would reveal a mixture of two files. */
  readonly tag?: string;
  readonly hash?: FileHash;
  /** Path of the complete file. */
  readonly to: string;
}

/** Shared by the downloads of several files. */
export interface Downloads {
  readonly context: PullContext;
  /** Signal of this pull; aborted when one of its files fails. */
  readonly signal: AbortSignal;
  /** Runs a request once a connection is free. */
  readonly connection: <T>(work: () => Promise<T>) => Promise<T>;
  readonly onBytes: (bytes: number) => void;
  readonly onChecked: (bytes: number) => void;
  /** Converts a response other than 200 and 206 to an error. */
  readonly refusal: (answer: Response, name: string) => Promise<SourceError>;
  /** Waits for as long as the server asks. */
  readonly wait: (seconds: number) => Promise<void>;
}

/** Returns a function that waits for a number of seconds, and notes it once, however many requests are waiting. */
export function waiter({ signal, onNote }: Pick<PullContext, 'signal' | 'onNote'>): (seconds: number) => Promise<void> {
  let waiting = 0;
  return async (seconds) => {
    if (waiting++ === 0 && seconds > 0) onNote(`the other side takes no more requests for now; going on in ${formatSeconds(seconds)}`);
    try {
      await sleep(seconds * 1000, undefined, { signal });
    } finally {
      waiting--;
    }
  };
}

/** Returns a function that runs at most `count` tasks at a time, in the order of its calls. */
export function limiter(count: number): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    if (running >= count) await new Promise<void>((resolve) => waiting.push(resolve));
    running++;
    try {
      return await work();
    } finally {
      running--;
      waiting.shift()?.();
    }
  };
}

/** A server's identification of a file's version: its ETag, else the time of its last change. */
export function tagOf(headers: Headers): string | undefined {
  return headers.get('etag') ?? headers.get('last-modified') ?? undefined;
}

/** Thrown when a server ignores ranges, or sends ranges of another version of the file. */
class NoRanges extends Error {}

/** Fetches the missing parts of a file. Throws SourceError; what was fetched is kept, unless its hash is wrong. */
export async function downloadFile(job: FileJob, downloads: Downloads): Promise<void> {
  const { context } = downloads;
  const part = await PartFile.open(context.disk, job.to, job.size, job.version);
  downloads.onBytes(part.bytes);
  let problem: SourceError | undefined;
  try {
    await fetchPieces(job, part, downloads, missingPieces(part.done, job.size, context.tuning.pieceBytes));
    problem = await hashProblem(job, part.path, downloads);
  } catch (error) {
    await part.close();
    throw error;
  }
  if (problem === undefined) return part.finish(job.to);
  await part.discard();
  throw problem;
}

async function fetchPieces(job: FileJob, part: PartFile, downloads: Downloads, pieces: readonly Range[]): Promise<void> {
  // When one piece fails the others would too, each only after attempts of its own.
  const failed = new AbortController();
  const stoppable = { ...downloads, signal: AbortSignal.any([downloads.signal, failed.signal]) };
  const fetching = pieces.map((piece) =>
    downloads.connection(async () => {
      stoppable.signal.throwIfAborted();
      await fetchPiece(job, part, piece, stoppable).catch((error: unknown) => {
        failed.abort(error);
        throw error;
      });
    }),
  );
  await Promise.allSettled(fetching);
  downloads.signal.throwIfAborted();
  if (!failed.signal.aborted) return;
  if (!(failed.signal.reason instanceof NoRanges)) throw failed.signal.reason;
  // All of it over one connection, since all of it is sent anyway: a server with ranges sends the whole file if its version has changed.
  downloads.onBytes(-part.bytes);
  part.forget();
  await downloads.connection(() => fetchPiece(job, part, [0, job.size], downloads, true));
}

/** Fetches [from, to), and retries for as long as attempts bring data. */
async function fetchPiece(job: FileJob, part: PartFile, [from, to]: Range, downloads: Downloads, fromStart = false): Promise<void> {
  const { attempts, retryMs } = downloads.context.tuning;
  let fruitless = 0;
  for (let at = from; at < to;) {
    const before = at;
    try {
      for await (const bytes of bytesOf(job, [at, to], downloads, fromStart)) {
        await part.write(at, bytes);
        at += bytes.length;
        downloads.onBytes(bytes.length);
      }
    } catch (error) {
      downloads.signal.throwIfAborted();
      if (error instanceof NoRanges || (error instanceof SourceError && error.kind !== 'network')) throw error;
      fruitless = at > before ? 0 : fruitless + 1;
      const asked = error instanceof SourceError ? error.retryAfter : undefined;
      if (fruitless >= attempts || (asked ?? 0) > LONGEST_WAIT_SECONDS) throw unreachable(job, error);
      if (asked !== undefined) await downloads.wait(asked);
      else await sleep(retryMs * 2 ** fruitless, undefined, { signal: downloads.signal });
      downloads.signal.throwIfAborted();
    }
  }
}

function unreachable(job: FileJob, error: unknown): SourceError {
  if (error instanceof SourceError)
    return new SourceError(error.kind, `${error.message}; what came is kept, so do the same again to go on`, { cause: error });
  return new SourceError('network', `${job.name}: ${networkProblem(error)}; what came is kept, so do the same again to go on`, {
    cause: error,
  });
}

/** Yields the bytes [from, to) from one request; ends early only by throwing. With `fromStart` the whole file is requested, and read up to them. */
async function* bytesOf(job: FileJob, [from, to]: Range, downloads: Downloads, fromStart: boolean): AsyncGenerator<Uint8Array> {
  const { context, signal } = downloads;
  const idle = new AbortController();
  const { idleMs } = context.tuning;
  const giveUp = (): void => idle.abort(new SourceError('network', `${job.name}: nothing came for ${idleMs / 1000} s`));
  let timer = setTimeout(giveUp, idleMs);
  try {
    const headers: Record<string, string> = {
      'accept-encoding': 'identity',
      ...(!fromStart && { range: `bytes=${from}-${to - 1}` }),
      ...(job.ifRange !== undefined && { 'if-range': job.ifRange }),
    };
    const answer = await context.fetch(job.url, { headers, signal: AbortSignal.any([signal, idle.signal]) });
    if (answer.status !== 200 && answer.status !== 206) throw await downloads.refusal(answer, job.name);
    let skip = checkAnswer(job, [from, to], answer, fromStart);
    let left = to - from;
    for await (const bytes of answer.body ?? []) {
      clearTimeout(timer);
      timer = setTimeout(giveUp, idleMs);
      const wanted = (bytes as Uint8Array).subarray(Math.min(skip, bytes.length)).subarray(0, left);
      skip -= Math.min(skip, bytes.length);
      left -= wanted.length;
      if (wanted.length > 0) yield wanted;
      if (left === 0) return;
    }
    throw new SourceError('network', `${job.name} ended ${left} bytes early`);
  } finally {
    clearTimeout(timer);
  }
}

/** Checks a response; returns the number of bytes in it before the requested ones. */
function checkAnswer(job: FileJob, [from, to]: Range, answer: Response, fromStart: boolean): number {
  const wrong = (what: string): SourceError =>
    new SourceError('damaged', `${job.name}: the server sends ${what}; expected ${job.size} bytes`);
  if (answer.status === 200) {
    const length = answer.headers.get('content-length');
    if (length !== null && Number(length) !== job.size) throw wrong(`${length} bytes`);
    if (!fromStart && to - from < job.size) throw new NoRanges();
    return from;
  }
  const range = answer.headers.get('content-range') ?? '';
  const [, start, total] = /^bytes (\d+)-\d+\/(\d+)$/.exec(range) ?? [];
  if (Number(start) !== from || Number(total) !== job.size) throw wrong(`the range ${JSON.stringify(range.slice(0, 60))}`);
  // Only a strong ETag can be sent as If-Range.
  if (job.tag !== undefined && tagOf(answer.headers) !== job.tag) throw new NoRanges();
  return 0;
}

/** Compares a fetched file with its published hash; undefined if they match. */
async function hashProblem(job: FileJob, path: string, downloads: Downloads): Promise<SourceError | undefined> {
  const { hash } = job;
  if (!hash) return undefined;
  const found = await hashOf(path, hash.kind, downloads.signal, downloads.onChecked);
  if (found === hash.hex) return undefined;
  const name = hash.kind === 'sha256' ? 'SHA-256' : 'git SHA-1';
  return new SourceError(
    'damaged',
    `${job.name} did not arrive as published (${name} ${found.slice(0, 12)}…, expected ${hash.hex.slice(0, 12)}…); it was thrown away`,
  );
}

/** Error for a file without the hash that its recipe or source names. */
export function wrongHash(name: string, found: string, expected: string): SourceError {
  const hashes = `SHA-256 ${found.slice(0, 12)}…, expected ${expected.slice(0, 12)}…`;
  return new SourceError('damaged', `${name} is not what its hash says (${hashes}); it was thrown away`);
}

/** The hash of a whole file in hex. */
export async function hashOf(
  path: string,
  kind: FileHash['kind'],
  signal: AbortSignal,
  onBytes: (bytes: number) => void = () => undefined,
): Promise<string> {
  const hash = createHash(kind === 'git' ? 'sha1' : 'sha256');
  if (kind === 'git') hash.update(`blob ${(await stat(path)).size}\0`);
  for await (const bytes of createReadStream(path, { highWaterMark: 2 ** 20, signal })) {
    hash.update(bytes as Buffer);
    onBytes((bytes as Buffer).length);
  }
  return hash.digest('hex');
}
