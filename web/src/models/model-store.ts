/**
 * The store of checkpoints in the origin private file system (OPFS). A file is stored as chunks of 8 MiB, each a file of its own that
 * appears only when complete: a broken download resumes after its last chunk, a damaged chunk is fetched again alone, and a checkpoint is
 * read as a Blob of its chunks, without copying them together.
 */
import { fetchRange } from './fetch-range.ts';
import type { FetchOptions } from './fetch-range.ts';
import type { HubAccess } from './hub-authorization.ts';
import { CHUNK_BYTES, chunkCount, manifestBytes } from './manifest.ts';
import type { ManifestFile, ModelAbout, ModelManifest } from './manifest.ts';
import {
  chunkName,
  chunkSize,
  digest,
  fileOf,
  hashOf,
  hashOfChunk,
  readManifest,
  takeUp,
  writeChunk,
  writeManifest,
} from './model-folder.ts';
import { StoreError } from './store-error.ts';

export interface StoredModel {
  readonly manifest: ModelManifest;
  readonly bytes: number;
  readonly complete: boolean;
}

/** Called with the bytes that are present, and the bytes of the whole model. */
export type Progress = (done: number, total: number) => void;

const FOLDER = 'models';
/**
 * How long a deletion waits for a writer of the model, in ms: a download that was just stopped, or a tab that writes a note, ends sooner.
 */
const MOMENT = 1000;

/** A folder's handle; undefined if there is none and none is to be made. Why one cannot be made is thrown. */
function subfolder(parent: FileSystemDirectoryHandle, name: string, create: boolean): Promise<FileSystemDirectoryHandle | undefined> {
  const handle = parent.getDirectoryHandle(name, { create });
  return create ? handle : handle.catch(() => undefined);
}

/** The stored models of this origin; every method may throw StoreError. */
export class ModelStore {
  readonly #access: () => HubAccess | undefined;

  /** `access` is called at each download. */
  constructor(access: () => HubAccess | undefined = () => undefined) {
    this.#access = access;
  }

  /**
   * Whether this browser stores files for this page: not on plain http, in private windows of some browsers, or where the person forbids
   * it.
   */
  async isAvailable(): Promise<boolean> {
    return rootFolder().then(
      () => true,
      () => false,
    );
  }

  async list(): Promise<StoredModel[]> {
    const models: StoredModel[] = [];
    const folder = await this.#folder(false);
    if (!folder) return models;
    for await (const entry of folder.values()) {
      if (entry.kind !== 'directory') continue;
      const stored = await this.#stored(entry);
      if (stored) models.push(stored);
    }
    return models.sort((a, b) => a.manifest.id.localeCompare(b.manifest.id));
  }

  async get(id: string): Promise<StoredModel | undefined> {
    const folder = await this.#modelFolder(id, false);
    return folder && this.#stored(folder);
  }

