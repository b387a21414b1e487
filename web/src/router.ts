import { signal } from '@preact/signals';
import type { ModelTask } from './models/manifest.ts';

/** Titles of the views by route, in the order of the navigation. */
export const TITLES = { chat: 'Chat', speak: 'Speak', transcribe: 'Transcribe', models: 'Models', device: 'Device' } as const;
export type Route = keyof typeof TITLES;
export const ROUTES = Object.keys(TITLES) as readonly Route[];

/** The view that uses a task's model. */
export const VIEW_OF: Readonly<Record<ModelTask, Route>> = { chat: 'chat', speech: 'speak', transcription: 'transcribe' };

/** Routes in the URL's hash, because they work on any static host. */
export class Router {
  readonly route = signal(parseRoute(location.hash));

  constructor() {
    addEventListener('hashchange', () => (this.route.value = parseRoute(location.hash)));
  }

  go(route: Route): void {
    location.hash = `#/${route}`;
  }
}

/** The route of a hash `#/name`; the chat for anything else. */
function parseRoute(hash: string): Route {
  return ROUTES.find((route) => hash === `#/${route}`) ?? 'chat';
}
