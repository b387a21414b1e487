/**
 * Hugging Face's cache in the layout of its own tools: models--owner--name/ with blobs/ (a file for each content, named by its hash), snapshots/COMMIT/ (links to
 * blobs, with the files' names) and refs/ (commits by branch and tag). In addition .parley/ keeps the hub's listing of each commit.
 */
import { copyFile, link, mkdir, readFile, readdir, realpath, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import type { RepoFile } from '../choose.ts';
import { SourceError } from '../errors.ts';
import { isCommit, isHubName, quoteName } from '../names.ts';
import { diskError } from './disk.ts';

/** One model's folder in the cache. Names must have been checked before. */
export class CachedRepo {
  readonly folder: string;
  readonly id: string;

  constructor(cache: string, id: string) {
    this.id = id;
    this.folder = join(cache, folderName(id));
  }

  /** Path of the lock of its pulls. */
  static lockPath(cache: string, id: string): string {
    return join(cache, '.locks', folderName(id), 'parley.lock');
  }

  snapshot(commit: string): string {
    return join(this.folder, 'snapshots', commit);
  }

  blob(file: RepoFile): string {
    return join(this.folder, 'blobs', blobName(file));
  }

  /** The commit of a revision when the hub was last asked. */
  async commitOf(revision: string): Promise<string | undefined> {
    if (isCommit(revision)) return revision;
    const text = (await readFile(join(this.folder, 'refs', ...revision.split('/')), 'utf8').catch(() => '')).trim();
    return isCommit(text) ? text : undefined;
  }

  async setCommit(revision: string, commit: string): Promise<void> {
    if (!isCommit(revision)) await writeWhole(join(this.folder, 'refs', ...revision.split('/')), commit);
  }

  /** The files of a commit: the hub's listing, or else those that another tool has put here; undefined if there are none. */
  async listing(commit: string): Promise<readonly RepoFile[] | undefined> {
    const saved = readListing(await readFile(this.#listingPath(commit), 'utf8').catch(() => ''));
    return saved ?? (await this.filesOf(commit));
  }

  /** Whether the hub's listing of a commit is here, so that all of its files are known. */
  async isListed(commit: string): Promise<boolean> {
    return readListing(await readFile(this.#listingPath(commit), 'utf8').catch(() => '')) !== undefined;
  }

  async saveListing(commit: string, files: readonly RepoFile[]): Promise<void> {
    await writeWhole(this.#listingPath(commit), JSON.stringify(files));
  }

  /** The files of a commit that are here. */
  async filesOf(commit: string): Promise<readonly RepoFile[] | undefined> {
    const folder = this.snapshot(commit);
    const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => undefined);
    const found = await Promise.all(
      (entries ?? [])
        .filter((entry) => !entry.isDirectory())
        .map(async (entry): Promise<RepoFile[]> => {
          const path = join(entry.parentPath, entry.name);
          const { size } = (await stat(path).catch(() => undefined)) ?? {};
          return size === undefined ? [] : [{ path: relative(folder, path).split(sep).join('/'), size }];
        }),
    );
    return entries && found.flat();
  }

  /** Whether a file of a commit is here, complete, and within this model's folder. */
  async has(commit: string, { path, size }: RepoFile): Promise<boolean> {
    const place = join(this.snapshot(commit), ...path.split('/'));
    const found = await stat(place).catch(() => undefined);
    if (!found?.isFile() || found.size !== size) return false;
    return isBelow(await realpath(this.folder), await realpath(place));
  }

  /** Gives an existing blob its name in a commit: by a link, or a copy if links are not supported. */
  async place(commit: string, file: RepoFile): Promise<void> {
    const blob = this.blob(file);
    const path = join(this.snapshot(commit), ...file.path.split('/'));
    try {
      await mkdir(dirname(path), { recursive: true });
      if (!isBelow(await realpath(this.folder), await realpath(dirname(path))))
        throw new SourceError('refused', `${this.id}: ${quoteName(file.path)} would leave the cache`);
      await rm(path, { force: true });
      await symlink(relative(dirname(path), blob), path)
        .catch(() => link(blob, path))
        .catch(() => copyFile(blob, path));
    } catch (error) {
      throw diskError(error, path);
    }
  }

  #listingPath(commit: string): string {
    return join(this.folder, '.parley', `${commit}.json`);
  }
}

const folderName = (id: string): string => `models--${id.replace('/', '--')}`;

/** owner/name of a folder of the cache; undefined if it is no model's. */
export function repoOfFolder(name: string): string | undefined {
  const [, owner = '', model = ''] = /^models--(.+?)--(.+)$/.exec(name) ?? [];
  return isHubName(owner) && isHubName(model) ? `${owner}/${model}` : undefined;
}

/** A blob's name is its hash, which is checked here because it becomes a file's name. */
function blobName({ path, sha256, git }: RepoFile): string {
  const name = sha256 ?? git;
  if (name === undefined || !/^([0-9a-f]{64}|[0-9a-f]{40})$/.test(name))
    throw new SourceError('refused', `${quoteName(path)} has no hash that could name it`);
  return name;
}

/** Whether a path is a folder or within it; both must be free of links. */
export function isBelow(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

function readListing(text: string): readonly RepoFile[] | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const isFile = (entry: unknown): boolean =>
      typeof (entry as RepoFile | null)?.path === 'string' && Number.isSafeInteger((entry as RepoFile).size);
    return Array.isArray(value) && value.every(isFile) ? (value as RepoFile[]) : undefined;
  } catch {
    return undefined;
  }
}

async function writeWhole(path: string, text: string): Promise<void> {
  const next = `${path}.${process.pid}.new`;
  try {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(next, text);
    await rename(next, path);
  } catch (error) {
    throw diskError(error, path);
  }
}
