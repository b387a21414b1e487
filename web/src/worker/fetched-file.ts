/** A model's file at an address, where nothing of it is stored. */
import { SourceError } from '../../../sources/index.ts';

/** All of a file; undefined where there is none, or where a server answers its page for all that it does not have. What else stops it is no fault of the model: throws SourceError. */
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

/** A file below the address of a model's folder; throws SourceError where no model is there at all. */
export async function fileOfFolder(base: string, path: string): Promise<Blob | undefined> {
  const file = await fetchedFile(path);
  if (!file && path === `${base}/config.json`)
    throw new SourceError('missing', `there is no model at ${base}: its server has no ${path.slice(base.length + 1)} there`);
  return file;
}

/** What a server's refusal of a file is. */
export function refusalKind(status: number): 'missing' | 'denied' | 'network' {
  if ([404, 410].includes(status)) return 'missing';
  return [401, 403].includes(status) ? 'denied' : 'network';
}
