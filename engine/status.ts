/** What the engine counts and holds at this moment. */

/** The chat model's part: counters since start and gauges. */
export interface ChatStatus {
  readonly running: number;
  readonly waiting: number;
  /** Prompt tokens of waiting chats that the prefix cache does not have; of many only an upper bound. */
  readonly waitingTokens: number;
  readonly kvPagesTotal: number;
  readonly kvPagesUsed: number;
  /** Of the layers that see a window only, whose pages are others; 0 where there are none. */
  readonly windowPagesTotal: number;
  readonly windowPagesUsed: number;
  readonly promptTokens: number;
  readonly generatedTokens: number;
  readonly cachedTokens: number;
  /** Draft tokens verified by speculative decoding, and how many of them were accepted. */
  readonly draftedTokens: number;
  readonly acceptedTokens: number;
}

/** Counters since start and gauges of this moment; cheap to take, never touches the GPU. */
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

/** The part of an engine without a chat model. */
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

/** What status() says before the engine has said anything. */
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
