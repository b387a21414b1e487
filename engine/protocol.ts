/**
 * The engine's operations: a row each. Its interface, the client on the caller's side, the host on the engine's, the supervisor and the
 * replay of the server all derive from this table. A new operation is a row here, a method of its name in the task, and its route.
 */
import type {
  ChatEvent, ChatRequest, EngineInfo, EngineStatus, ModelInfo, ProfileEntry, SampleFile, SpeechEvent, SpeechRequest, TokenizeRequest, TranscriptionEvent, TranscriptionRequest,
} from './api.ts'; // prettier-ignore
import { methodsOf, stream, value } from './util/rpc.ts';
import type { Method, Methods, ValueOperation } from './util/rpc.ts';

/** A row, whatever its types. */
export interface OperationRow {
  readonly kind: 'stream' | 'value';
  /** The task whose method of the operation's name does it; absent = the engine's own. */
  readonly task?: ModelInfo['task'];
  /** The request with which a call is made again whose engine was lost after `first`, its first event. Absent = the same. */
  again?(request: unknown, first: unknown): unknown;
}

/**
 * Windows: enough that a reader that keeps up never waits for a round trip, little enough that one that does not stops its producer soon.
 * Audio chunks are large, so fewer of them.
 */
export const OPERATIONS = {
  chat: { task: 'chat', ...stream<ChatRequest, ChatEvent>({ window: 64 }) },
  synthesize: {
    task: 'speech',
    ...stream<SpeechRequest, SpeechEvent>({ window: 4 }),
    // The seed that was announced is the seed that is spoken with.
    again: (request: SpeechRequest, first: SpeechEvent) => (first.type === 'start' ? { ...request, seed: first.seed } : request),
  },
  transcribe: { task: 'transcription', ...stream<TranscriptionRequest<Float32Array | SampleFile>, TranscriptionEvent>({ window: 16 }) },
  /** The chat model's token ids of a text. */
  tokenize: { task: 'chat', ...value<TokenizeRequest, readonly number[]>() },
  /** Text of the chat model's token ids, special tokens included; throws EngineError('invalid_request') for ids it does not have. */
  detokenize: { task: 'chat', ...value<readonly number[], string>() },
  /** Forgets every cached prefix that no running chat reads. */
  flushCache: { task: 'chat', ...value<void, void>() },
  /** Switches timing of every dispatch on or off; gives what was measured meanwhile, longest first. */
  profile: value<boolean, readonly ProfileEntry[]>(),
} as const satisfies Readonly<Record<string, OperationRow>>;

export type OperationName = keyof typeof OPERATIONS;

/** The methods of the operations. */
export type Operations = Methods<typeof OPERATIONS>;

/** A task's implementation of an operation; one value may come at once. */
type Implementation<Row> =
  Row extends ValueOperation<infer Request, infer Value> ? (request: Request) => Value | Promise<Value> : Method<Row>;

/** What a task must implement: the operations with its name, or with none for the engine itself. */
export type TaskOperations<Task extends ModelInfo['task'] | undefined> = {
  readonly [Name in OperationName as TaskOf<Name> extends Task ? Name : never]: Implementation<(typeof OPERATIONS)[Name]>;
};
type TaskOf<Name extends OperationName> = (typeof OPERATIONS)[Name] extends { readonly task: infer Task } ? Task : undefined;

/** All methods, each made by `make`; it returns events or a promise, as the row says. */
export function operations(
  make: (name: OperationName, row: OperationRow) => (request: unknown, signal: AbortSignal) => unknown,
): Operations {
  return methodsOf(OPERATIONS, (name) => make(name as OperationName, OPERATIONS[name as OperationName]));
}

/** The operations and the engine's life. Implemented by tasks/engine.ts, and by client.ts on the caller's side of a port. */
export interface Engine extends Operations {
  info(): EngineInfo;
  status(): EngineStatus;
  /** Finishes nothing: aborts what runs, frees the device. */
  close(): Promise<void>;
}
