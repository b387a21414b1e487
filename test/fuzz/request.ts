/** HTTP/1.1 requests as bytes, wrong ones included: nothing here checks or completes anything. */
import type { ListenerName } from './case.ts';
import type { Rng } from './rng.ts';

export type HeaderList = readonly (readonly [name: string, value: string])[];

/** A request before it becomes bytes. */
export interface PlainRequest {
  readonly listener: ListenerName;
  readonly method: string;
  /** As it stands in the request line. */
  readonly target: string;
  /** All headers but the framing's. */
  readonly headers: HeaderList;
  readonly body?: Buffer;
  /** Default HTTP/1.1. */
  readonly version?: string;
  /** Headers that say how long the body is; default: Content-Length with the truth. */
  readonly framing?: HeaderList;
}

/** What the cases of a run have in common. */
export interface Situation {
  /** Key the server wants; undefined where it wants none. */
  readonly key: string | undefined;
}

/** A request of somebody who means well; `type` is the body's. */
export function plainRequest(
  { key }: Situation,
  listener: ListenerName,
  target: string,
  body?: { readonly type: string; readonly bytes: Buffer },
): PlainRequest {
  const headers: (readonly [string, string])[] = [['Host', '127.0.0.1']];
  if (key !== undefined) headers.push(['Authorization', `Bearer ${key}`]);
  if (body) headers.push(['Content-Type', body.type]);
  return { listener, method: body ? 'POST' : 'GET', target, headers, ...(body && { body: body.bytes }) };
}

/** The bytes of a request. Header values may hold any character; those above 255 become UTF-8. */
export function toBytes({ method, target, headers, body, version = 'HTTP/1.1', framing }: PlainRequest): Buffer {
  const lengths = framing ?? (body ? [['Content-Length', String(body.length)] as const] : []);
  const lines = [...headers, ...lengths].map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([encode(`${method} ${target} ${version}\r\n${lines.join('')}\r\n`), body ?? Buffer.alloc(0)]);
}

/** Latin 1 where that is enough, so that single bytes above 127 can be sent. */
function encode(text: string): Buffer {
  return /^[\u0000-\u00ff]*$/.test(text) ? Buffer.from(text, 'latin1') : Buffer.from(text, 'utf8');
}

/** The same headers with one set to a value, or left out. */
export function withHeader(headers: HeaderList, name: string, value: string | undefined): HeaderList {
  const others = headers.filter(([other]) => other.toLowerCase() !== name.toLowerCase());
  return value === undefined ? others : [...others, [name, value]];
}

/** A body in HTTP chunks of random sizes. */
export function chunked(rng: Rng, body: Buffer): Buffer {
  const pieces: Buffer[] = [];
  for (let at = 0; at < body.length;) {
    const piece = body.subarray(at, at + 1 + rng.integer(Math.max(1, body.length)));
    pieces.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n'));
    at += piece.length;
  }
  return Buffer.concat([...pieces, Buffer.from('0\r\n\r\n')]);
}
