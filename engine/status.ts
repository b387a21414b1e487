/** Counters and gauges of a running engine. */

/** The chat model's counters since start, and its gauges. */
export interface ChatStatus {
  readonly running: number;
  readonly waiting: number;
  /** Prompt tokens of waiting sequences that are not in the prefix cache; an upper bound if many wait. */
  readonly waitingTokens: number;
  readonly kvPagesTotal: number;
  readonly kvPagesUsed: number;
  /** Pages of the sliding-window layers, which have a pool of their own; 0 if the model has none. */
  readonly windowPagesTotal: number;
  readonly windowPagesUsed: number;
  readonly promptTokens: number;
  readonly generatedTokens: number;
  readonly cachedTokens: number;
  /** Draft tokens verified by speculative decoding, and how many of them were accepted. */
  readonly draftedTokens: number;
  readonly acceptedTokens: number;
}

/** The engine's counters since start, and its gauges. Cheap to take: it never touches the GPU. */
export interface EngineStatus extends ChatStatus {
  readonly state: 'loading' | 'ready' | 'lost' | 'closing';
  /** performance.now() of the last completed GPU submission, and whether work is pending. */
  readonly lastProgress: number;
  readonly pending: boolean;
  readonly gpuBuffers: number;
  readonly gpuBytes: number;
  readonly dispatches: number;
  readonly submits: number;
  readonly bytesRead: number;
}

/** ChatStatus of an engine without a chat model. */
export const EMPTY_CHAT_STATUS: ChatStatus = {
  running: 0,
  waiting: 0,
  waitingTokens: 0,
  kvPagesTotal: 0,
  kvPagesUsed: 0,
  windowPagesTotal: 0,
  windowPagesUsed: 0,
  promptTokens: 0,
  generatedTokens: 0,
  cachedTokens: 0,
  draftedTokens: 0,
  acceptedTokens: 0,
};

/** What a client's status() returns before the engine has sent one. */
export const EMPTY_STATUS: EngineStatus = {
  state: 'loading',
  lastProgress: 0,
  pending: false,
  ...EMPTY_CHAT_STATUS,
  gpuBuffers: 0,
  gpuBytes: 0,
  dispatches: 0,
  submits: 0,
  bytesRead: 0,
};
