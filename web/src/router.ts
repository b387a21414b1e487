import { signal } from '@preact/signals';
import type { ModelTask } from './models/manifest.ts';

/** The views by their routes, in the order of the navigation. */
export const TITLES = { chat: 'Chat', speak: 'Speak', transcribe: 'Transcribe', models: 'Models', device: 'Device' } as const;
export type Route = keyof typeof TITLES;
export const ROUTES = Object.keys(TITLES) as readonly Route[];

/** Where the model of a task is used. */
export const VIEW_OF: Readonly<Record<ModelTask, Route>> = { chat: 'chat', speech: 'speak', transcription: 'transcribe' };

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
