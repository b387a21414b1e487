/**
 * Keeps the page itself (never models, never API calls) so that it opens without a network. Files under assets/ carry their hash in their names, so
 * the cache answers first; the page is asked of the network first. A new version waits until the person takes it.
 */
interface WorkerScope extends EventTarget {
  readonly location: Location;
  readonly registration: { readonly scope: string };
  readonly clients: { claim(): Promise<void> };
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
const CACHE = `parley-${SHELL.version}`;
const urls = SHELL.files.map((file) => new URL(file, scope.registration.scope).href);
const kept = new Set(urls);
const page = new URL('./', scope.registration.scope).href;

async function install(): Promise<void> {
  const cache = await caches.open(CACHE);
  await cache.addAll(urls.map((url) => new Request(url, { cache: 'reload' })));
}

async function activate(): Promise<void> {
  const old = (await caches.keys()).filter((name) => name.startsWith('parley-') && name !== CACHE);
  await Promise.all(old.map((name) => caches.delete(name)));
  await scope.clients.claim();
}

/**
 * This version’s copy of a file. Servers answer with `Vary: Origin`, and script tags with `crossorigin` send an Origin that the installing worker did
 * not: the copy is the same for all of them.
 */
async function keptCopy(url: string): Promise<Response | undefined> {
  return (await caches.open(CACHE)).match(url, { ignoreVary: true });
}

async function cacheFirst(request: Request, url: string): Promise<Response> {
  return (await keptCopy(url)) ?? fetch(request);
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
  if (request.mode === 'navigate') respondWith(networkFirst(request, page));
  else if (url.includes('/assets/') && kept.has(url)) respondWith(cacheFirst(request, url));
  else if (kept.has(url)) respondWith(networkFirst(request, url));
});

function bound(event: RequestEvent): { request: Request; respondWith: (response: Promise<Response>) => void } {
  return { request: event.request, respondWith: (response) => event.respondWith(response) };
}
