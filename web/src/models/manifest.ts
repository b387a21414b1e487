/** What a model consists of; written by the build for the bundled ones, by find-model.ts and picked-model.ts for others. */

import type { ModelDescription, ModelInfo } from '../../../engine/api.ts';
import type { ModelTask } from '../../../engine/model-types.ts';

/** Bytes a stored and hashed piece of a file; also what a broken download loses at most. */
export const CHUNK_BYTES = 8 * 2 ** 20;

export type { ModelTask };

export interface ManifestFile {
  readonly name: string;
  readonly size: number;
  /** Where it comes from, relative to the page or absolute; absent for files the user picked. */
  readonly url?: string;
  /** SHA-256 of each chunk in hex; empty = unknown before the download (then recorded by it). */
  readonly sha256: readonly string[];
  /** What its publisher says of the whole file: SHA-256 of its bytes, or the SHA-1 that git gives it (`blob <size>\0`, then the bytes). */
  readonly published?: { readonly kind: 'sha256' | 'git'; readonly hex: string };
  /** When its server says that it was last changed, as it says it. */
  readonly modified?: string;
}

/** What views say of a model: from its files, and once it was loaded from the engine. What is not known is absent. */
export interface ModelAbout {
  /** What it is published as, such as GGUF Q4_K_M; absent: safetensors. */
  readonly format?: string;
  /** About what it takes of a device, in bytes; chat: with a conversation that fills its context. */
  readonly memoryBytes?: number;
  /** Where that is not known: about what its weights take. */
  readonly weightBytes?: number;
  /** chat: tokens. */
  readonly contextLength?: number;
  /** speech: names; Hz. */
  readonly voices?: readonly string[];
  readonly sampleRate?: number;
  /** transcription: ISO 639-1. */
  readonly languages?: readonly string[];
}

export interface ModelManifest {
  readonly id: string;
  readonly task: ModelTask;
  /** config.json's model_type. */
  readonly modelType: string;
  readonly source: 'bundled' | 'hub' | 'address' | 'local';
  readonly files: readonly ManifestFile[];
  /** The file that stands for the model, where that is not the folder of all. */
  readonly main?: string;
  readonly about?: ModelAbout;
}

/** Longest context of a conversation in a tab, in tokens. */
export const TAB_CONTEXT = 8192;

/** What a description of files says for views. */
export function aboutOf(description: ModelDescription): ModelAbout {
  const { ownContextLength, weightBytes, tokenBytes, windowBytes = 0 } = description;
  if (ownContextLength === undefined || tokenBytes === undefined) return { ...loadedAbout(description), weightBytes };
  const contextLength = Math.min(ownContextLength, TAB_CONTEXT);
  return { ...loadedAbout(description), contextLength, memoryBytes: weightBytes + tokenBytes * contextLength + windowBytes };
}

/** What a loaded model says for views. */
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

/** Silero VAD's weights in a build and in the repository: they come with the page, and no view lists them. */
export const VAD_WEIGHTS = 'models/silero-vad/model.safetensors';

/** models/index.json of a build. */
export interface ModelIndex {
  readonly models: readonly ModelManifest[];
}

/** All bytes of a model. */
export function manifestBytes(manifest: Pick<ModelManifest, 'files'>): number {
  return manifest.files.reduce((sum, file) => sum + file.size, 0);
}

/** Number of chunks a file of `size` bytes is stored in; an empty file has one. */
export function chunkCount(size: number): number {
  return Math.max(1, Math.ceil(size / CHUNK_BYTES));
}
