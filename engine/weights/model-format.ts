/** What a format of models says of itself: a file with this and a row in open-model-folder.ts is all that a new one needs. */
import type { Platform } from '../platform/platform.ts';
import type { ModelFolder } from './model-folder.ts';

/** What stands where a model is expected, as far as the platform can tell. */
export interface ModelPlace {
  readonly platform: Platform;
  readonly path: string;
  /** The name that a model there is served by. */
  readonly id: string;
  /** The names in a folder; undefined for a file, and where folders cannot be listed (browsers). */
  readonly names: readonly string[] | undefined;
  /** The first bytes of a file; none of a folder, and where folders cannot be told from files. */
  readonly head: Uint8Array;
}

/** How models of one format are known and opened. */
export interface ModelFormat {
  recognises(place: ModelPlace): boolean | Promise<boolean>;
  /** Throws EngineError('invalid_model') for what has the looks of the format and cannot be read. */
  open(place: ModelPlace): Promise<ModelFolder>;
}
