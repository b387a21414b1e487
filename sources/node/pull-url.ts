/** Fetches a file from a URL. */
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { SourceError, networkProblem } from '../errors.ts';
import { secondsToWait } from '../retry-after.ts';
import { fileNameOf } from '../source.ts';
import type { UrlSource } from '../source.ts';
import type { PullContext } from './context.ts';
import { diskError, exists, requireRoom } from './disk.ts';
import { downloadFile, limiter, tagOf, waiter } from './download.ts';
import { keptBytes } from './part-file.ts';

/** Fetches a URL to a path, unless the file is there; returns the number of bytes fetched. Throws SourceError. */
export async function fetchUrl(
  source: UrlSource,
  to: string,
  context: PullContext,
  tell: (done: number, total?: number) => void,
): Promise<number> {
  if (await exists(to)) return 0;
  await mkdir(dirname(to), { recursive: true }).catch((error: unknown) => {
    throw diskError(error, to);
  });
  const { size, tag } = await probe(source.url, context);
  const version = source.sha256 ?? tag ?? `${size} bytes`;
  const kept = await keptBytes(to, size, version);
  await requireRoom(context.disk, dirname(to), size - kept);
  let done = 0;
  const job = {
    name: fileNameOf(source.url)!,
    url: source.url,
    size,
    version,
    to,
    ...(tag?.startsWith('"') && { ifRange: tag }),
    ...(source.sha256 === undefined ? tag !== undefined && { tag } : { hash: { kind: 'sha256', hex: source.sha256 } as const }),
  };
  await downloadFile(job, {
    context,
    signal: context.signal,
    connection: limiter(context.tuning.connections),
    onBytes: (bytes) => tell((done += bytes), size),
    onChecked: () => undefined,
    refusal: async (answer, name) => refusal(answer, name),
    wait: waiter(context),
  });
  return size - kept;
}

/** Asks for the size and version of the file at a URL. */
async function probe(url: string, { fetch, signal }: PullContext): Promise<{ readonly size: number; readonly tag?: string }> {
  const name = fileNameOf(url)!;
  const answer = await fetch(url, { headers: { range: 'bytes=0-0', 'accept-encoding': 'identity' }, signal }).catch((error: unknown) => {
    if (error instanceof SourceError || signal.aborted) throw error;
    throw new SourceError('unreachable', `${name}: ${networkProblem(error)}`, { cause: error });
  });
  await answer.body?.cancel().catch(() => undefined);
  // A server answers 416 to a range of an empty file.
  if (!answer.ok) throw refusal(answer, name);
  const text =
    answer.status === 206 ? /\/(\d+)$/.exec(answer.headers.get('content-range') ?? '')?.[1] : answer.headers.get('content-length');
  const size = Number(text ?? NaN);
  if (!Number.isSafeInteger(size) || size < 0) throw new SourceError('network', `${name}: the server does not say how large it is`);
  const tag = tagOf(answer.headers);
  return { size, ...(tag !== undefined && { tag }) };
}

function refusal({ status, url, headers }: Response, name: string): SourceError {
  const where = url === '' ? '' : ` from ${new URL(url).host}`;
  if (status === 404 || status === 410) return new SourceError('missing', `there is no ${name} at this address (HTTP ${status}${where})`);
  if (status === 401 || status === 403) return new SourceError('denied', `${name} is not open to everyone (HTTP ${status}${where})`);
  const retryAfter = status === 429 || status === 503 ? secondsToWait(headers, Date.now()) : undefined;
  return new SourceError('network', `${name}: HTTP ${status}${where}`, { retryAfter });
}
