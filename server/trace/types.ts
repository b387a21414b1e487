/** What the listeners tell a tracer; the tracer itself is loaded only where traces are wanted. */

/** One request to a model that has ended; times by performance.now(). */
export interface RequestTimes {
  /** The pattern, never the path. */
  readonly route: string;
  readonly method: string;
  readonly model: string;
  readonly status: number;
  readonly traceparent: string | undefined;
  readonly begun: number;
  /** The engine has tokenised and admitted it. */
  readonly admitted?: number;
  /** Its first token, sound or segment. */
  readonly first?: number;
  readonly ended: number;
  /** The counts of the log line. */
  readonly note: Readonly<Record<string, unknown>>;
}

export interface Tracer {
  request(times: RequestTimes): void;
  /** Sends what waits. */
  flush(): Promise<void>;
}