  /**
   * Fetches the missing chunks of a model; returns the manifest with all hashes. If another tab is writing the model, calls `waiting`,
   * waits, and then fetches what that tab has not fetched.
   */
  async download(manifest: ModelManifest, signal: AbortSignal, progress: Progress, waiting?: () => void): Promise<ModelManifest> {
    const work = async (): Promise<ModelManifest> => {
      // A stopped download may be deleted already, and must not create the folder again.
      signal.throwIfAborted();
      const folder = (await this.#modelFolder(manifest.id, true))!;
      const known = await takeUp(folder, manifest);
      return this.#fill(folder, known, progress, (file, advance) => this.#downloadFile(folder, file, signal, advance));
    };
    try {
      return await this.#exclusive(manifest.id, work);
    } catch (error) {
      if (!(error instanceof StoreError) || error.kind !== 'busy') throw error;
      waiting?.();
      return navigator.locks.request(lockOf(manifest.id), { signal }, work);
    }
  }

  /** Stores picked files; an abort leaves nothing behind. */
  async importFiles(manifest: ModelManifest, blobs: ReadonlyMap<string, Blob>, signal: AbortSignal, progress: Progress): Promise<void> {
    await this.#exclusive(manifest.id, async () => {
      const folder = (await this.#modelFolder(manifest.id, true))!;
      try {
        await this.#fill(folder, manifest, progress, (file, advance) => copyFile(folder, file, blobs.get(file.name)!, signal, advance));
      } catch (error) {
        if (signal.aborted) await (await this.#folder(false))?.removeEntry(folderName(manifest.id), { recursive: true });
        throw error;
      }
    });
  }

  /** Adds what the engine says about a loaded model to its stored manifest. */
  async note(id: string, about: ModelAbout): Promise<void> {
    const folder = await this.#modelFolder(id, false);
    if (!folder || JSON.stringify((await readManifest(folder))?.about) === JSON.stringify(about)) return;
    await this.#exclusive(id, async () => {
      // Read again under the lock: another tab may have fetched the model anew, or deleted it.
      const manifest = await readManifest(folder);
      if (manifest) await writeManifest(folder, { ...manifest, about });
    });
  }

  /** Hashes every stored chunk and removes damaged ones. Returns the names of files with damaged or missing chunks. */
  async verify(id: string, progress: Progress): Promise<string[]> {
    const folder = await this.#modelFolder(id, false);
    const manifest = folder && (await readManifest(folder));
    if (!folder || !manifest) throw new StoreError('damaged', `${id} is not stored`);
    const damaged = new Set<string>();
    let done = 0;
    for (const file of manifest.files) {
      for (let i = 0; i < chunkCount(file.size); i++) {
        const hash = await hashOfChunk(folder, file.name, i);
        if ((hash === undefined || hash !== file.sha256[i]) && (await this.#dropWrong(id, folder, file.name, i))) damaged.add(file.name);
        progress((done += chunkSize(file, i)), manifestBytes(manifest));
      }
    }
    return [...damaged];
  }

  /** Removes a damaged chunk, after hashing it again under the model's lock: another tab may have replaced or fetched it meanwhile. */
  #dropWrong(id: string, folder: FileSystemDirectoryHandle, file: string, index: number): Promise<boolean> {
    return navigator.locks.request(lockOf(id), async () => {
      const known = (await readManifest(folder))?.files.find(({ name }) => name === file)?.sha256[index];
      const hash = await hashOfChunk(folder, file, index);
      if (hash !== undefined && hash === known) return false;
      if (await fileOf(folder, chunkName(file, index))) await folder.removeEntry(chunkName(file, index));
      return true;
    });
  }

  /** Opens a stored file as one Blob; undefined if the model has no such file. Throws if a chunk is missing or short. */
  async open(id: string, name: string): Promise<Blob | undefined> {
    const folder = await this.#modelFolder(id, false);
    const file = folder && (await readManifest(folder))?.files.find((entry) => entry.name === name);
    if (!folder || !file) return undefined;
    const chunks: Blob[] = [];
    for (let i = 0; i < chunkCount(file.size); i++) {
      const chunk = await fileOf(folder, chunkName(name, i));
      if (chunk?.size !== chunkSize(file, i)) throw new StoreError('damaged', `the stored copy of ${id}/${name} is damaged`);
      chunks.push(chunk);
    }
    return new Blob(chunks);
  }

  async remove(id: string): Promise<void> {
    const work = async (): Promise<void> => {
      const folder = await this.#folder(false);
      await folder?.removeEntry(folderName(id), { recursive: true }).catch((error: unknown) => {
        if (!(error instanceof DOMException && error.name === 'NotFoundError')) throw error;
      });
    };
    await this.#exclusive(id, work, { signal: AbortSignal.timeout(MOMENT) });
  }

  /** Stores every file of a manifest by `store`, which returns the hashes of its chunks. */
  async #fill(
    folder: FileSystemDirectoryHandle,
    manifest: ModelManifest,
    progress: Progress,
    store: (file: ManifestFile, advance: (bytes: number) => void) => Promise<string[]>,
  ): Promise<ModelManifest> {
    const total = manifestBytes(manifest);
    let done = 0;
    const files: ManifestFile[] = [];
    // Written first, so that what a closed tab leaves behind is listed, and can be resumed or deleted.
    await writeManifest(folder, manifest);
    for (const file of manifest.files) {
      const sha256 = await store(file, (bytes) => progress((done += bytes), total));
      files.push({ ...file, sha256 });
    }
    const known = { ...manifest, files };
    await writeManifest(folder, known);
    return known;
  }

  async #downloadFile(
    folder: FileSystemDirectoryHandle,
    file: ManifestFile,
    signal: AbortSignal,
    advance: (bytes: number) => void,
  ): Promise<string[]> {
    const hashes = [...file.sha256];
    const missing: number[] = [];
    for (let i = 0; i < chunkCount(file.size); i++) {
      const stored = await fileOf(folder, chunkName(file.name, i));
      if (stored?.size !== chunkSize(file, i)) {
        missing.push(i);
        continue;
      }
      advance(stored.size);
      hashes[i] ??= await digest(new Uint8Array(await stored.arrayBuffer()));
    }
    const keep = async (i: number, bytes: Uint8Array<ArrayBuffer>): Promise<void> => {
      const hash = await digest(bytes);
      if ((file.sha256[i] ?? hash) !== hash) throw notAsPublished(file);
      await writeChunk(folder, chunkName(file.name, i), bytes);
      hashes[i] = hash;
    };
    for (const [from, to] of runsOf(missing)) {
      for (let next = from, begun = -1; next < to;) {
        begun = next;
        try {
          for await (const bytes of chunksOf(file, next, to, { signal, access: this.#access() }, advance)) await keep(next++, bytes);
        } catch (error) {
          // If the connection has brought anything, resume where it broke.
          if (!(error instanceof StoreError) || error.kind !== 'network' || next === begun) throw error;
        }
      }
    }
    if (missing.length > 0 && file.published && (await hashOf(folder, file, file.published.kind)) !== file.published.hex) {
      for (let i = 0; i < chunkCount(file.size); i++) await folder.removeEntry(chunkName(file.name, i));
      throw notAsPublished(file);
    }
    return hashes;
  }

  async #stored(folder: FileSystemDirectoryHandle): Promise<StoredModel | undefined> {
    const manifest = await readManifest(folder);
    if (!manifest) return undefined;
    let bytes = 0;
    let complete = true;
    for (const file of manifest.files) {
      for (let i = 0; i < chunkCount(file.size); i++) {
        const size = (await fileOf(folder, chunkName(file.name, i)))?.size;
        if (size !== chunkSize(file, i)) complete = false;
        bytes += size ?? 0;
      }
    }
    return { manifest, bytes, complete };
  }

  async #folder(create: boolean): Promise<FileSystemDirectoryHandle | undefined> {
    const root = await rootFolder();
    return subfolder(root, FOLDER, create);
  }

  async #modelFolder(id: string, create: boolean): Promise<FileSystemDirectoryHandle | undefined> {
    const models = await this.#folder(create);
    return models && subfolder(models, folderName(id), create);
  }

  /**
   * Runs `work` under the model's lock, which one tab holds at a time. Throws StoreError('busy') if another tab holds it, or still does
   * when the wait's signal aborts.
   */
  async #exclusive<T>(id: string, work: () => Promise<T>, wait: LockOptions = { ifAvailable: true }): Promise<T> {
    const busy = (): StoreError => new StoreError('busy', `${id} is being written, perhaps by another tab; try again when that is done`);
    let isHeld = false;
    const held = navigator.locks.request(lockOf(id), wait, async (lock) => {
      if (!lock) throw busy();
      isHeld = true;
      return work();
    });
    return held.catch((error: unknown) => {
      throw wait.signal?.aborted && !isHeld ? busy() : error;
    });
  }
}

