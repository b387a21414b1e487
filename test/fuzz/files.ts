/** The playground's files and the routes of administrators: paths that lead out, encodings, ranges, methods. */
import type { FuzzCase, ListenerName } from './case.ts';
import { mutateJson, mutateText } from './json.ts';
import { plainRequest, toBytes } from './request.ts';
import type { HeaderList, Situation } from './request.ts';
import { chance, choose, logBetween } from './rng.ts';
import type { Rng } from './rng.ts';

/** Where somebody could hope to get out of a folder: this stands before the name of a file outside. */
const WAYS_OUT = ['/../', '/../../', '/%2e%2e/', '/%2e%2e/%2e%2e/', '/..%2f..%2f', '/..%5c..%5c', '/..\\..\\', '/....//....//', '/assets/../../../', '/assets/%2e%2e%2f%2e%2e%2f%2e%2e%2f', '/%252e%252e/', '/%c0%ae%c0%ae/', '/.//..//..//', '//', '/\0/../../', '/%00/../../', '/./', '/~/', '/..;/..;/']; // prettier-ignore
const OUTSIDE = ['package.json', 'server/main.ts', '.git/config', '.git/HEAD', 'etc/passwd', 'proc/self/environ', '.env', 'node_modules/express/package.json', '.parley/']; // prettier-ignore
const INSIDE = ['/', '/index.html', '/index.html/', '/index.html%20', '/index.htm', '/INDEX.HTML', '/service-worker.js', '/sw.js', '/manifest.webmanifest', '/assets', '/assets/', '/assets/none.js', '/favicon.ico', '/favicon.svg', '/_headers', '/models/', '/shaders/']; // prettier-ignore
const RANGES = ['bytes=0-0', 'bytes=0-', 'bytes=-5', 'bytes=-999999999', 'bytes=5-2', 'bytes=99999999-', 'bytes=0-0,5-9', 'bytes=', 'lines=1-2', 'bytes=a-b', 'bytes=0-18446744073709551616', `bytes=${'0-0,'.repeat(2000)}1-1`]; // prettier-ignore

const TIMES = ['Thu, 01 Jan 1970 00:00:00 GMT', 'Thu, 01 Jan 2099 00:00:00 GMT', 'yesterday', '0', ''];

/** What no answer about a file may contain: pieces of files that lie outside the playground's folder. */
export const SECRETS = [
  '"playwright-core"',
  'root:x:0:0',
  '[core]\n',
  'ref: refs/heads',
  'PATH=/',
  'runServer(process.argv',
  '"name": "express"',
];

/** A path of the page, or one that leads out of its folder. */
export function anyFile(rng: Rng, situation: Situation): Omit<FuzzCase, 'delivery'> {
  const target = chance(rng, 0.5) ? choose(rng, INSIDE) : choose(rng, WAYS_OUT) + choose(rng, OUTSIDE);
  const headers: HeaderList = choose<HeaderList>(rng, [
    [],
    [['Range', choose(rng, RANGES)]],
    [['If-Modified-Since', choose(rng, TIMES)]],
    [['If-None-Match', choose(rng, ['*', '"x"', 'W/"', '"'.repeat(1000)])]],
    [['If-Range', choose(rng, TIMES)], ['Range', choose(rng, RANGES)]], // prettier-ignore
    [['If-Match', '"x"'], ['If-Unmodified-Since', choose(rng, TIMES)]], // prettier-ignore
    [['Accept-Encoding', choose(rng, ['gzip', 'br', 'br;q=0, gzip;q=0.001', 'identity;q=0', '*;q=0', 'zstd, bogus', `gzip;q=${'9'.repeat(500)}`, ''])]], // prettier-ignore
  ]);
  const method = choose(rng, ['GET', 'GET', 'GET', 'HEAD', 'POST', 'DELETE', 'OPTIONS']);
  const base = plainRequest(situation, 'chat', target + choose(rng, ['', '', '?', '?x=%ff', '?../..', '#x']));
  return {
    name: `file/${method} ${target} ${headers.map(([name, value]) => `${name}: ${value.slice(0, 30)}`).join(' ')}`,
    listener: 'chat',
    method,
    bytes: toBytes({ ...base, method, headers: [...base.headers, ...headers] }),
    // A NUL or a backslash in a request line is no request at all.
    expect: { answers: target.includes('\0') || target.includes('\\') ? 'optional' : 'one' },
  };
}

const ROUTES = ['/flush_cache', '/abort_request', '/start_profile', '/stop_profile', '/get_server_info', '/server_info', '/metrics', '/health', '/healthz', '/livez', '/readyz', '/v1/health', '/health_generate', '/openapi.json', '/v1/models', '/v1/models/parley-chat', '/v1/models/nobody', '/v1/audio/voices', '/v1/audio/translations', '/models', '/v1/flush_cache', '/update_weights', '/v1/embeddings', '/v1/responses']; // prettier-ignore

/** A route around the three that compute, with or without a body. */
export function anyAdminRoute(rng: Rng, situation: Situation): Omit<FuzzCase, 'delivery'> {
  const listener = choose<ListenerName>(rng, ['chat', 'chat', 'speech', 'transcription']);
  const target = choose(rng, ROUTES);
  const body = { rid: 'nobody', abort_all: false, enable: true, activities: ['GPU'], num_steps: logBetween(rng, 1, 1e6) };
  const bytes = chance(rng, 0.5) ? Buffer.from(JSON.stringify(mutateJson(rng, body))) : mutateText(rng, JSON.stringify(body));
  const base = plainRequest(situation, listener, target, chance(rng, 0.6) ? { type: 'application/json', bytes } : undefined);
  const method = choose(rng, [base.method, base.method, base.method, 'HEAD', 'PUT', 'OPTIONS']);
  return { name: `admin/${method} ${target}`, listener, method, bytes: toBytes({ ...base, method }), expect: { answers: 'one' } };
}
