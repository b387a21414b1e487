/**
 * Service worker that caches the page itself (never models or API calls), so that it opens offline. Files under assets/ have their hash in
 * their names and are cache-first; the page is network-first. A new version waits until the person takes it, and keeps the files of the
 * previous version for tabs that still run it, because the server no longer has what those load later.
 */
interface WorkerScope extends EventTarget {
  readonly location: Location;
  readonly registration: { readonly scope: string };
  readonly clients: {
    claim(): Promise<void>;
    matchAll(options: {
      readonly type: 'window';
      readonly includeUncontrolled: true;
    }): Promise<readonly { readonly id: string; readonly url: string }[]>;
  };
  skipWaiting(): Promise<void>;
}
interface LifecycleEvent extends Event {
  waitUntil(work: Promise<unknown>): void;
}
interface RequestEvent extends LifecycleEvent {
  readonly request: Request;
  respondWith(response: Promise<Response>): void;
}

const scope = self as unknown as WorkerScope;
// Filled in by the build: { version, files }.
const SHELL = JSON.parse('__SHELL__') as { readonly version: string; readonly files: readonly string[] };
const path = new URL(scope.registration.scope).pathname;
/**
 * Prefix of this page's caches: pages below other paths of this origin have their own. A path contains no space, so no prefix begins with
 * another.
 */
const OWN = `parley ${path} `;
const CACHE = OWN + SHELL.version;
/** Cache names of earlier versions, which did not contain the path. */
const SHARED = /^parley-\w+$/;
const urls = SHELL.files.map((file) => new URL(file, scope.registration.scope).href);
const kept = new Set(urls);
const page = new URL('./', scope.registration.scope).href;

async function install(): Promise<void> {
  const cache = await caches.open(CACHE);
  await cache.addAll(urls.map((url) => new Request(url, { cache: 'reload' })));
}

/** What existed when this version took over; kept in its cache, because browsers end service workers at any time. */
interface Before {
  readonly caches: readonly string[];
  /** Client ids of the tabs that run the versions in these caches. */
  readonly tabs: readonly string[];
}
const BEFORE = new URL('before', scope.registration.scope).href;
/** Whether files of earlier versions may be left. */
let isLeft = true;

async function activate(): Promise<void> {
  const old = (await caches.keys()).filter((name) => (name.startsWith(OWN) && name !== CACHE) || SHARED.test(name));
  const before: Before = { caches: old, tabs: await openTabs() };
  if (old.length > 0) await (await caches.open(CACHE)).put(BEFORE, new Response(JSON.stringify(before)));
  await scope.clients.claim();
  await forget();
}

async function openTabs(): Promise<string[]> {
  // All tabs of the origin.
  const tabs = await scope.clients.matchAll({ type: 'window', includeUncontrolled: true });
  return tabs.filter(({ url }) => url.startsWith(page)).map(({ id }) => id);
}

/** Deletes the files of earlier versions once no tab runs them any more. */
async function forget(): Promise<void> {
  if (!isLeft) return;
  const cache = await caches.open(CACHE);
  const before = (await (await cache.match(BEFORE))?.json()) as Before | undefined;
  const open = await openTabs();
  if (before?.tabs.some((id) => open.includes(id))) return;
  isLeft = false;
  await Promise.all((before?.caches ?? []).map((name) => (SHARED.test(name) ? forgetShared(name) : caches.delete(name))));
  await cache.delete(BEFORE);
}

/** Deletes this page's entries of a cache that pages below other paths may share, and the cache itself if no other entries are left. */
async function forgetShared(name: string): Promise<void> {
  const cache = await caches.open(name);
  const all = (await cache.keys()).map(({ url }) => url);
  const pages = all.filter((url) => url.endsWith('/'));
  // A page may lie below another: a file belongs to the nearest.
  const pageOf = (url: string): string | undefined => pages.filter((other) => url.startsWith(other)).sort((a, b) => b.length - a.length)[0];
  const own = all.filter((url) => pageOf(url) === page);
  await Promise.all(own.map((url) => cache.delete(url, { ignoreVary: true })));
  // An empty cache is being filled by another page.
  if (own.length > 0 && own.length === all.length) await caches.delete(name);
}

/**
 * Returns this version's copy of a file. Vary is ignored: servers answer with `Vary: Origin`, and script tags with `crossorigin` send an
 * Origin that the installing worker did not, but the file is the same.
 */
async function keptCopy(url: string): Promise<Response | undefined> {
  return (await caches.open(CACHE)).match(url, { ignoreVary: true });
}

async function cacheFirst(request: Request, url: string): Promise<Response> {
  return (await keptCopy(url)) ?? fetch(request);
}

/** Returns a file that this version does not have: usually one of the previous version, for its tabs. */
async function earlierCopy(request: Request, url: string): Promise<Response> {
  return (await caches.match(url, { ignoreVary: true })) ?? fetch(request);
}

async function networkFirst(request: Request, url: string): Promise<Response> {
  try {
    return await fetch(request);
  } catch (error) {
    const kept = await keptCopy(url);
    if (kept) return kept;
    throw error;
  }
}

scope.addEventListener('install', (event) => (event as LifecycleEvent).waitUntil(install()));
scope.addEventListener('activate', (event) => (event as LifecycleEvent).waitUntil(activate()));
scope.addEventListener('message', (event) => {
  if ((event as MessageEvent).data === 'take-over') void scope.skipWaiting();
});
scope.addEventListener('fetch', (event) => {
  const { request, respondWith } = bound(event as RequestEvent);
  if (request.method !== 'GET') return;
  const url = request.url.replace(/[?#].*$/, '');
  const isAsset = url.startsWith(`${page}assets/`);
  if (request.mode === 'navigate') respondWith(networkFirst(request, page));
  else if (isAsset && kept.has(url)) respondWith(cacheFirst(request, url));
  else if (kept.has(url)) respondWith(networkFirst(request, url));
  else if (isAsset) respondWith(earlierCopy(request, url));
  // Checked whenever a tab loads an asset, because it may just have left an earlier version.
  if (isAsset) (event as RequestEvent).waitUntil(forget());
});

function bound(event: RequestEvent): { request: Request; respondWith: (response: Promise<Response>) => void } {
  return { request: event.request, respondWith: (response) => event.respondWith(response) };
}
