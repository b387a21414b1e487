/** What the listeners tell a tracer; the tracer itself is loaded only where traces are wanted. */

/**
 * What a request is at. Chat: `queue` until it is tokenised and admitted, `prefill` until the first token, `decode`. Speech: `queue` until the first phonemes are
 * found, `synthesis`. Transcription: `receive` until the upload is here, `unpack` until it is samples, `encode` until the first segment is written, `decode`.
 */
export type Phase = 'queue' | 'prefill' | 'decode' | 'synthesis' | 'receive' | 'unpack' | 'encode';

/** One request to a model that has ended; times by performance.now(). */
export interface RequestTimes {
  /** The pattern, never the path. */
  readonly route: string;
  readonly method: string;
  readonly model: string;
  readonly status: number;
  readonly traceparent: string | undefined;
  readonly begun: number;
  /** When each began, in the order of their beginnings; each ends where the next begins. */
  readonly phases: ReadonlyMap<Phase, number>;
  readonly ended: number;
  /** The counts of the log line. */
  readonly note: Readonly<Record<string, unknown>>;
}

export interface Tracer {
  request(times: RequestTimes): void;
  /** Sends what waits. */
  flush(): Promise<void>;
}
