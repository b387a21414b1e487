/**
 * Manifests: the files of a model. The build writes those of the bundled models, find-model.ts and picked-model.ts make those of others.
 */

import type { ModelDescription, ModelInfo } from '../../../engine/api.ts';
import type { ModelTask } from '../../../engine/model-types.ts';

/** Bytes per stored and hashed chunk of a file; a broken download loses at most this much. */
export const CHUNK_BYTES = 8 * 2 ** 20;

export type { ModelTask };

export interface ManifestFile {
  readonly name: string;
  readonly size: number;
  /** Address of the file, relative to the page or absolute; absent for picked files. */
  readonly url?: string;
  /** SHA-256 of each chunk in hex; empty = unknown until the download records them. */
  readonly sha256: readonly string[];
  /** Hash of the whole file by its publisher: SHA-256 of its bytes, or git's SHA-1 (`blob <size>\0`, then the bytes). */
  readonly published?: { readonly kind: 'sha256' | 'git'; readonly hex: string };
  /** The server's Last-Modified header, verbatim. */
  readonly modified?: string;
}

/** What views say about a model: from its files, and from the engine once it has been loaded. Absent = unknown. */
export interface ModelAbout {
  /** Format in which it is published, such as GGUF Q4_K_M; absent = safetensors. */
  readonly format?: string;
  /** Approximate device memory, in bytes; for chat with a conversation that fills the context. */
  readonly memoryBytes?: number;
  /** Approximate bytes of the weights, where memoryBytes is unknown. */
  readonly weightBytes?: number;
  /** Context length in tokens (chat). */
  readonly contextLength?: number;
  /** Names of voices, and sample rate in Hz (speech). */
  readonly voices?: readonly string[];
  readonly sampleRate?: number;
  /** Languages by ISO 639-1 code (transcription). */
  readonly languages?: readonly string[];
}

export interface ModelManifest {
  readonly id: string;
  readonly task: ModelTask;
  /** config.json's model_type. */
  readonly modelType: string;
  readonly source: 'bundled' | 'hub' | 'address' | 'local';
  readonly files: readonly ManifestFile[];
  /** Name of the file that is the model; absent = the folder of all files is. */
  readonly main?: string;
  readonly about?: ModelAbout;
}

/** Most tokens of context in a tab. */
export const TAB_CONTEXT = 8192;

/** Returns a ModelAbout from a description of the model's files. */
export function aboutOf(description: ModelDescription): ModelAbout {
  const { ownContextLength, weightBytes, tokenBytes, windowBytes = 0 } = description;
  if (ownContextLength === undefined || tokenBytes === undefined) return { ...loadedAbout(description), weightBytes };
  const contextLength = Math.min(ownContextLength, TAB_CONTEXT);
  return { ...loadedAbout(description), contextLength, memoryBytes: weightBytes + tokenBytes * contextLength + windowBytes };
}

/** Returns a ModelAbout from a loaded model's info. */
export function loadedAbout({
  format,
  contextLength,
  voices,
  sampleRate,
  languages,
}: Pick<ModelInfo, 'format' | 'contextLength' | 'voices' | 'sampleRate' | 'languages'>): ModelAbout {
  return {
    ...(format !== undefined && { format }),
    ...(contextLength !== undefined && { contextLength }),
    ...(voices && { voices }),
    ...(sampleRate !== undefined && { sampleRate }),
    ...(languages && { languages }),
  };
}

/** Path of Silero VAD's weights in a build and in the repository: they come with the page, and no view lists them. */
export const VAD_WEIGHTS = 'models/silero-vad/model.safetensors';

/** Content of a build's models/index.json. */
export interface ModelIndex {
  readonly models: readonly ModelManifest[];
}

/** Total size of a model's files, in bytes. */
export function manifestBytes(manifest: Pick<ModelManifest, 'files'>): number {
  return manifest.files.reduce((sum, file) => sum + file.size, 0);
}

/** Number of chunks in which a file of `size` bytes is stored; an empty file has one. */
export function chunkCount(size: number): number {
  return Math.max(1, Math.ceil(size / CHUNK_BYTES));
}
