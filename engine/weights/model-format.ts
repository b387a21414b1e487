/** The contract of model formats: a new format is one file that implements it, and a row in open-model-folder.ts. */
import type { Platform } from '../platform/platform.ts';
import type { ModelFolder } from './model-folder.ts';

/** What is at a model's path, as far as the platform can tell. */
export interface ModelPlace {
  readonly platform: Platform;
  readonly path: string;
  /** The name that the model is served by. */
  readonly id: string;
  /** Names of the files in a folder; undefined for a file, and where folders cannot be listed (browsers). */
  readonly names: readonly string[] | undefined;
  /** The first bytes of a file; empty for a folder, and where folders cannot be told from files. */
  readonly head: Uint8Array;
}

/** Recognises and opens models of one format. */
export interface ModelFormat {
  recognises(place: ModelPlace): boolean | Promise<boolean>;
  /** Opens a model that `recognises` accepted; throws EngineError('invalid_model') where it cannot be read. */
  open(place: ModelPlace): Promise<ModelFolder>;
}
