/**
 * Remote calls over a message port with structured clones: to a child process, a thread or a Web Worker. A table has the operations and their types; both sides get
 * their methods from it. Back-pressure works by credits: the caller grants a number of events, so a reader that stops reading stops the producer. All news of one tick
 * can travel in one message.
 */
import { EngineError, abortErrorOf, fromPlainError, toPlainError } from '../errors.ts';
import type { PlainError } from '../errors.ts';

/** An operation that answers with a stream of events. `types` exists for the compiler only. */
export interface StreamOperation<Request, Event> {
  readonly kind: 'stream';
  /** Events by which a call may be ahead of its reader; even, since credit is returned in halves. */
  readonly window: number;
  readonly types?: { readonly request: Request; readonly event: Event };
}

/** An operation that answers with one value. `types` exists for the compiler only. */
export interface ValueOperation<Request, Value> {
  readonly kind: 'value';
  readonly types?: { readonly request: Request; readonly value: Value };
}

/** Operations by name. */
export type OperationTable = Readonly<Record<string, StreamOperation<unknown, unknown> | ValueOperation<unknown, unknown>>>;

/** The signature of an operation's method. */
export type Method<Operation> =
  Operation extends StreamOperation<infer Request, infer Event>
    ? (request: Request, signal: AbortSignal) => AsyncIterable<Event>
    : Operation extends ValueOperation<infer Request, infer Value>
      ? (request: Request) => Promise<Value>
      : never;

/** The methods of a table's operations. */
export type Methods<Table extends OperationTable> = { readonly [Name in keyof Table]: Method<Table[Name]> };

/** Defines an operation that answers with a stream of events. */
export function stream<Request, Event>(options: { readonly window: number }): StreamOperation<Request, Event> {
  return { kind: 'stream', ...options };
}

/** Defines an operation that answers with one value. */
export function value<Request, Value>(): ValueOperation<Request, Value> {
  return { kind: 'value' };
}

/** Makes the methods of a table; `make` is given each operation's name and row. */
export function methodsOf<Table extends OperationTable>(
  table: Table,
  make: (name: string, operation: Table[string]) => (request: unknown, signal: AbortSignal) => unknown,
): Methods<Table> {
  return Object.fromEntries(Object.entries(table).map(([name, row]) => [name, make(name, row as Table[string])])) as Methods<Table>;
}

/** A message from the caller. `credits` is the number of (further) events that it accepts; the answering side produces no more. */
export type CallMessage =
  | { readonly type: 'call'; readonly id: number; readonly name: string; readonly request: unknown; readonly credits: number }
  | { readonly type: 'credit'; readonly id: number; readonly credits: number }
  | { readonly type: 'abort'; readonly id: number };

/** News of one call. The value of a value operation comes with its `end`. */
export type CallNews =
  | { readonly type: 'event'; readonly id: number; readonly event: unknown }
  | { readonly type: 'end'; readonly id: number; readonly value?: unknown }
  | { readonly type: 'error'; readonly id: number; readonly error: PlainError };

/** The news of one tick. */
export interface NewsMessage {
  readonly type: 'news';
  readonly news: readonly CallNews[];
}

/** The calling side. */
export class Caller<Table extends OperationTable> {
  readonly methods: Methods<Table>;
  readonly #post: (message: CallMessage) => void;
  readonly #calls = new Map<number, PendingCall>();
  #nextId = 1;
  #failure: EngineError | undefined;

  constructor(table: Table, post: (message: CallMessage) => void) {
    this.#post = post;
    this.methods = methodsOf(table, (name, operation) =>
      operation.kind === 'stream'
        ? (request, signal) => this.#stream(name, request, signal, operation.window)
        : (request) => this.#value(name, request),
    );
  }

  /** Takes a message of the answering side. */
  receive({ news }: NewsMessage): void {
    for (const item of news) this.#calls.get(item.id)?.receive(item);
  }

  /** Fails all running and later calls with `error`, because the answering side is gone. */
  fail(error: EngineError): void {
    this.#failure ??= error;
    // What was answered in full is still there for a slow reader.
    for (const call of this.#calls.values()) if (!call.endedByHost) call.settle(error);
  }

  async #value(name: string, request: unknown): Promise<unknown> {
    if (this.#failure) throw this.#failure;
    const { id, call } = this.#begin(name, request, 1);
    try {
      await call.next();
      return call.value;
    } finally {
      this.#calls.delete(id);
    }
  }

  async *#stream(name: string, request: unknown, signal: AbortSignal, window: number): AsyncGenerator<unknown, void, undefined> {
    if (signal.aborted) throw abortErrorOf(signal);
    if (this.#failure) throw this.#failure;
    const { id, call } = this.#begin(name, request, window);
    const stop = (): void => {
      if (this.#calls.delete(id) && !call.endedByHost && !this.#failure) this.#post({ type: 'abort', id });
    };
    const onAbort = (): void => {
      call.settle(abortErrorOf(signal));
      stop();
    };
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      for (let taken = 0; ;) {
        const item = await call.next();
        if (item === undefined) return;
        yield item.event;
        // Credit is returned half a window at a time, so that one message covers many events.
        if (++taken === window / 2) {
          taken = 0;
          if (!this.#failure) this.#post({ type: 'credit', id, credits: window / 2 });
        }
      }
    } finally {
      signal.removeEventListener('abort', onAbort);
      stop();
    }
  }

  #begin(name: string, request: unknown, credits: number): { readonly id: number; readonly call: PendingCall } {
    const id = this.#nextId++;
    const call = new PendingCall();
    this.#calls.set(id, call);
    this.#post({ type: 'call', id, name, request, credits });
    return { id, call };
  }
}

/** One call on the calling side, with the events that its reader has not taken yet: at most a window. */
class PendingCall {
  endedByHost = false;
  /** Result of a value operation, once it has ended. */
  value: unknown;
  readonly #events: { readonly event: unknown }[] = [];
  /** How the call ended: null = successfully; undefined while it runs. */
  #outcome: EngineError | null | undefined;
  #wake: (() => void) | undefined;

