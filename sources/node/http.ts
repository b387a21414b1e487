/** A fetch that checks each redirect: where a token is sent, and what is reached without encryption. */
import { SourceError } from '../errors.ts';
import { isLoopback } from '../source.ts';

/** What `checkedFetch` allows and sends. */
export interface FetchRules {
  /** URL that the token is for: only its origin is sent it. */
  readonly endpoint: string;
  readonly token?: string;
  /** Underlying fetch; tests count its calls. */
  readonly fetch?: typeof fetch;
}

const MAX_REDIRECTS = 10;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const USER_AGENT = 'parley';

/** Returns a fetch for GET and HEAD that follows redirects itself; it throws SourceError for one that must not be followed. */
export function checkedFetch({ endpoint, token, fetch: below = globalThis.fetch }: FetchRules): typeof fetch {
  const home = new URL(endpoint).origin;
  return async (input, init) => {
    let url = new URL(typeof input === 'string' || input instanceof URL ? input : input.url);
    checkHop(url, undefined);
    // After a redirect elsewhere the token is not sent again, even if another leads back.
    let isHome = true;
    for (let hops = 0; hops <= MAX_REDIRECTS; hops++) {
      isHome &&= url.origin === home;
      const headers = new Headers(init?.headers);
      headers.delete('authorization');
      headers.set('user-agent', USER_AGENT);
      if (isHome && token !== undefined) headers.set('authorization', `Bearer ${token}`);
      const answer = await below(url, { ...init, headers, redirect: 'manual' });
      const location = answer.headers.get('location');
      if (!REDIRECTS.has(answer.status) || location === null) return answer;
      await answer.body?.cancel().catch(() => undefined);
      const next = parse(location, url);
      checkHop(next, url);
      url = next;
    }
    throw new SourceError('refused', `${url.host} redirects in a circle`);
  };
}

function parse(location: string, base: URL): URL {
  try {
    return new URL(location, base);
  } catch {
    throw new SourceError('refused', `${base.host} redirects to what is no address`);
  }
}

/** Checks a redirect: https may lead to https only, and http must stay on this machine. */
function checkHop(url: URL, from: URL | undefined): void {
  const who = from ? `${from.host} redirects to ` : '';
  if (url.username !== '' || url.password !== '')
    throw new SourceError('refused', `${who}${url.host} with a name and password in the address; refused`);
  const isPlain = url.protocol === 'http:' && isLoopback(url.hostname) && from?.protocol !== 'https:';
  if (url.protocol !== 'https:' && !isPlain)
    throw new SourceError('refused', `${who}${url.protocol}//${url.host}, which is not https; refused`);
}
