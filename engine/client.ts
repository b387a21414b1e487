/** The caller's side of a message port: a proxy of the engine at the other end (host.ts). */
import type { EngineInfo, EngineStatus } from './api.ts';
import { EngineError } from './errors.ts';
import type { ClientMessage, HostMessage, MessagePortLike } from './host.ts';
import { OPERATIONS } from './protocol.ts';
import type { Operations } from './protocol.ts';
import { EMPTY_STATUS } from './status.ts';
import { Caller } from './util/rpc.ts';

/** A proxy of an engine, usable once `ready` has resolved. */
export type EngineClient = EngineConnection & Operations;

/** Connects to the engine that `serveEngine` serves at the other end of `port`. `goneWords` is the message of calls once that engine is gone. */
export function connectEngine(port: MessagePortLike, goneWords = 'the engine is gone; it is being restarted'): EngineClient {
  const connection = new EngineConnection(port, goneWords);
  return Object.assign(connection, connection.caller.methods);
}

/** The members of EngineClient besides the operations. */
class EngineConnection {
  /** Resolves when the engine is loaded; rejects with EngineError('device_lost') if the port closes first. */
  readonly ready: Promise<void>;
  /** performance.now() of the last message of any kind; a live host sends at least one a second. */
  lastHeard = performance.now();
  readonly caller: Caller<typeof OPERATIONS>;
  readonly #post: (message: ClientMessage) => void;
  readonly #goneWords: string;
  readonly #closed: Promise<void>;
  #info: EngineInfo | undefined;
  #status = EMPTY_STATUS;
  #isClosed = false;
  #ready!: { resolve: () => void; reject: (error: EngineError) => void };
  #resolveClosed!: () => void;

  constructor(port: MessagePortLike, goneWords: string) {
    this.#goneWords = goneWords;
    this.#post = (message) => port.post(message);
    this.caller = new Caller(OPERATIONS, this.#post);
    this.ready = new Promise((resolve, reject) => (this.#ready = { resolve, reject }));
    // A client whose owner never waits for it must not take the process down.
    this.ready.catch(() => {});
    this.#closed = new Promise((resolve) => (this.#resolveClosed = resolve));
    port.onMessage((message) => this.#receive(message as HostMessage));
    port.onClose(() => this.#lose());
  }

  info(): EngineInfo {
    if (!this.#info) throw this.#isClosed ? this.#lost() : new EngineError('device_lost', 'the engine is still loading');
    return this.#info;
  }

  status(): EngineStatus {
    return this.#status;
  }

  async close(): Promise<void> {
    if (!this.#isClosed) this.#post({ type: 'close' });
    await this.#closed;
  }

  #receive(message: HostMessage): void {
    this.lastHeard = performance.now();
    if (message.type === 'news') this.caller.receive(message);
    else if (message.type === 'status') this.#status = message.status;
    else if (message.type === 'hello') {
      this.#info = message.info;
      this.#status = message.status;
      this.#ready.resolve();
    } else this.#lose();
  }

  #lose(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#status = { ...this.#status, state: 'lost', pending: false, running: 0, waiting: 0 };
    this.#ready.reject(this.#lost());
    this.caller.fail(this.#lost());
    this.#resolveClosed();
  }

  #lost(): EngineError {
    return new EngineError('device_lost', this.#goneWords);
  }
}
