import { isLoopback } from '../../../sources/index.ts';
import type { ModelTask } from '../models/manifest.ts';

/** Ports of the three listeners of `npm start`. */
const PORTS: Readonly<Record<ModelTask, number>> = { chat: 3000, speech: 3001, transcription: 3002 };

/**
 * Guesses the listeners' base URLs for a page at `href`: on its own host when a Parley server serves it (chat there, the others on the next
 * ports), else on this machine.
 */
export function guessServers(href: string, served: boolean): Readonly<Record<ModelTask, string>> {
  const { protocol, hostname, port } = new URL(href);
  const first = Number(port) || (protocol === 'https:' ? 443 : 80);
  const base = (task: ModelTask): string =>
    served ? `${protocol}//${hostname}:${first + PORTS[task] - PORTS.chat}/v1` : `http://${localName(hostname)}:${PORTS[task]}/v1`;
  return { chat: served ? new URL('/v1', href).href : base('chat'), speech: base('speech'), transcription: base('transcription') };
}

/** Whether a text is an http or https URL. `localhost:3000/v1` parses as a URL too, but with the protocol `localhost:`. */
export const isWebAddress = (text: string): boolean => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);

/** Host name of the listeners. A page on a loopback address keeps its own spelling, because listeners may bind only IPv4 or only IPv6. */
const localName = (hostname: string): string => (isLoopback(hostname) ? hostname : 'localhost');
