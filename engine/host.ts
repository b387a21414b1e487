/** The engine's side of a message port: answers the calls of an EngineClient (client.ts). */
import type { EngineInfo, EngineStatus } from './api.ts';
import { OPERATIONS } from './protocol.ts';
import type { Engine } from './protocol.ts';
import { Answerer, batched } from './util/rpc.ts';
import type { CallMessage, NewsMessage } from './util/rpc.ts';

/** The part of a message port that is used. Messages must arrive in the order in which they were posted. */
export interface MessagePortLike {
  post(message: unknown, transfer?: readonly ArrayBuffer[]): void;
  onMessage(callback: (message: unknown) => void): void;
  onClose(callback: () => void): void;
}

/** Messages from the client. */
export type ClientMessage = CallMessage | { readonly type: 'close' };

/** Messages from the host; `status` comes about ten times a second while it changes, else once a second. */
export type HostMessage =
  | NewsMessage
  | { readonly type: 'hello'; readonly info: EngineInfo; readonly status: EngineStatus }
  | { readonly type: 'status'; readonly status: EngineStatus }
  | { readonly type: 'closed' };

const STATUS_INTERVAL = 100; // ms
/** Unchanged snapshots are skipped, but never this many in a row: the client takes silence for a hang. */
const HEARTBEAT_EVERY = 10;

/** Serves `engine` to the client at the other end of `port`. Closes it when the client asks for that or goes away. */
export function serveEngine(engine: Engine, port: MessagePortLike, log: (line: string) => void = () => {}): void {
  const post = (message: HostMessage, transfer?: readonly ArrayBuffer[]): void => port.post(message, transfer);
  const answerer = new Answerer(OPERATIONS, engine, batched(post), log);
  let lastStatus = engine.status();
  let skipped = 0;

  const pushStatus = (): void => {
    const status = engine.status();
    if (sameStatus(status, lastStatus) && ++skipped < HEARTBEAT_EVERY) return;
    lastStatus = status;
    skipped = 0;
    post({ type: 'status', status });
  };
  const timer = setInterval(pushStatus, STATUS_INTERVAL);

  const close = async (): Promise<void> => {
    clearInterval(timer);
    answerer.abort();
    await engine.close();
  };

  port.onMessage((raw) => {
    const message = raw as ClientMessage;
    if (message.type === 'close') void close().then(() => post({ type: 'closed' }));
    else void answerer.receive(message);
  });
  port.onClose(() => void close());
  post({ type: 'hello', info: engine.info(), status: lastStatus });
}

function sameStatus(a: EngineStatus, b: EngineStatus): boolean {
  return (Object.keys(a) as (keyof EngineStatus)[]).every((key) => a[key] === b[key]);
}
