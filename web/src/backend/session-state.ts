import type { EngineInfo } from '../../../engine/api.ts';
import type { Failure } from '../failure.ts';

/** The life of one task's engine in the tab. */
export type SessionState =
  | { readonly name: 'idle' }
  /** `done` of `total` bytes; `left`: estimated seconds that remain, where known. */
  | { readonly name: 'downloading' | 'checking'; readonly done: number; readonly total: number; readonly left?: number | undefined }
  /** The model is being downloaded elsewhere, usually in another tab. */
  | { readonly name: 'elsewhere' }
  | { readonly name: 'loading' }
  | { readonly name: 'ready'; readonly info: EngineInfo }
  | { readonly name: 'lost' }
  | { readonly name: 'failed'; readonly failure: Failure };
