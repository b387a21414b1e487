/**
 * Calls over a message port that carries structured clones: a child process, a thread, a Web Worker. A table names the operations and
 * their types; from it both sides get their methods. The caller gives credit for so many events, so a reader that stops reading stops its
 * producer. What happens to all calls in one tick can travel in one message.
 */
import { EngineError, abortErrorOf, fromPlainError, toPlainError } from '../errors.ts';
import type { PlainError } from '../errors.ts';

/** An operation that answers with events. `Types` exists for the compiler only. */
export interface StreamOperation<Request, Event> {
  readonly kind: 'stream';
  /** Events a call may be ahead of its reader. */
  readonly window: number;
  readonly types?: { readonly request: Request; readonly event: Event };
}

/** An operation that answers with one value. */
export interface ValueOperation<Request, Value> {
  readonly kind: 'value';
  readonly types?: { readonly request: Request; readonly value: Value };
}

/** Operations by their names. */
export type OperationTable = Readonly<Record<string, StreamOperation<unknown, unknown> | ValueOperation<unknown, unknown>>>;

/** The function an operation is called by. */
export type Method<Operation> =
  Operation extends StreamOperation<infer Request, infer Event>
    ? (request: Request, signal: AbortSignal) => AsyncIterable<Event>
    : Operation extends ValueOperation<infer Request, infer Value>
      ? (request: Request) => Promise<Value>
      : never;

/** The methods of a table's operations. */
export type Methods<Table extends OperationTable> = { readonly [Name in keyof Table]: Method<Table[Name]> };

/** A row for an operation that answers with events. */
export function stream<Request, Event>(options: { readonly window: number }): StreamOperation<Request, Event> {
  return { kind: 'stream', ...options };
}

/** A row for an operation that answers with one value. */
export function value<Request, Value>(): ValueOperation<Request, Value> {
  return { kind: 'value' };
}

/** The methods of a table, each made by `make` from its name and its row. */
export function methodsOf<Table extends OperationTable>(
  table: Table,
  make: (name: string, operation: Table[string]) => (request: unknown, signal: AbortSignal) => unknown,
): Methods<Table> {
  return Object.fromEntries(Object.entries(table).map(([name, row]) => [name, make(name, row as Table[string])])) as Methods<Table>;
}

/** From the caller. `credits` is how many events it is ready to take; the answering side reads no further ahead than that. */
export type CallMessage =
  | { readonly type: 'call'; readonly id: number; readonly name: string; readonly request: unknown; readonly credits: number }
  | { readonly type: 'credit'; readonly id: number; readonly credits: number }
  | { readonly type: 'abort'; readonly id: number };

/** What happened to one call. An operation that answers with one value ends with it. */
export type CallNews =
  | { readonly type: 'event'; readonly id: number; readonly event: unknown }
  | { readonly type: 'end'; readonly id: number; readonly value?: unknown }
  | { readonly type: 'error'; readonly id: number; readonly error: PlainError };

/** Everything of one tick. */
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

  /** Takes what the other side says. */
  receive({ news }: NewsMessage): void {
    for (const item of news) this.#calls.get(item.id)?.receive(item);
  }

  /** Ends the running calls with `error`, and every later one: the other side is gone. */
  fail(error: EngineError): void {
    this.#failure ??= error;
    for (const call of this.#calls.values()) call.settle(error);
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
        // Returned in halves of the window, so that a message of credit stands for many events.
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

/** What one call has received and its reader has not taken yet; at most a window's worth. */
class PendingCall {
  endedByHost = false;
  /** What a call of one value ended with. */
  value: unknown;
  readonly #events: { readonly event: unknown }[] = [];
  /** undefined while running; null = ended well. */
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

/** The answering side. */
export class Answerer<Table extends OperationTable> {
  readonly #table: Table;
  readonly #methods: Methods<Table>;
  readonly #tell: (news: CallNews) => void;
  readonly #bug: (what: string) => void;
  readonly #calls = new Map<number, ServedCall>();

  /** `tell` sends news to the caller (see `batched`); `bug` is told what was thrown that is no EngineError. */
  constructor(table: Table, methods: Methods<Table>, tell: (news: CallNews) => void, bug: (what: string) => void) {
    this.#table = table;
    this.#methods = methods;
    this.#tell = tell;
    this.#bug = bug;
  }

  /** Takes what the caller says; resolves, for a call, when its answer has been told. Never rejects. */
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
      if (!(error instanceof EngineError)) this.#bug(`engine bug in ${name}: ${error instanceof Error ? error.stack : String(error)}`);
      this.#tell({ type: 'error', id, error: toPlainError(error) });
    } finally {
      this.#calls.delete(id);
    }
  }
}

/** One running call: pulls events while the caller has credit for them. */
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
 * Microtasks without news before a tick's news are sent. The sequences of one GPU step resolve together, each through a few
 * nested async iterators; waiting this long puts them all in one message, without waiting for a timer.
 */
const QUIET_MICROTASKS = 16;

/** Collects the news of one tick and posts them as one message. */
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

/** Audio is handed over instead of copied where the port can; its maker does not use a chunk again. */
function transferable(news: readonly CallNews[]): ArrayBuffer[] {
  return news.flatMap((item) => {
    const samples = item.type === 'event' ? (item.event as { samples?: unknown }).samples : undefined;
    const whole = samples instanceof Float32Array && samples.byteLength === samples.buffer.byteLength;
    return whole && samples.buffer instanceof ArrayBuffer ? [samples.buffer] : [];
  });
}
