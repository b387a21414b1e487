/**
 * A model's folder in the origin private file system (OPFS): a manifest, and the chunks of the model's files, each a file of its own. Tabs
 * share it: writers of chunks hold the model's lock (model-store.ts), and the manifest has a lock of its own.
 */
import { CHUNK_BYTES, chunkCount } from './manifest.ts';
import type { ManifestFile, ModelManifest } from './manifest.ts';
import { Sha256 } from './sha256.ts';
import { StoreError } from './store-error.ts';

/** Bytes hashed per task of the main thread: a few milliseconds. */
const HASH_SLICE = 2 ** 18;
const MANIFEST = 'manifest.json';

const manifestLockOf = (folder: FileSystemDirectoryHandle): string => `parley-manifest-${folder.name}`;

/** Name of the stored file that holds a chunk. */
export const chunkName = (file: string, index: number): string => `${encodeURIComponent(file)}.${index}`;
/** Size of a chunk: CHUNK_BYTES, or less for the last one. */
export const chunkSize = (file: ManifestFile, index: number): number => Math.min(CHUNK_BYTES, file.size - index * CHUNK_BYTES);

/** Writes a file. If that fails the file is as it was before; throws StoreError('quota') when there is no room. */
export async function writeChunk(folder: FileSystemDirectoryHandle, name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
  const handle = await folder.getFileHandle(name, { create: true });
  try {
    const writer = await handle.createWritable();
    await writer.write(bytes);
    await writer.close();
  } catch (error) {
    // A new file is still empty and is removed; one that existed before, such as a manifest, has kept its content.
    if ((await fileOf(folder, name))?.size === 0) await folder.removeEntry(name).catch(() => undefined);
    // Chromium reports lack of space in the middle of a write as an AbortError ("Failed to write data to data pipe"); nothing else aborts a
    // write.
    if (error instanceof DOMException && (error.name === 'QuotaExceededError' || error.name === 'AbortError')) {
      throw new StoreError('quota', 'the browser gives this page no more space', { cause: error });
    }
    throw error;
  }
}

/** Opens a file by name; undefined if there is none. */
export async function fileOf(folder: FileSystemDirectoryHandle, name: string): Promise<File | undefined> {
  const handle = await folder.getFileHandle(name).catch(() => undefined);
  // Another tab may have deleted it meanwhile.
  return handle?.getFile().catch(() => undefined);
}

/**
 * Reads the manifest of a stored model; undefined if there is none. Waits for a tab that writes it: a file that was opened before a write
 * cannot be read after it.
 */
export function readManifest(folder: FileSystemDirectoryHandle): Promise<ModelManifest | undefined> {
  return navigator.locks.request(manifestLockOf(folder), { mode: 'shared' }, async () => {
    try {
      const text = await (await fileOf(folder, MANIFEST))?.text();
      return text ? (JSON.parse(text) as ModelManifest) : undefined;
    } catch {
      return undefined; // a half-written manifest means an absent model, not an error
    }
  });
}

/** Writes the manifest of a stored model. */
export function writeManifest(folder: FileSystemDirectoryHandle, manifest: ModelManifest): Promise<void> {
  const bytes = new TextEncoder().encode(JSON.stringify(manifest));
  return navigator.locks.request(manifestLockOf(folder), () => writeChunk(folder, MANIFEST, bytes));
}

/** Returns the SHA-256 in hex. */
export async function digest(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return toHex(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)));
}

const toHex = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

/**
 * Whether two entries mean the same file. A query may be a permission that is new each time, so it is ignored if both have the same time of
 * last change.
 */
function isFromSamePlace(before: ManifestFile, now: ManifestFile): boolean {
  if (before.url === now.url) return true;
  const place = (url: string | undefined): string | undefined => url?.replace(/[?#].*$/s, '');
  return place(before.url) === place(now.url) && now.modified !== undefined && before.modified === now.modified;
}

/**
 * Returns the manifest with the known hashes of stored files. Stored chunks of files that their publisher has replaced since are removed.
 */
export async function takeUp(folder: FileSystemDirectoryHandle, manifest: ModelManifest): Promise<ModelManifest> {
  const stored = new Map((await readManifest(folder))?.files.map((file) => [file.name, file]));
  const files: ManifestFile[] = [];
  for (const file of manifest.files) {
    const before = stored.get(file.name);
    // With a published hash the address does not matter: a hub's address changes with every commit.
    const isElsewhere = before && file.published === undefined && !isFromSamePlace(before, file);
    const isReplaced = before && (isElsewhere || before.size !== file.size || before.published?.hex !== file.published?.hex);
    for (let i = 0; isReplaced && i < chunkCount(before.size); i++)
      await folder.removeEntry(chunkName(file.name, i)).catch(() => undefined);
    // Without hashes every chunk would look damaged to another tab that verifies the model now.
    const isKnown = before && !isReplaced && file.sha256.length === 0;
    files.push(isKnown ? { ...file, sha256: before.sha256 } : file);
  }
  return { ...manifest, files };
}

/** Returns a stored chunk's SHA-256 in hex; undefined if it is missing, or deleted while it is read. */
export async function hashOfChunk(folder: FileSystemDirectoryHandle, file: string, index: number): Promise<string | undefined> {
  const bytes = await (await fileOf(folder, chunkName(file, index)))?.arrayBuffer().catch(() => undefined);
  return bytes && digest(new Uint8Array(bytes));
}

/** Returns the hash of a whole stored file, in hex, of the kind that a publisher gives. */
export async function hashOf(folder: FileSystemDirectoryHandle, file: ManifestFile, kind: 'sha256' | 'git'): Promise<string> {
  const chunks: File[] = [];
  for (let i = 0; i < chunkCount(file.size); i++) chunks.push((await fileOf(folder, chunkName(file.name, i)))!);
  if (kind === 'git') {
    // Only files of a few megabytes lie in git itself, so all of one fits into memory.
    const bytes = await new Blob([`blob ${file.size}\0`, ...chunks]).arrayBuffer();
    return toHex(new Uint8Array(await crypto.subtle.digest('SHA-1', bytes)));
  }
  const hash = new Sha256();
  const content = new Blob(chunks);
  for (let at = 0; at < file.size; at += HASH_SLICE) hash.update(new Uint8Array(await content.slice(at, at + HASH_SLICE).arrayBuffer()));
  return hash.hex();
}
