/**
 * Messages between the page and an engine worker about the worker itself. The engine's calls travel over a port of their own, in the messages of
 * engine/host.ts.
 */
import type { EngineConfig } from '../../../engine/config.ts';
import type { PlainError } from '../../../engine/errors.ts';

/** From the page, once. `port` serves the engine. */
export interface LoadMessage {
  readonly type: 'load';
  readonly config: Partial<EngineConfig>;
  readonly port: MessagePort;
}

/** From the worker. `started`: its script runs. After `failed` or `lost` it does nothing more and may be ended. */
export type WorkerMessage =
  | { readonly type: 'started' }
  | { readonly type: 'log'; readonly line: string }
  | { readonly type: 'failed'; readonly error: PlainError }
  | { readonly type: 'lost' };

/** Model folders with this prefix are read from the model store, others are URLs. */
export const STORE_SCHEME = 'store:';
