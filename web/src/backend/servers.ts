import { isLoopback } from '../../../sources/index.ts';
import type { ModelTask } from '../models/manifest.ts';

/** Ports of the three listeners of `npm start`. */
const PORTS: Readonly<Record<ModelTask, number>> = { chat: 3000, speech: 3001, transcription: 3002 };

/** Base URLs for a page at `href`: beside it when a Parley server serves it (chat there, the others on the next ports), else on this machine. */
export function guessServers(href: string, served: boolean): Readonly<Record<ModelTask, string>> {
  const { protocol, hostname, port } = new URL(href);
  const first = Number(port) || (protocol === 'https:' ? 443 : 80);
  const base = (task: ModelTask): string =>
    served ? `${protocol}//${hostname}:${first + PORTS[task] - PORTS.chat}/v1` : `http://${localName(hostname)}:${PORTS[task]}/v1`;
  return { chat: served ? new URL('/v1', href).href : base('chat'), speech: base('speech'), transcription: base('transcription') };
}

/** Whether requests can go there: `localhost:3000/v1` is an address too, but of a protocol called localhost. */
export const isWebAddress = (text: string): boolean => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);

/** Loopback pages keep their own spelling of it, because listeners may bind one family only. */
const localName = (hostname: string): string => (isLoopback(hostname) ? hostname : 'localhost');
