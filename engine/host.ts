/**
 * The engine's side of a message port: answers the calls of an EngineClient (client.ts). Works over any port that carries
 * structured clones: a child process, a worker thread, a Web Worker.
 */
import type { ChatRequest, Engine, EngineInfo, EngineStatus, SpeechRequest, TokenizeRequest, TranscriptionRequest } from './api.ts';
import { EngineError } from './errors.ts';
import type { EngineErrorCode } from './errors.ts';

/** The little that is needed of a port; messages arrive in the order they were posted. */
export interface MessagePortLike {
  post(message: unknown, transfer?: readonly ArrayBuffer[]): void;
  onMessage(callback: (message: unknown) => void): void;
  onClose(callback: () => void): void;
}

/** The engine's methods and what they are asked with; those that return one value send `{ value }` as their only event. */
export type EngineCall =
  | { readonly method: 'chat'; readonly request: ChatRequest }
  | { readonly method: 'synthesize'; readonly request: SpeechRequest }
  | { readonly method: 'transcribe'; readonly request: TranscriptionRequest }
  | { readonly method: 'tokenize'; readonly request: TokenizeRequest }
  | { readonly method: 'detokenize'; readonly request: readonly number[] }
  | { readonly method: 'flushCache' };

/** From the client. `credits` is how many events it is ready to take; the host reads no further ahead than that. */
export type ClientMessage =
  | { readonly type: 'call'; readonly id: number; readonly call: EngineCall; readonly credits: number }
  | { readonly type: 'credit'; readonly id: number; readonly credits: number }
  | { readonly type: 'abort'; readonly id: number }
  | { readonly type: 'close' };

/** What happened to one call. */
export type CallNews =
  | { readonly type: 'event'; readonly id: number; readonly event: unknown }
  | { readonly type: 'end'; readonly id: number }
  | { readonly type: 'error'; readonly id: number; readonly error: PlainError };

/** From the host: everything of one tick in one message; `status` about ten times a second while it changes, else once a second. */
export type HostMessage =
  | { readonly type: 'hello'; readonly info: EngineInfo; readonly status: EngineStatus }
  | { readonly type: 'news'; readonly news: readonly CallNews[] }
  | { readonly type: 'status'; readonly status: EngineStatus }
  | { readonly type: 'closed' };

/** An EngineError as plain data: structured clones drop the fields of error subclasses. */
export interface PlainError {
  readonly code: EngineErrorCode;
  readonly message: string;
  readonly param?: string;
  readonly details?: Readonly<Record<string, number | string>>;
}

/** Anything thrown, as plain data; what is no EngineError is a bug and becomes `internal`. */
export function toPlainError(error: unknown): PlainError {
  if (!(error instanceof EngineError)) return { code: 'internal', message: error instanceof Error ? error.message : String(error) };
  const { code, message, param, details } = error;
  return { code, message, ...(param !== undefined && { param }), ...(details && { details }) };
}

/** The EngineError that a PlainError was made from. */
export function fromPlainError({ code, message, param, details }: PlainError): EngineError {
  return new EngineError(code, message, { ...(param !== undefined && { param }), ...(details && { details }) });
}

const STATUS_INTERVAL = 100; // ms
/** Unchanged snapshots are skipped, but never this many in a row: the client takes silence for a hang. */
const HEARTBEAT_EVERY = 10;
/**
 * Microtasks without news before a tick's news are sent. The sequences of one GPU step resolve together, each through a few
 * nested async iterators; waiting this long puts them all in one message, without waiting for a timer.
 */
const QUIET_MICROTASKS = 16;