  receive(news: CallNews): void {
    if (news.type === 'event') this.#events.push(news);
    else {
      this.endedByHost = true;
      if (news.type === 'end') this.value = news.value;
      this.#outcome ??= news.type === 'end' ? null : fromPlainError(news.error);
    }
    this.#wake?.();
  }

  /** Ends the call from this side; events not yet read are dropped. */
  settle(error: EngineError): void {
    this.#events.length = 0;
    this.#outcome = error;
    this.#wake?.();
  }

  /** The next event, or undefined at the end; throws the error that the call ended with. */
  async next(): Promise<{ readonly event: unknown } | undefined> {
    while (this.#events.length === 0 && this.#outcome === undefined) await new Promise<void>((resolve) => (this.#wake = resolve));
    const event = this.#events.shift();
    if (event) return event;
    if (this.#outcome) throw this.#outcome;
    return undefined;
  }
}

/** The answering side. */
export class Answerer<Table extends OperationTable> {
  readonly #table: Table;
  readonly #methods: Methods<Table>;
  readonly #tell: (news: CallNews) => void;
  readonly #bug: (what: string) => void;
  readonly #calls = new Map<number, ServedCall>();

  /** `tell` sends news to the caller (see `batched`); `bug` is called with the stack of any error that is a bug. */
  constructor(table: Table, methods: Methods<Table>, tell: (news: CallNews) => void, bug: (what: string) => void) {
    this.#table = table;
    this.#methods = methods;
    this.#tell = tell;
    this.#bug = bug;
  }

  /** Takes a message of the caller; for a call, resolves when it has been answered. Never rejects. */
  async receive(message: CallMessage): Promise<void> {
    if (message.type === 'credit') this.#calls.get(message.id)?.grant(message.credits);
    else if (message.type === 'abort') this.#calls.get(message.id)?.abort();
    else await this.#serve(message);
  }

  /** Aborts every call. */
  abort(): void {
    for (const call of this.#calls.values()) call.abort();
  }

  async #serve({ id, name, request, credits }: Extract<CallMessage, { type: 'call' }>): Promise<void> {
    const call = new ServedCall(credits);
    this.#calls.set(id, call);
    try {
      const methods = this.#methods as Readonly<Record<string, (request: unknown, signal: AbortSignal) => unknown>>;
      const answer = methods[name]!(request, call.signal);
      if (this.#table[name]!.kind === 'value') this.#tell({ type: 'end', id, value: await answer });
      else {
        await call.forward(answer as AsyncIterable<unknown>, (event) => this.#tell({ type: 'event', id, event }));
        this.#tell({ type: 'end', id });
      }
    } catch (error) {
      if (!(error instanceof EngineError) || error.code === 'internal')
        this.#bug(`engine bug in ${name}: ${error instanceof Error ? error.stack : String(error)}`);
      this.#tell({ type: 'error', id, error: toPlainError(error) });
    } finally {
      this.#calls.delete(id);
    }
  }
}

/** One call on the answering side: pulls events while the caller has credit. */
class ServedCall {
  readonly #controller = new AbortController();
  #credits: number;
  #wake: (() => void) | undefined;

  constructor(credits: number) {
    this.#credits = credits;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  grant(credits: number): void {
    this.#credits += credits;
    this.#wake?.();
  }

  abort(): void {
    this.#controller.abort(new EngineError('aborted', 'the caller aborted the request'));
    this.#wake?.();
  }

  async forward(events: AsyncIterable<unknown>, send: (event: unknown) => void): Promise<void> {
    const { signal } = this;
    for await (const event of events) {
      send(event);
      this.#credits--;
      while (this.#credits <= 0 && !signal.aborted) await new Promise<void>((resolve) => (this.#wake = resolve));
      signal.throwIfAborted();
    }
  }
}

/**
 * Number of microtasks without news after which a tick's news are sent. The sequences of one GPU step resolve together, each through a few nested async iterators;
 * waiting this long collects them all in one message, without a timer.
 */
const QUIET_MICROTASKS = 16;

/** Returns a function that collects news and posts those of one tick as one message. */
export function batched(post: (message: NewsMessage, transfer: readonly ArrayBuffer[]) => void): (news: CallNews) => void {
  let news: CallNews[] = [];
  let quiet = 0;
  const settle = (): void => {
    if (++quiet < QUIET_MICROTASKS) return queueMicrotask(settle);
    const ready = news;
    news = [];
    quiet = 0;
    post({ type: 'news', news: ready }, transferable(ready));
  };
  return (item) => {
    quiet = 0;
    if (news.push(item) === 1) queueMicrotask(settle);
  };
}

/** Buffers of audio events, to be transferred instead of copied if the port can; their producer does not use a chunk again. */
function transferable(news: readonly CallNews[]): ArrayBuffer[] {
  return news.flatMap((item) => {
    const samples = item.type === 'event' ? (item.event as { samples?: unknown }).samples : undefined;
    const whole = samples instanceof Float32Array && samples.byteLength === samples.buffer.byteLength;
    return whole && samples.buffer instanceof ArrayBuffer ? [samples.buffer] : [];
  });
}
