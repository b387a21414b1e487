/** Fetches a model's file that is not stored. */
import { SourceError } from '../../../sources/index.ts';

/**
 * Fetches a whole file; undefined if there is none, or if the server answers with an HTML page in its place. Throws SourceError for any
 * other failure, which is not the model's fault.
 */
export async function fetchedFile(url: string): Promise<Blob | undefined> {
  const answer = await fetch(url).catch((error: unknown) => {
    const isElsewhere = new URL(url, location.href).origin !== location.origin;
    const why = isElsewhere ? ', or does not let pages of other sites read it (CORS)' : '';
    throw new SourceError('unreachable', `${url} cannot be reached${why}`, { cause: error });
  });
  if (!answer.ok) {
    await answer.body?.cancel().catch(() => undefined);
    if ([404, 410].includes(answer.status)) return undefined;
    throw new SourceError(refusalKind(answer.status), `${url} could not be fetched: HTTP ${answer.status}`);
  }
  if (answer.headers.get('content-type')?.startsWith('text/html') === true) return undefined;
  return answer.blob().catch((error: unknown) => {
    throw new SourceError('network', `${url} could not be fetched: the connection broke`, { cause: error });
  });
}

/** Fetches a file below the address of a model's folder; throws SourceError if there is no model at all. */
export async function fileOfFolder(base: string, path: string): Promise<Blob | undefined> {
  const file = await fetchedFile(path);
  if (!file && path === `${base}/config.json`)
    throw new SourceError('missing', `there is no model at ${base}: its server has no ${path.slice(base.length + 1)} there`);
  return file;
}

/** Kind of a server's refusal of a file, by HTTP status. */
export function refusalKind(status: number): 'missing' | 'denied' | 'network' {
  if ([404, 410].includes(status)) return 'missing';
  return [401, 403].includes(status) ? 'denied' : 'network';
}