/** Serves `engine` to the client at the other end of `port` until that asks to close or goes away; then the engine is closed. */
export function serveEngine(engine: Engine, port: MessagePortLike, log: (line: string) => void = () => {}): void {
  const calls = new Map<number, ServedCall>();
  const outbox = new Outbox(port);
  let lastStatus = engine.status();
  let skipped = 0;

  const pushStatus = (): void => {
    const status = engine.status();
    if (sameStatus(status, lastStatus) && ++skipped < HEARTBEAT_EVERY) return;
    lastStatus = status;
    skipped = 0;
    port.post({ type: 'status', status } satisfies HostMessage);
  };
  const timer = setInterval(pushStatus, STATUS_INTERVAL);

  const close = async (): Promise<void> => {
    clearInterval(timer);
    for (const call of calls.values()) call.abort();
    await engine.close();
  };

  port.onMessage((raw) => {
    const message = raw as ClientMessage;
    if (message.type === 'call') {
      const call = new ServedCall(message.id, message.credits, outbox, log);
      calls.set(message.id, call);
      void call.run(engine, message.call).finally(() => calls.delete(message.id));
    } else if (message.type === 'credit') calls.get(message.id)?.grant(message.credits);
    else if (message.type === 'abort') calls.get(message.id)?.abort();
    else void close().then(() => port.post({ type: 'closed' } satisfies HostMessage));
  });
  port.onClose(() => void close());
  port.post({ type: 'hello', info: engine.info(), status: lastStatus } satisfies HostMessage);
}

/** One running call: pulls events from the engine while the client has credit for them. */
class ServedCall {
  readonly #id: number;
  readonly #outbox: Outbox;
  readonly #log: (line: string) => void;
  readonly #controller = new AbortController();
  #credits: number;
  #wake: (() => void) | undefined;

  constructor(id: number, credits: number, outbox: Outbox, log: (line: string) => void) {
    this.#id = id;
    this.#credits = credits;
    this.#outbox = outbox;
    this.#log = log;
  }

  grant(credits: number): void {
    this.#credits += credits;
    this.#wake?.();
  }

  abort(): void {
    this.#controller.abort(new EngineError('aborted', 'the caller aborted the request'));
    this.#wake?.();
  }

  async run(engine: Engine, call: EngineCall): Promise<void> {
    const id = this.#id;
    const { signal } = this.#controller;
    try {
      for await (const event of startCall(engine, call, signal)) {
        this.#outbox.add({ type: 'event', id, event });
        this.#credits--;
        while (this.#credits <= 0 && !signal.aborted) await new Promise<void>((resolve) => (this.#wake = resolve));
        signal.throwIfAborted();
      }
      this.#outbox.add({ type: 'end', id });
    } catch (error) {
      if (!(error instanceof EngineError))
        this.#log(`engine bug in ${call.method}: ${error instanceof Error ? error.stack : String(error)}`);
      this.#outbox.add({ type: 'error', id, error: toPlainError(error) });
    }
  }
}

function startCall(engine: Engine, call: EngineCall, signal: AbortSignal): AsyncIterable<unknown> {
  if (call.method === 'chat') return engine.chat(call.request, signal);
  if (call.method === 'synthesize') return engine.synthesize(call.request, signal);
  if (call.method === 'transcribe') return engine.transcribe(call.request, signal);
  if (call.method === 'tokenize') return only(engine.tokenize(call.request));
  if (call.method === 'detokenize') return only(engine.detokenize(call.request));
  return only(engine.flushCache());
}

async function* only<T>(value: Promise<T>): AsyncGenerator<{ readonly value: T }> {
  yield { value: await value };
}

/** Collects the news of one tick and posts them as one message. */
class Outbox {
  readonly #port: MessagePortLike;
  #news: CallNews[] = [];
  #quiet = 0;

  constructor(port: MessagePortLike) {
    this.#port = port;
  }

  add(news: CallNews): void {
    this.#quiet = 0;
    if (this.#news.push(news) === 1) queueMicrotask(() => this.#settle());
  }

  #settle(): void {
    if (++this.#quiet < QUIET_MICROTASKS) return queueMicrotask(() => this.#settle());
    const news = this.#news;
    this.#news = [];
    this.#quiet = 0;
    this.#port.post({ type: 'news', news } satisfies HostMessage, transferable(news));
  }
}

/** Audio is handed over instead of copied where the port can; the engine does not use a chunk again. */
function transferable(news: readonly CallNews[]): ArrayBuffer[] {
  return news.flatMap((item) => {
    const samples = item.type === 'event' ? (item.event as { samples?: unknown }).samples : undefined;
    const whole = samples instanceof Float32Array && samples.byteLength === samples.buffer.byteLength;
    return whole && samples.buffer instanceof ArrayBuffer ? [samples.buffer] : [];
  });
}

function sameStatus(a: EngineStatus, b: EngineStatus): boolean {
  return (Object.keys(a) as (keyof EngineStatus)[]).every((key) => a[key] === b[key]);
}
