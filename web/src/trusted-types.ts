/**
 * The page's content security policy allows script URLs from one Trusted Types policy only. These two functions need one, and both load
 * files of the page's own origin.
 */
interface UrlPolicy {
  createScriptURL(url: string): unknown;
}

function policy(): UrlPolicy {
  const scope = globalThis as unknown as {
    trustedTypes?: { createPolicy(name: string, rules: { createScriptURL(url: string): string }): UrlPolicy };
    parleyPolicy?: UrlPolicy;
  };
  const sameOrigin = (url: string): string => {
    const resolved = new URL(url, document.baseURI);
    if (resolved.origin !== location.origin) throw new TypeError(`script of another origin: ${resolved.origin}`);
    return resolved.href;
  };
  // A policy name may be created once, and modules may be evaluated again by hot reload.
  scope.parleyPolicy ??= scope.trustedTypes?.createPolicy('parley', { createScriptURL: sameOrigin }) ?? { createScriptURL: sameOrigin };
  return scope.parleyPolicy;
}

/** Starts a module worker of the page's own origin. */
export function startWorker(url: string, name: string): Worker {
  return new Worker(policy().createScriptURL(url) as string, { type: 'module', name });
}

/** Registers the service worker of this page's folder. */
export async function registerServiceWorker(url: string): Promise<ServiceWorkerRegistration> {
  return navigator.serviceWorker.register(policy().createScriptURL(url) as string);
}
