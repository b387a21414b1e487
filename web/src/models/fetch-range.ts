/** Fetches ranges of files on the network. */
import { fileRefusal, readFileUrl } from '../../../sources/index.ts';
import { TOKEN_WORDS, authorization } from './hub-authorization.ts';
import type { HubAccess } from './hub-authorization.ts';
import { StoreError } from './store-error.ts';

/** A file at an address. */
export interface RemoteFile {
  readonly name: string;
  readonly size: number;
  readonly url?: string;
}

export interface FetchOptions {
  readonly signal?: AbortSignal | undefined;
  /** The hub's token, for a hub's files. */
  readonly access?: HubAccess | undefined;
}

/**
 * Yields the bytes [start, end) of a file, piece by piece as they arrive. Throws StoreError('network') that names the file when fewer
 * arrive, SourceError when the hub requires a token.
 */
export async function* fetchRange(
  { name, size, url }: RemoteFile,
  start: number,
  end: number,
  { signal, access }: FetchOptions = {},
): AsyncGenerator<Uint8Array> {
  const fail = (what: string, cause?: unknown): unknown =>
    signal?.aborted ? cause : new StoreError('network', `${name}${what}`, { cause });
  const isWhole = start === 0 && end === size;
  const headers = { ...authorization(access, url!), ...(!isWhole && { range: `bytes=${start}-${end - 1}` }) };
  const response = await fetch(url!, { ...(signal && { signal }), headers }).catch((error: unknown) => {
    throw fail(' could not be fetched: the network failed', error);
  });
  if (!response.ok || !response.body) {
    const place = readFileUrl(url!);
    if (!place || ![401, 403].includes(response.status)) throw fail(` could not be fetched: HTTP ${response.status}`);
    const hub = { endpoint: place.endpoint, fetch, hasToken: 'authorization' in headers, tokenWords: TOKEN_WORDS };
    throw await fileRefusal(hub, place.id, place.commit, response, name);
  }
  // A server without range support sends the whole file from its beginning.
  let skip = response.status === 206 ? 0 : start;
  let left = end - start;
  const reader = response.body.getReader();
  try {
    while (left > 0) {
      const { value, done } = await reader.read().catch((error: unknown) => {
        throw fail(': the connection broke', error);
      });
      if (done) throw fail(` ended ${left} bytes early`);
      const bytes = value.subarray(Math.min(skip, value.length)).subarray(0, left);
      skip -= Math.min(skip, value.length);
      left -= bytes.length;
      if (bytes.length > 0) yield bytes;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
