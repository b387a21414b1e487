/** What a model consists of; written by the build for the bundled ones, by the importer for others. */

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
}

export interface ModelManifest {
  readonly id: string;
  readonly task: ModelTask;
  /** config.json's model_type. */
  readonly modelType: string;
  readonly source: 'bundled' | 'hub' | 'local';
  readonly files: readonly ManifestFile[];
}

/** models/index.json of a build. */
export interface ModelIndex {
  readonly models: readonly ModelManifest[];
}

/** All bytes of a model. */
export function manifestBytes(manifest: ModelManifest): number {
  return manifest.files.reduce((sum, file) => sum + file.size, 0);
}

/** Number of chunks a file of `size` bytes is stored in; an empty file has one. */
export function chunkCount(size: number): number {
  return Math.max(1, Math.ceil(size / CHUNK_BYTES));
}
