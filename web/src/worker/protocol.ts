/**
 * Messages between the page and an engine worker about the worker itself. The engine's calls go over a port of their own, as messages of
 * engine/host.ts.
 */
import type { ModelDescription } from '../../../engine/api.ts';
import type { EngineConfig } from '../../../engine/config.ts';
import type { PlainError } from '../../../engine/errors.ts';
import type { ModelTask } from '../../../engine/model-types.ts';
import type { SourceError } from '../../../sources/index.ts';
import type { HubAccess } from '../models/hub-authorization.ts';
import type { PlacedModel } from './model-files.ts';

/** The name of a worker that runs the kernel self-test instead of an engine. */
export const SELF_TEST = 'parley self-test';

/** Message from the page, once: load the model and serve the engine at `port`. */
export interface LoadMessage {
  readonly type: 'load';
  readonly config: Partial<EngineConfig>;
  readonly model: PlacedModel & { readonly task: ModelTask };
  /** URL of Silero VAD's weights, for a transcription model. */
  readonly vad?: string;
  readonly port: MessagePort;
}

/** Message from the page, instead of LoadMessage: describe the model from headers alone. */
export interface DescribeMessage {
  readonly type: 'describe';
  readonly model: PlacedModel;
  readonly access?: HubAccess | undefined;
}

/**
 * Messages from the worker. `started`: its script runs; `refused`: the source of the files refused one. After `described`, `refused`,
 * `failed` or `lost` it does nothing more and may be terminated.
 */
export type WorkerMessage =
  | { readonly type: 'started' }
  | { readonly type: 'log'; readonly line: string }
  | { readonly type: 'described'; readonly description: ModelDescription }
  | { readonly type: 'refused'; readonly error: Pick<SourceError, 'kind' | 'message' | 'wantsToken'> }
  | { readonly type: 'failed'; readonly error: PlainError }
  | { readonly type: 'lost' };
