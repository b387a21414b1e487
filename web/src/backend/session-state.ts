import type { EngineInfo } from '../../../engine/api.ts';
import type { Failure } from '../failure.ts';

/** The life of one task's engine in the tab. */
export type SessionState =
  | { readonly name: 'idle' }
  /** `left`: seconds that it will take yet, where that can be guessed. */
  | { readonly name: 'downloading' | 'checking'; readonly done: number; readonly total: number; readonly left?: number | undefined }
  /** Somebody else downloads the model, in another tab as a rule. */
  | { readonly name: 'elsewhere' }
  | { readonly name: 'loading' }
  | { readonly name: 'ready'; readonly info: EngineInfo }
  | { readonly name: 'lost' }
  | { readonly name: 'failed'; readonly failure: Failure };
