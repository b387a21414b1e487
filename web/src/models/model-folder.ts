/**
 * A model's folder in the origin's private file system: a manifest, and the chunks of the model's files, each a file of its own. Tabs share it: whoever
 * writes chunks holds the model's lock (model-store.ts), and the manifest has one of its own.
 */
import { CHUNK_BYTES, chunkCount } from './manifest.ts';
import type { ManifestFile, ModelManifest } from './manifest.ts';
import { Sha256 } from './sha256.ts';
import { StoreError } from './store-error.ts';

/** Bytes hashed at a time on the page's thread: some milliseconds. */
const HASH_SLICE = 2 ** 18;
const MANIFEST = 'manifest.json';

const manifestLockOf = (folder: FileSystemDirectoryHandle): string => `parley-manifest-${folder.name}`;

/** The name under which a chunk of a file lies. */
export const chunkName = (file: string, index: number): string => `${encodeURIComponent(file)}.${index}`;
/** Its bytes: CHUNK_BYTES, the last one's fewer. */
export const chunkSize = (file: ManifestFile, index: number): number => Math.min(CHUNK_BYTES, file.size - index * CHUNK_BYTES);

/** Writes a file. Where that fails it is as it was before; throws StoreError('quota') where there is no room. */
export async function writeChunk(folder: FileSystemDirectoryHandle, name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
  const handle = await folder.getFileHandle(name, { create: true });
  try {
    const writer = await handle.createWritable();
    await writer.write(bytes);
    await writer.close();
  } catch (error) {
    // A new one is empty yet; what another has replaced in vain, such as a manifest, is still what it was.
    if ((await fileOf(folder, name))?.size === 0) await folder.removeEntry(name).catch(() => undefined);
    // Chromium refuses space by an AbortError ("Failed to write data to data pipe") when it does so in the middle of a write; nobody else aborts one.
    if (error instanceof DOMException && (error.name === 'QuotaExceededError' || error.name === 'AbortError')) {
      throw new StoreError('quota', 'the browser gives this page no more space', { cause: error });
    }
    throw error;
  }
}

/** The file of a name; undefined where there is none. */
export async function fileOf(folder: FileSystemDirectoryHandle, name: string): Promise<File | undefined> {
  const handle = await folder.getFileHandle(name).catch(() => undefined);
  // Another tab may have deleted it since.
  return handle?.getFile().catch(() => undefined);
}

/**
 * What is known of a stored model; undefined where nothing is. Reads wait for a tab that writes: what was opened before a write and is read after it
 * cannot be read at all.
 */
export function readManifest(folder: FileSystemDirectoryHandle): Promise<ModelManifest | undefined> {
  return navigator.locks.request(manifestLockOf(folder), { mode: 'shared' }, async () => {
    try {
      const text = await (await fileOf(folder, MANIFEST))?.text();
      return text ? (JSON.parse(text) as ModelManifest) : undefined;
    } catch {
      return undefined; // a half-written manifest is an absent model, not an error
    }
  });
}

/** Replaces what is known of a stored model. */
export function writeManifest(folder: FileSystemDirectoryHandle, manifest: ModelManifest): Promise<void> {
  const bytes = new TextEncoder().encode(JSON.stringify(manifest));
  return navigator.locks.request(manifestLockOf(folder), () => writeChunk(folder, MANIFEST, bytes));
}

/** SHA-256 in hex. */
export async function digest(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return toHex(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)));
}

const toHex = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

/** What follows a '?' may be a permission that is another one each time: then the time of the last change tells whether it is one file. */
function isFromSamePlace(before: ManifestFile, now: ManifestFile): boolean {
  if (before.url === now.url) return true;
  const place = (url: string | undefined): string | undefined => url?.replace(/[?#].*$/s, '');
  return place(before.url) === place(now.url) && now.modified !== undefined && before.modified === now.modified;
}

/** The manifest with the hashes that are known of files as they lie here. What is stored of files that their publisher has replaced since is removed. */
export async function takeUp(folder: FileSystemDirectoryHandle, manifest: ModelManifest): Promise<ModelManifest> {
  const stored = new Map((await readManifest(folder))?.files.map((file) => [file.name, file]));
  const files: ManifestFile[] = [];
  for (const file of manifest.files) {
    const before = stored.get(file.name);
    // With a published hash the address says nothing: a hub's changes with every commit.
    const isElsewhere = before && file.published === undefined && !isFromSamePlace(before, file);
    const isReplaced = before && (isElsewhere || before.size !== file.size || before.published?.hex !== file.published?.hex);
    for (let i = 0; isReplaced && i < chunkCount(before.size); i++)
      await folder.removeEntry(chunkName(file.name, i)).catch(() => undefined);
    // Without them every chunk would seem damaged to another tab that looks at the model now.
    const isKnown = before && !isReplaced && file.sha256.length === 0;
    files.push(isKnown ? { ...file, sha256: before.sha256 } : file);
  }
  return { ...manifest, files };
}

/** A stored chunk's SHA-256 in hex; undefined where it is missing, or deleted while it is read. */
export async function hashOfChunk(folder: FileSystemDirectoryHandle, file: string, index: number): Promise<string | undefined> {
  const bytes = await (await fileOf(folder, chunkName(file, index)))?.arrayBuffer().catch(() => undefined);
  return bytes && digest(new Uint8Array(bytes));
}

/** The whole stored file's hash as a publisher gives it, in hex. */
export async function hashOf(folder: FileSystemDirectoryHandle, file: ManifestFile, kind: 'sha256' | 'git'): Promise<string> {
  const chunks: File[] = [];
  for (let i = 0; i < chunkCount(file.size); i++) chunks.push((await fileOf(folder, chunkName(file.name, i)))!);
  if (kind === 'git') {
    // Only files of a few megabytes are in git itself.
    const bytes = await new Blob([`blob ${file.size}\0`, ...chunks]).arrayBuffer();
    return toHex(new Uint8Array(await crypto.subtle.digest('SHA-1', bytes)));
  }
  const hash = new Sha256();
  const content = new Blob(chunks);
  for (let at = 0; at < file.size; at += HASH_SLICE) hash.update(new Uint8Array(await content.slice(at, at + HASH_SLICE).arrayBuffer()));
  return hash.hex();
}
