/** The caller's side of a message port: an Engine that runs elsewhere (host.ts serves it). */
import type {
  ChatEvent,
  ChatRequest,
  Engine,
  EngineInfo,
  EngineStatus,
  SpeechEvent,
  SpeechRequest,
  TokenizeRequest,
  TranscriptionEvent,
  TranscriptionRequest,
} from './api.ts';
import { EngineError } from './errors.ts';
import { fromPlainError } from './host.ts';
import type { CallNews, ClientMessage, EngineCall, HostMessage, MessagePortLike } from './host.ts';

/**
 * Events a call may be ahead of its reader: enough that a reader that keeps up never waits for a round trip, little enough
 * that one that does not stops its producer soon. Audio chunks are large, so fewer of them.
 */
const WINDOW: Readonly<Record<EngineCall['method'], number>> = {
  chat: 64,
  synthesize: 4,
  transcribe: 16,
  tokenize: 2,
  detokenize: 2,
  flushCache: 2,
};

/** What status() says before the host has said anything, and (with state 'lost') after the port has closed. */
export const EMPTY_STATUS: EngineStatus = {
  state: 'loading',
  lastProgress: 0,
  pending: false,
  running: 0,
  waiting: 0,
  gpuBuffers: 0,
  gpuBytes: 0,
  dispatches: 0,
  submits: 0,
  bytesRead: 0,
  kvPagesTotal: 0,
  kvPagesUsed: 0,
  promptTokens: 0,
  generatedTokens: 0,
  cachedTokens: 0,
  draftedTokens: 0,
  acceptedTokens: 0,
};

/** A proxy of the engine at the other end of a port. Usable once `ready` has resolved. */
export class EngineClient implements Engine {
  /** Resolves when the engine is loaded; rejects with EngineError('device_lost') if the port closes before. */
  readonly ready: Promise<void>;
  /** performance.now() of the last message of any kind: hosts that live speak at least once a second. */
  lastHeard = performance.now();
  readonly #port: MessagePortLike;
  readonly #calls = new Map<number, PendingCall>();
  readonly #closed: Promise<void>;
  #nextId = 1;
  #info: EngineInfo | undefined;
  #status = EMPTY_STATUS;
  #isClosed = false;
  #ready!: { resolve: () => void; reject: (error: EngineError) => void };
  #resolveClosed!: () => void;

  constructor(port: MessagePortLike) {
    this.#port = port;
    this.ready = new Promise((resolve, reject) => (this.#ready = { resolve, reject }));
    // A client whose owner never waits for it must not take the process down.
    this.ready.catch(() => {});
    this.#closed = new Promise((resolve) => (this.#resolveClosed = resolve));
    port.onMessage((message) => this.#receive(message as HostMessage));
    port.onClose(() => this.#lose());
  }

  info(): EngineInfo {
    if (!this.#info) throw this.#isClosed ? lost() : new EngineError('device_lost', 'the engine is still loading');
    return this.#info;
  }

  status(): EngineStatus {
    return this.#status;
  }

  chat(request: ChatRequest, signal: AbortSignal): AsyncIterable<ChatEvent> {
    return this.#stream<ChatEvent>({ method: 'chat', request }, signal);
  }

  synthesize(request: SpeechRequest, signal: AbortSignal): AsyncIterable<SpeechEvent> {
    return this.#stream<SpeechEvent>({ method: 'synthesize', request }, signal);
  }

  transcribe(request: TranscriptionRequest, signal: AbortSignal): AsyncIterable<TranscriptionEvent> {
    return this.#stream<TranscriptionEvent>({ method: 'transcribe', request }, signal);
  }

  tokenize(request: TokenizeRequest): Promise<readonly number[]> {
    return this.#value<readonly number[]>({ method: 'tokenize', request });
  }

  detokenize(request: readonly number[]): Promise<string> {
    return this.#value<string>({ method: 'detokenize', request });
  }

  flushCache(): Promise<void> {
    return this.#value<void>({ method: 'flushCache' });
  }

  async close(): Promise<void> {
    if (!this.#isClosed) this.#post({ type: 'close' });
    await this.#closed;
  }

  /** The only event of a call. */
  async #value<Value>(call: EngineCall): Promise<Value> {
    for await (const { value } of this.#stream<{ readonly value: Value }>(call, new AbortController().signal)) return value;
    throw new EngineError('internal', `${call.method} ended without a value`);
  }

  async *#stream<Event>(call: EngineCall, signal: AbortSignal): AsyncGenerator<Event, void, undefined> {
    if (signal.aborted) throw abortError(signal);
    if (this.#isClosed) throw lost();
    const id = this.#nextId++;
    const pending = new PendingCall();
    const stop = (): void => {
      if (this.#calls.delete(id) && !pending.endedByHost) this.#post({ type: 'abort', id });
    };
    const onAbort = (): void => {
      pending.settle(abortError(signal));
      stop();
    };
    this.#calls.set(id, pending);
    signal.addEventListener('abort', onAbort, { once: true });
    const window = WINDOW[call.method];
    this.#post({ type: 'call', id, call, credits: window });
    try {
      for (let taken = 0; ;) {
        const item = await pending.next();
        if (item === undefined) return;
        yield item.event as Event;
        // Returned in halves of the window, so that a message of credit stands for many events.
        if (++taken === window / 2) {
          taken = 0;
          this.#post({ type: 'credit', id, credits: window / 2 });
        }
      }
    } finally {
      signal.removeEventListener('abort', onAbort);
      stop();
    }
  }

  #post(message: ClientMessage): void {
    if (!this.#isClosed) this.#port.post(message);
  }

  #receive(message: HostMessage): void {
    this.lastHeard = performance.now();
    if (message.type === 'news') for (const news of message.news) this.#calls.get(news.id)?.receive(news);
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
    this.#ready.reject(lost());
    for (const call of this.#calls.values()) call.settle(lost());
    this.#resolveClosed();
  }
}

const lost = (): EngineError => new EngineError('device_lost', 'the engine is gone; it is being restarted');

function abortError(signal: AbortSignal): EngineError {
  return signal.reason instanceof EngineError
    ? signal.reason
    : new EngineError('aborted', 'the request was aborted', { cause: signal.reason });
}

/** What one call has received and its reader has not taken yet; at most a window's worth. */
class PendingCall {
  endedByHost = false;
  readonly #events: { readonly event: unknown }[] = [];
  /** undefined while running; null = ended well. */
  #outcome: EngineError | null | undefined;
  #wake: (() => void) | undefined;

  receive(news: CallNews): void {
    if (news.type === 'event') this.#events.push(news);
    else {
      this.endedByHost = true;
      this.#outcome ??= news.type === 'end' ? null : fromPlainError(news.error);
    }
    this.#wake?.();
  }

  /** Ends the call from this side; what it has received is dropped. */
  settle(error: EngineError): void {
    this.#events.length = 0;
    this.#outcome = error;
    this.#wake?.();
  }

  /** The next event, or undefined at the end; throws what the call ended with. */
  async next(): Promise<{ readonly event: unknown } | undefined> {
    while (this.#events.length === 0 && this.#outcome === undefined) await new Promise<void>((resolve) => (this.#wake = resolve));
    const event = this.#events.shift();
    if (event) return event;
    if (this.#outcome) throw this.#outcome;
    return undefined;
  }
}
