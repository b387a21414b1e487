/** A model put together from packages and addresses, in a folder of its own. */
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { copyFile, link, mkdir, readFile, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { SourceError } from '../errors.ts';
import { compareNatural, pathProblem, quoteName } from '../names.ts';
import { formatRecipe, matchInside } from '../recipe.ts';
import type { Recipe, RecipeFile } from '../recipe.ts';
import { fileNameOf, formatSource } from '../source.ts';
import type { PackageSource, UrlSource } from '../source.ts';
import { extract, listArchive } from './archive.ts';
import type { Member } from './archive.ts';
import type { PullContext, Resolved } from './context.ts';
import { diskError, requireRoom } from './disk.ts';
import { hashOf } from './download.ts';
import { withLock } from './lock.ts';
import { fetchPackage } from './packages.ts';
import { fetchUrl } from './pull-url.ts';

/** What is written beside a whole model: its source, and what it consists of. */
export interface RecipeRecord {
  readonly id: string;
  readonly source: string;
  readonly files: readonly { readonly path: string; readonly size: number; readonly sha256: string }[];
  /** The file that stands for the model, where the folder does not. */
  readonly main?: string;
}

/** The record's name in a model's folder. */
export const RECORD = '.parley-source.json';
/** What stands in the folder of a model that is not whole: its source. */
export const BEGUN = '.parley-begun';

/** Finds a recipe's model in the cache, or puts it together there; `what` is how people call it. Throws SourceError. */
export async function resolveRecipe(recipe: Recipe, what: string, context: PullContext): Promise<Resolved> {
  const { settings, onProgress } = context;
  const folder = folderOfRecipe(recipe, settings.ownCache);
  const cached = await readRecord(folder);
  // What a package or a hash names never changes; an address without a hash may.
  if (cached) return { ...resolved(cached, folder), fetched: 0 };
  if (settings.offline !== undefined)
    throw new SourceError('offline', `${what} is not, or not wholly, in ${settings.ownCache}, and ${settings.offline} forbids to fetch it`);
  const onWait = ({ pid, done, total }: { readonly pid: number; readonly done: number; readonly total: number }): void =>
    onProgress({ what, step: 'fetching', done, ...(total > 0 && { total }), process: pid });
  return withLock(`${folder}.lock`, { signal: context.signal, pollMs: context.tuning.pollMs, onWait }, async (lock) => {
    const done = await readRecord(folder);
    if (done) return { ...resolved(done, folder), fetched: 0 };
    const signal = AbortSignal.any([context.signal, lock.lost]);
    const tell = (progress: { readonly done: number; readonly total?: number; readonly part: string }): void => {
      lock.tell(progress.done, progress.total ?? 0);
      onProgress({
        what: progress.part,
        step: 'fetching',
        done: progress.done,
        ...(progress.total !== undefined && { total: progress.total }),
      });
    };
    const kitchen: Kitchen = { recipe, what, context: { ...context, signal }, work: `${folder}.work`, tell };
    const fetched = await fetchParts(kitchen);
    const record = await assemble(kitchen, what);
    await rename(join(kitchen.work, 'model'), folder);
    await rm(kitchen.work, { recursive: true, force: true });
    return { ...resolved(record, folder), fetched };
  });
}

interface Kitchen {
  readonly recipe: Recipe;
  readonly what: string;
  readonly context: PullContext;
  /** Kept until the model is whole. */
  readonly work: string;
  readonly tell: (progress: { readonly done: number; readonly total?: number; readonly part: string }) => void;
}

type Part = PackageSource | UrlSource;

/** Where a recipe's model lies: under a readable name, told from others by the hash of what the recipe says. */
export function folderOfRecipe(recipe: Recipe, cache: string): string {
  const hash = createHash('sha256').update(formatRecipe(recipe)).digest('hex').slice(0, 16);
  const name = recipe.name.replace(/[^\w.-]+/g, '-').replace(/^[.-]+|[.-]+$/g, '');
  return join(cache, 'models', `${name.slice(0, 80) || 'model'}-${hash}`);
}

/** The model that a folder holds; undefined when there is none, or not all of it. */
export async function readRecord(folder: string): Promise<RecipeRecord | undefined> {
  const text = await readFile(join(folder, RECORD), 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  let record: RecipeRecord;
  try {
    record = JSON.parse(text) as RecipeRecord;
    if (
      !Array.isArray(record.files) ||
      typeof record.id !== 'string' ||
      [...record.files.map(({ path }) => path), record.main ?? 'none'].some((path) => pathProblem(path) !== undefined)
    )
      return undefined;
  } catch {
    return undefined;
  }
  const sizes = await Promise.all(
    record.files.map(({ path }) =>
      stat(join(folder, path)).then(
        ({ size }) => size,
        () => -1,
      ),
    ),
  );
  return record.files.every(({ size }, index) => sizes[index] === size) ? record : undefined;
}

/** A GGUF file (of a split one the first) and a single file stand for themselves, anything else for a folder. */
function mainFile({ files }: Recipe): string | undefined {
  const paths = files.map(({ path }) => path).sort(compareNatural);
  const isFile = paths.length === 1 ? !paths[0]!.endsWith('/') : paths.every((path) => path.endsWith('.gguf'));
  return isFile ? paths[0] : undefined;
}

const resolved = ({ id, files, main }: RecipeRecord, folder: string): Omit<Resolved, 'fetched'> => ({
  id,
  path: main === undefined ? folder : join(folder, ...main.split('/')),
  files,
});

const packageFolder = (work: string, { registry, name, version }: PackageSource): string =>
  join(work, 'packages', `${registry}--${name.replace('/', '--')}--${version}`);
const urlPath = (work: string, part: UrlSource): string =>
  join(work, 'addresses', createHash('sha256').update(formatSource(part)).digest('hex').slice(0, 16), fileNameOf(part.url)!);

/** Fetches every package and address that is not here yet; returns the bytes that came. */
async function fetchParts(kitchen: Kitchen): Promise<number> {
  const { recipe, work, context, tell } = kitchen;
  const parts = recipe.files.flatMap((file) => file.parts);
  await mkdir(work, { recursive: true })
    .then(() => writeFile(join(work, BEGUN), kitchen.what))
    .catch((error: unknown) => {
      throw diskError(error, work);
    });
  let fetched = 0;
  const packages = new Map<string, PackageSource[]>();
  for (const part of parts) {
    if (part.kind !== 'package') continue;
    const folder = packageFolder(work, part);
    packages.set(folder, [...(packages.get(folder) ?? []), part]);
  }
  for (const [folder, wanted] of packages) fetched += await fetchMembers(kitchen, folder, wanted);
  for (const part of parts)
    if (part.kind === 'url')
      fetched += await fetchUrl(part, urlPath(work, part), context, (done, total) =>
        tell({ part: part.url, done, ...(total !== undefined && { total }) }),
      );
  return fetched;
}

/** Unpacks what is wanted of one package into its folder, which appears only when all of it is there; returns the bytes that came. */
async function fetchMembers(kitchen: Kitchen, folder: string, wanted: readonly PackageSource[]): Promise<number> {
  if (await exists(folder)) return 0;
  const [archives, unpacked] = [`${folder}.archive`, `${folder}.new`];
  try {
    const archive = await fetchArchive(kitchen, wanted[0]!, archives);
    await rm(unpacked, { recursive: true, force: true });
    await unpack(kitchen, archive, wanted, unpacked);
    const { size } = await stat(archive);
    await rename(unpacked, folder);
    return size;
  } finally {
    for (const path of [archives, unpacked]) await rm(path, { recursive: true, force: true });
  }
}

const packageText = ({ registry, name, version }: PackageSource): string => `${registry}:${name}@${version}`;

async function fetchArchive({ context, tell }: Kitchen, source: PackageSource, folder: string): Promise<string> {
  const part = packageText(source);
  tell({ part, done: 0 });
  const archive = await fetchPackage(source, folder, context, (done, total) =>
    tell(total === undefined ? { part, done } : { part, done: Math.min(done, total), total }),
  );
  const { size } = await stat(archive);
  tell({ part, done: size, total: size });
  return archive;
}

async function unpack({ work, context }: Kitchen, archive: string, wanted: readonly PackageSource[], folder: string): Promise<void> {
  const part = packageText(wanted[0]!);
  const members = await listArchive(archive);
  const names = members.map(({ path }) => path);
  const paths = new Set<string>();
  for (const { path } of wanted) {
    const found = matchInside(path, names);
    if (found.length === 0)
      throw new SourceError(
        'missing',
        `${part} holds no ${path.endsWith('/') ? 'folder' : 'file'} ${quoteName(path)}; it has ${someNames(members)}`,
      );
    for (const name of found) paths.add(name);
  }
  const bytes = members.reduce((sum, { path, size }) => sum + (paths.has(path) ? size : 0), 0);
  await requireRoom(context.disk, work, bytes);
  await extract(archive, paths, folder, context.signal);
  for (const { path, sha256 } of wanted) {
    const found = sha256 === undefined ? undefined : await hashOf(join(folder, path), 'sha256', context.signal);
    if (found !== sha256)
      throw new SourceError(
        'damaged',
        `${part}/${path} is not what its hash says (SHA-256 ${found!.slice(0, 12)}…, expected ${sha256!.slice(0, 12)}…); it was thrown away`,
      );
  }
}

/** The largest files first: weights are what people look for. */
function someNames(members: readonly Member[]): string {
  const names = [...members].sort((a, b) => b.size - a.size).map(({ path }) => quoteName(path));
  return `${names.slice(0, 8).join(', ')}${names.length > 8 ? ` and ${names.length - 8} more` : ''}`;
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

/** Puts the model together from its parts, checks it, and writes down what it is. */
async function assemble({ recipe, work, context, what }: Kitchen, source: string): Promise<RecipeRecord> {
  const folder = join(work, 'model');
  await rm(folder, { recursive: true, force: true });
  const plans = (await Promise.all(recipe.files.map((file) => planFile(file, work)))).flat();
  const sizes = await Promise.all(plans.map(({ from }) => Promise.all(from.map(async (path) => (await stat(path)).size))));
  const total = sizes.flat().reduce((sum, size) => sum + size, 0);
  // A file of one part is moved, not copied.
  await requireRoom(
    context.disk,
    work,
    sizes.reduce((sum, list) => sum + (list.length > 1 ? list.reduce((a, b) => a + b, 0) : 0), 0),
  );
  const files: { path: string; size: number; sha256: string }[] = [];
  let done = 0;
  for (const plan of plans) {
    const to = join(folder, ...plan.path.split('/'));
    await joinParts(plan.from, to, context.signal);
    const sha256 = await hashOf(to, 'sha256', context.signal, (bytes) =>
      context.onProgress({ what, step: 'checking', done: (done += bytes), total }),
    );
    if (plan.sha256 !== undefined && plan.sha256 !== sha256) {
      await rm(work, { recursive: true, force: true });
      throw new SourceError(
        'damaged',
        `${plan.path} of ${what} is not what its hash says (SHA-256 ${sha256.slice(0, 12)}…, expected ${plan.sha256.slice(0, 12)}…); it was thrown away`,
      );
    }
    files.push({ path: plan.path, size: (await stat(to)).size, sha256 });
  }
  const main = mainFile(recipe);
  const record: RecipeRecord = { id: recipe.name, source, files, ...(main !== undefined && { main }) };
  await writeFile(join(folder, RECORD), JSON.stringify(record, undefined, 1));
  return record;
}

interface FilePlan {
  readonly path: string;
  readonly from: readonly string[];
  readonly sha256?: string;
}

/** The files that a file of a recipe becomes, each with the paths that it is joined from. */
async function planFile({ path, parts, sha256 }: RecipeFile, work: string): Promise<FilePlan[]> {
  const from: string[] = [];
  for (const part of parts) {
    if (part.kind === 'url') {
      from.push(urlPath(work, part));
      continue;
    }
    const root = packageFolder(work, part);
    const found = matchInside(part.path, await filesBelow(root));
    if (path.endsWith('/'))
      return found.map((name) => ({ path: insideFolder(path, name.slice(part.path.length)), from: [join(root, name)] }));
    from.push(...found.map((name) => join(root, name)));
  }
  return [{ path, from, ...(sha256 !== undefined && { sha256 }) }];
}

async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join('/'));
}

/** A file of one part becomes that part, without a copy where the file system can. */
async function joinParts(from: readonly string[], to: string, signal: AbortSignal): Promise<void> {
  try {
    await mkdir(dirname(to), { recursive: true });
    if (from.length === 1) return await link(from[0]!, to).catch(() => copyFile(from[0]!, to));
    for (const part of from) await pipeline(createReadStream(part), createWriteStream(to, { flags: 'a' }), { signal });
  } catch (error) {
    throw diskError(error, to);
  }
}

const insideFolder = (folder: string, name: string): string => (folder === './' ? name : `${folder}${name}`);
