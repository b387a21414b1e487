/** Lists and removes what is in the caches. */
import { readFile, readdir, readlink, realpath, rm } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { chooseFiles } from '../choose.ts';
import type { ModelFormat, RepoFile } from '../choose.ts';
import { SourceError } from '../errors.ts';
import { parseRecipe, recipeOf } from '../recipe.ts';
import { recommendedModel } from '../recommended.ts';
import type { RecommendedModel } from '../recommended.ts';
import { parseSource } from '../source.ts';
import type { HubSource } from '../source.ts';
import { exists, folderBytes } from './disk.ts';
import { CachedRepo, isBelow, repoOfFolder } from './hub-cache.ts';
import { isLocked } from './lock.ts';
import { findCached } from './pull-hub.ts';
import { folderOfRecipe, readRecord } from './pull-recipe.ts';
import { sourceText } from './pull-recommended.ts';
import { BEGUN } from './recipe-parts.ts';
import type { SourceSettings } from './settings.ts';

/** A model in a cache. */
export interface CachedModel {
  /** Name of the model for flags and for `removeCached`. */
  readonly source: string;
  /** Bytes on disk. */
  readonly size: number;
  readonly format: ModelFormat | 'other';
  /** Path of its folder. */
  readonly path: string;
  /** False if a pull was begun but not completed. */
  readonly complete: boolean;
}

/** Names of partial downloads, ours with their notes and those of Hugging Face's own tools: they belong to no commit yet. */
const UNFINISHED = /\.(parley-part|incomplete)(\.|$)/;

/** Lists both caches, the hub's first, each by name. */
export async function listCache(settings: SourceSettings): Promise<CachedModel[]> {
  return [...(await listHub(settings.hubCache)), ...(await listOwn(settings.ownCache))];
}

async function listHub(cache: string): Promise<CachedModel[]> {
  const names = (await readdir(cache).catch((): string[] => [])).sort();
  const found = await Promise.all(
    names.map(async (name): Promise<CachedModel[]> => {
      const id = repoOfFolder(name);
      if (id === undefined) return [];
      const repo = new CachedRepo(cache, id);
      const [size, formats, begun] = await Promise.all([folderBytes(repo.folder), formatsOf(repo), isBegun(repo)]);
      return [{ source: id, size, format: formats[0] ?? 'other', path: repo.folder, complete: formats.length > 0 || !begun }];
    }),
  );
  return found.flat();
}

/** Whether there are blobs that no commit has yet: files get their names only once all of them are there. */
async function isBegun({ folder }: CachedRepo): Promise<boolean> {
  const blobs = await readdir(join(folder, 'blobs')).catch((): string[] => []);
  return blobs.some((blob) => UNFINISHED.test(blob)) || (blobs.length > 0 && (await entriesBelow(join(folder, 'snapshots'))).length === 0);
}

/** Formats of a model's commits, as far as their files are here. */
async function formatsOf(repo: CachedRepo): Promise<ModelFormat[]> {
  const commits = await readdir(join(repo.folder, 'snapshots')).catch(() => []);
  const formats = await Promise.all(
    commits.map(async (commit): Promise<ModelFormat[]> => {
      try {
        return [chooseFiles((await repo.filesOf(commit)) ?? []).format];
      } catch {
        return []; // nothing here that can be read
      }
    }),
  );
  return formats.flat();
}

async function listOwn(cache: string): Promise<CachedModel[]> {
  const folder = join(cache, 'models');
  const names = (await readdir(folder).catch(() => [])).filter((name) => !name.endsWith('.lock')).sort();
  return Promise.all(
    names.map(async (name): Promise<CachedModel> => {
      const path = join(folder, name);
      const [record, size] = await Promise.all([readRecord(path), folderBytes(path)]);
      const begun = await readFile(join(path, BEGUN), 'utf8').catch(() => name);
      return { source: record?.source ?? begun, size, format: formatOf(record?.files ?? []), path, complete: record !== undefined };
    }),
  );
}

function formatOf(files: readonly { readonly path: string; readonly size: number }[]): CachedModel['format'] {
  try {
    return chooseFiles(files).format;
  } catch {
    return files.some(({ path }) => path.endsWith('.onnx')) ? 'onnx' : 'other';
  }
}

/** Removes what the caches have of a source: a model, one of its revisions, or one file. Returns the number of bytes freed; throws SourceError. */
export async function removeCached(text: string, settings: SourceSettings): Promise<number> {
  const recommended = recommendedModel(text);
  if (recommended) return removeRecommended(recommended, settings);
  const own = await findOwn(text, settings);
  if (own !== undefined) {
    const freed = (await folderBytes(own)) + (await folderBytes(`${own}.work`));
    if (await isLocked(`${own}.lock`)) throw new SourceError('refused', `${text} is being pulled now; stop that first`);
    for (const path of [own, `${own}.work`, `${own}.lock`]) await rm(path, { recursive: true, force: true });
    return freed;
  }
  const source = parseSource(text);
  if (source.kind !== 'hub') throw notHere(text, settings.ownCache);
  return removeHub(text, source, settings.hubCache);
}

