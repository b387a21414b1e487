import { signal } from '@preact/signals';

export const ROUTES = ['chat', 'speak', 'transcribe', 'models', 'device'] as const;
export type Route = (typeof ROUTES)[number];

/** Hash routes, because they survive static hosting. */
export class Router {
  readonly route = signal(parseRoute(location.hash));

  constructor() {
    addEventListener('hashchange', () => (this.route.value = parseRoute(location.hash)));
  }

  go(route: Route): void {
    location.hash = `#/${route}`;
  }
}

/** The route of `#/name`; anything else is the chat. */
export function parseRoute(hash: string): Route {
  return ROUTES.find((route) => hash === `#/${route}`) ?? 'chat';
}
