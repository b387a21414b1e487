/**
 * The engine's operations, one row each. The Engine interface, the client on the caller's side, the host on the engine's side, and the server's supervisor with
 * its replay all derive from this table. To add an operation: a row here, a method of that name in its task, and a route.
 */
import type {
  ChatEvent, ChatRequest, EngineInfo, EngineStatus, ModelInfo, ProfileEntry, SampleFile, SpeechEvent, SpeechRequest, TokenizeRequest, TokenizerInfo, TranscriptionEvent, TranscriptionRequest,
} from './api.ts'; // prettier-ignore
import { methodsOf, stream, value } from './util/rpc.ts';
import type { Method, Methods, ValueOperation } from './util/rpc.ts';

/** A row of the table, with its request and result types erased. */
export interface OperationRow {
  readonly kind: 'stream' | 'value';
  /** The task that implements the operation; absent = the engine itself. */
  readonly task?: ModelInfo['task'];
  /** The request to replay a call with when its engine was lost after the event `first`; absent = the same request. */
  again?(request: unknown, first: unknown): unknown;
}

/**
 * `window` is the number of events in flight. It is large enough that a reader that keeps up never waits for a round trip, and small enough that a slow reader
 * soon stops its producer. Audio chunks are large, so there are fewer of them.
 */
export const OPERATIONS = {
  chat: { task: 'chat', ...stream<ChatRequest, ChatEvent>({ window: 64 }) },
  synthesize: {
    task: 'speech',
    ...stream<SpeechRequest, SpeechEvent>({ window: 4 }),
    // The `start` event has announced a seed, so the replay must use it.
    again: (request: SpeechRequest, first: SpeechEvent) => (first.type === 'start' ? { ...request, seed: first.seed } : request),
  },
  transcribe: { task: 'transcription', ...stream<TranscriptionRequest<Float32Array | SampleFile>, TranscriptionEvent>({ window: 16 }) },
  /** Token ids of a text by the chat model's tokenizer. */
  tokenize: { task: 'chat', ...value<TokenizeRequest, readonly number[]>() },
  /** Text of the chat model's token ids, special tokens included. Throws EngineError('invalid_request') for ids outside the vocabulary. */
  detokenize: { task: 'chat', ...value<readonly number[], string>() },
  /** The chat model's special tokens and template. */
  tokenizerInfo: { task: 'chat', ...value<void, TokenizerInfo>() },
  /** Drops the cached prefixes that no running sequence uses. */
  flushCache: { task: 'chat', ...value<void, void>() },
  /** Switches the timing of dispatches on or off; returns what was measured since it was switched on, longest first. */
  profile: value<boolean, readonly ProfileEntry[]>(),
} as const satisfies Readonly<Record<string, OperationRow>>;

export type OperationName = keyof typeof OPERATIONS;

/** The operations as methods. */
export type Operations = Methods<typeof OPERATIONS>;

/** How a task implements an operation. The value of a `value` operation may be returned without a promise. */
type Implementation<Row> =
  Row extends ValueOperation<infer Request, infer Value> ? (request: Request) => Value | Promise<Value> : Method<Row>;

/** The operations that a task must implement; those without a task belong to the engine itself. */
export type TaskOperations<Task extends ModelInfo['task'] | undefined> = {
  readonly [Name in OperationName as TaskOf<Name> extends Task ? Name : never]: Implementation<(typeof OPERATIONS)[Name]>;
};
type TaskOf<Name extends OperationName> = (typeof OPERATIONS)[Name] extends { readonly task: infer Task } ? Task : undefined;

/** All operations as methods. `make` makes one: a function that returns an iterator of events or a promise, depending on the row's kind. */
export function operations(
  make: (name: OperationName, row: OperationRow) => (request: unknown, signal: AbortSignal) => unknown,
): Operations {
  return methodsOf(OPERATIONS, (name) => make(name as OperationName, OPERATIONS[name as OperationName]));
}

/** An engine: its operations, status and end. Implemented by tasks/engine.ts, and by client.ts on the caller's side of a port. */
export interface Engine extends Operations {
  info(): EngineInfo;
  status(): EngineStatus;
  /** Aborts running requests and releases the device. */
  close(): Promise<void>;
}