async function rootFolder(): Promise<FileSystemDirectoryHandle> {
  try {
    return await navigator.storage.getDirectory();
  } catch (error) {
    throw new StoreError('unavailable', 'this browser keeps no files for this page', { cause: error });
  }
}

const lockOf = (id: string): string => `parley-model-${id}`;

/** Folder name of a model; ids may contain slashes (hub ids) and other characters that file names cannot. */
const folderName = (id: string): string => encodeURIComponent(id);

const notAsPublished = (file: ManifestFile): StoreError =>
  new StoreError('damaged', `${file.name} did not arrive as published (its hash differs); try again`);

/** Stores a picked file; returns the hashes of its chunks. */
async function copyFile(
  folder: FileSystemDirectoryHandle,
  { name, size }: ManifestFile,
  blob: Blob,
  signal: AbortSignal,
  advance: (bytes: number) => void,
): Promise<string[]> {
  const sha256: string[] = [];
  for (let i = 0; i < chunkCount(size); i++) {
    signal.throwIfAborted();
    const bytes = new Uint8Array(await blob.slice(i * CHUNK_BYTES, (i + 1) * CHUNK_BYTES).arrayBuffer());
    sha256.push(await digest(bytes));
    await writeChunk(folder, chunkName(name, i), bytes);
    advance(bytes.length);
  }
  return sha256;
}

/** Groups ascending numbers into runs [from, to). */
function runsOf(numbers: readonly number[]): [number, number][] {
  const runs: [number, number][] = [];
  for (const n of numbers) {
    const last = runs.at(-1);
    if (last?.[1] === n) last[1]++;
    else runs.push([n, n + 1]);
  }
  return runs;
}

/** Yields chunks [first, end) of a file, fetched as one range. */
async function* chunksOf(
  file: ManifestFile,
  first: number,
  end: number,
  options: FetchOptions,
  advance: (bytes: number) => void,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const start = first * CHUNK_BYTES;
  const stop = Math.min(end * CHUNK_BYTES, file.size);
  let left = stop - start;
  let chunk = new Uint8Array(Math.min(CHUNK_BYTES, left));
  let filled = 0;
  if (left === 0) yield chunk;
  try {
    for await (let bytes of fetchRange(file, start, stop, options)) {
      while (bytes.length > 0) {
        const part = bytes.subarray(0, chunk.length - filled);
        chunk.set(part, filled);
        bytes = bytes.subarray(part.length);
        filled += part.length;
        left -= part.length;
        advance(part.length);
        if (filled < chunk.length) continue;
        yield chunk;
        chunk = new Uint8Array(Math.min(CHUNK_BYTES, left));
        filled = 0;
      }
    }
  } finally {
    // An incomplete chunk is not kept.
    if (filled > 0) advance(-filled);
  }
}
