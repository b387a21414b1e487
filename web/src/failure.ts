/** Failures as the page shows them: one sentence, and what the person can do. */
import { EngineError, toPlainError } from '../../engine/errors.ts';
import type { PlainError } from '../../engine/errors.ts';
import { SourceError } from '../../sources/index.ts';
import { StoreError } from './models/store-error.ts';
import { messageOf } from './util.ts';

/** An action that a button beside a failure offers. */
export type Remedy = 'retry' | 'restart' | 'newConversation' | 'runWithoutStoring' | 'manageModels' | 'useServer' | 'useTab' | 'device';

export interface Failure {
  readonly code: string;
  readonly message: string;
  readonly remedies: readonly Remedy[];
}

/** Carries a Failure that is already described to where it is shown. */
export class FailureError extends Error {
  readonly failure: Failure;

  constructor(failure: Failure) {
    super(failure.message);
    this.failure = failure;
  }
}

/** A server that cannot be reached, or that went away before its answer was complete; the message is for people. */
export class ServerGoneError extends Error {}

const REMEDIES: Readonly<Record<string, readonly Remedy[]>> = {
  device_lost: ['restart', 'useServer'],
  no_adapter: ['useServer', 'device'],
  out_of_memory: ['manageModels', 'useServer'],
  invalid_model: ['retry', 'manageModels'],
  queue_full: ['retry'],
  // No 'retry': the same request would not fit again.
  context_length_exceeded: ['newConversation', 'manageModels'],
  quota: ['runWithoutStoring', 'manageModels'],
  network: ['retry'],
  denied: ['manageModels'],
  damaged: ['retry', 'manageModels'],
  busy: ['retry'],
  unavailable: ['runWithoutStoring'],
  server: ['retry', 'useTab'],
};

/** Words for a remedy that is an engine setting which this page offers, by the setting's name. */
const WORDS: ReadonlyMap<string, string> = new Map([['ppSize', 'It may fit when both graphics cards share it (under Device).']]);

/** Describes anything thrown, except aborts, which are not failures. */
export function toFailure(error: unknown): Failure {
  if (error instanceof FailureError) return error.failure;
  if (error instanceof EngineError) return failureOf(toPlainError(error));
  if (error instanceof ServerGoneError) return failure('server', error.message);
  if (error instanceof SourceError) return failure(error.wantsToken ? 'denied' : error.kind, error.message);
  if (error instanceof StoreError) return failure(error.kind, error.message);
  return failure('internal', messageOf(error));
}

/** Describes an engine's error in the words of this page; of its remedies, only those that this page offers are named. */
export function failureOf({ code, message, remedies: ways = [] }: PlainError): Failure {
  const words = ways.flatMap(({ settings }) => settings.flatMap(({ name }) => WORDS.get(name) ?? []));
  return failure(code, words.length > 0 ? `${message}. ${words.join(' ')}` : message);
}

/** Makes a Failure with the remedies that belong to its code. */
export function failure(code: string, message: string): Failure {
  return { code, message, remedies: REMEDIES[code] ?? ['retry'] };
}

/** Whether an error is an abort, by the person or by a newer request. */
export function isAbort(error: unknown): boolean {
  return (error instanceof EngineError && error.code === 'aborted') || (error instanceof DOMException && error.name === 'AbortError');
}
