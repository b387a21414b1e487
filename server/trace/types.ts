/** The interface between listeners and tracer; the tracer itself is loaded only if traces are wanted. */
import type { Generation } from '../http/route.ts';

/**
 * Phase of a request. Chat: `queue` until it is tokenised and admitted, `prefill` until the first token, then `decode`. Speech: `queue` until the first phonemes are
 * found, then `synthesis`. Transcription: `receive` until the upload is complete, `unpack` until it is decoded to samples, `encode` until the first segment, then
 * `decode`.
 */
export type Phase = 'queue' | 'prefill' | 'decode' | 'synthesis' | 'receive' | 'unpack' | 'encode';

/** A request to a model that has ended; times are milliseconds of performance.now(). */
export interface RequestTimes {
  /** The route's pattern, never the path. */
  readonly route: string;
  readonly generates: Generation;
  readonly method: string;
  readonly model: string;
  readonly status: number;
  readonly traceparent: string | undefined;
  readonly begun: number;
  /** Start of each phase, in order; a phase ends where the next begins. */
  readonly phases: ReadonlyMap<Phase, number>;
  readonly ended: number;
  /** Fields of the log line, mostly counts. */
  readonly note: Readonly<Record<string, unknown>>;
}

/** Records requests as traces. */
export interface Tracer {
  request(times: RequestTimes): void;
  /** Sends the spans that are queued. */
  flush(): Promise<void>;
}