/** Removes a recommended model from every source that it was fetched from. */
async function removeRecommended({ id, sources }: RecommendedModel, settings: SourceSettings): Promise<number> {
  const freed: number[] = [];
  for (const source of sources) {
    const bytes = await removeCached(sourceText(source), settings).catch((error: unknown) => {
      if (error instanceof SourceError && error.kind === 'missing') return undefined;
      throw error;
    });
    if (bytes !== undefined) freed.push(bytes);
  }
  if (freed.length === 0) throw notHere(id, settings.ownCache);
  return freed.reduce((sum, bytes) => sum + bytes, 0);
}

const notHere = (text: string, cache: string): SourceError =>
  new SourceError('missing', `${text} is not in ${cache}; 'parley models' lists what is`);

/** Folder in Parley's own cache of a model from packages or URLs, found by its source, its recipe, or its name in the cache. */
async function findOwn(text: string, settings: SourceSettings): Promise<string | undefined> {
  const cached = (await listOwn(settings.ownCache)).find(({ source }) =>
    [text, text.replace(/#sha256=\w+$/, ''), resolve(text)].includes(source),
  );
  if (cached) return cached.path.replace(/\.work$/, '');
  let folder: string;
  try {
    const source = text.endsWith('.json') ? undefined : parseSource(text);
    if (source?.kind === 'hub' || source?.kind === 'path') return undefined;
    folder = folderOfRecipe(source ? recipeOf(source) : parseRecipe(text, await readFile(text, 'utf8')), settings.ownCache);
  } catch {
    return undefined; // says nothing that this cache could hold
  }
  return (await exists(folder)) || (await exists(`${folder}.work`)) ? folder : undefined;
}

async function removeHub(text: string, source: HubSource, cache: string): Promise<number> {
  const repo = new CachedRepo(cache, source.id);
  const before = await folderBytes(repo.folder);
  const root = await realpath(cache).catch(() => undefined);
  const real = await realpath(repo.folder).catch(() => undefined);
  if (root === undefined || real === undefined || !isBelow(root, real)) throw notHere(text, cache);
  if (await isLocked(CachedRepo.lockPath(cache, source.id)))
    throw new SourceError('refused', `${text} is being pulled now; stop that first`);
  if (source.revision === undefined && source.select === undefined) {
    await rm(repo.folder, { recursive: true });
    return before;
  }
  const commit = await repo.commitOf(source.revision ?? 'main');
  const found = commit === undefined ? undefined : await repo.filesOf(commit);
  if (commit === undefined || !found) throw notHere(text, cache);
  if (source.select === undefined) await rm(repo.snapshot(commit), { recursive: true });
  else {
    const model = await findCached(repo, source);
    if (!model) throw notHere(text, cache);
    const shared = sharedFiles(found, model.files);
    for (const { path } of model.files) if (!shared.has(path)) await rm(join(repo.snapshot(commit), ...path.split('/')), { force: true });
  }
  await removeUnused(repo);
  return before - (await folderBytes(repo.folder));
}

/** Files that other weights in the cache need too, such as the voices beside each of Kokoro's ONNX files. */
function sharedFiles(here: readonly RepoFile[], removed: readonly { readonly path: string }[]): ReadonlySet<string> {
  const paths = new Set(removed.map(({ path }) => path));
  const needed = here.flatMap(({ path }): readonly RepoFile[] => {
    try {
      return paths.has(path) ? [] : chooseFiles(here, path).files;
    } catch {
      return []; // no file of weights, or not all of it
    }
  });
  return new Set(needed.map(({ path }) => path));
}

/** Removes commits without files, refs of commits that are gone, and blobs that no commit uses any more. */
async function removeUnused({ folder }: CachedRepo): Promise<void> {
  const links = await entriesBelow(join(folder, 'snapshots'));
  const used = new Set(await Promise.all(links.map(async (path) => (await readlink(path).catch(() => path)).split(/[\\/]/).at(-1)!)));
  const blobs = await readdir(join(folder, 'blobs')).catch(() => []);
  for (const blob of blobs) if (!used.has(blob) && !UNFINISHED.test(blob)) await rm(join(folder, 'blobs', blob), { force: true });
  const commits = new Set(links.map((path) => path.slice(join(folder, 'snapshots').length + 1).split(/[\\/]/)[0]!));
  for (const commit of await readdir(join(folder, 'snapshots')).catch(() => []))
    if (!commits.has(commit)) await rm(join(folder, 'snapshots', commit), { recursive: true });
  for (const ref of await entriesBelow(join(folder, 'refs'))) if (!commits.has((await readFile(ref, 'utf8')).trim())) await rm(ref);
  for (const listing of await entriesBelow(join(folder, '.parley'))) if (!commits.has(basename(listing, '.json'))) await rm(listing);
  if (commits.size === 0 && !blobs.some((blob) => UNFINISHED.test(blob))) await rm(folder, { recursive: true });
}

async function entriesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => !entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name));
}
