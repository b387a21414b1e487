/** Finds a model of the hub in the cache, or fetches it into the cache. */
import { mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { chooseModel } from '../choose.ts';
import type { Choice, RepoFile } from '../choose.ts';
import { SourceError } from '../errors.ts';
import { fileRefusal, fileUrl, readRepository } from '../hub.ts';
import type { Hub, Repository } from '../hub.ts';
import { isCommit } from '../names.ts';
import { formatSource, shortSource } from '../source.ts';
import type { HubSource } from '../source.ts';
import type { PullContext, Resolved } from './context.ts';
import { diskError, requireRoom } from './disk.ts';
import { downloadFile, limiter, waiter } from './download.ts';
import type { Downloads, FileJob } from './download.ts';
import { CachedRepo } from './hub-cache.ts';
import { lockOptions, withLock } from './lock.ts';
import type { HeldLock } from './lock.ts';
import { keptBytes } from './part-file.ts';
import { Tally } from './tally.ts';

/** Finds or fetches a model of the hub. A model in the cache is not requested again, unless for an update. Throws SourceError. */
export async function resolveHub(source: HubSource, context: PullContext): Promise<Resolved> {
  const { settings, update, onNote } = context;
  const repo = new CachedRepo(settings.hubCache, source.id);
  const cached = await findCached(repo, source);
  // What another tool has left may lack a file, which only the hub's listing tells.
  const isWhole = cached !== undefined && (await repo.isListed(cached.commit!));
  if (cached && isWhole && (!update || isCommit(source.revision ?? ''))) return cached;
  if (settings.offline !== undefined) {
    if (cached) return cached;
    throw new SourceError(
      'offline',
      `${formatSource(source)} is not, or not wholly, in ${settings.hubCache}, and ${settings.offline} forbids to fetch it`,
    );
  }
  const hub: Hub = { endpoint: settings.endpoint, fetch: context.fetch, hasToken: settings.token !== undefined, wait: waiter(context) };
  let found: Repository;
  try {
    found = await askHub(hub, source, context);
  } catch (error) {
    if (!cached || !(error instanceof SourceError) || !['network', 'unreachable'].includes(error.kind)) throw error;
    onNote(`${error.message}; what is in the cache is used`);
    return cached;
  }
  const choice = chooseModel(source, found.files);
  if ((await Promise.all(choice.files.map((file) => repo.has(found.commit, file)))).every(Boolean)) {
    // A read-only cache, such as a shared one, serves what it has; the hub is then asked again the next time.
    await keepFound(repo, source, found).catch((error: unknown) => {
      if (!(error instanceof SourceError) || error.kind !== 'disk') throw error;
    });
    return { ...resolved(repo, source, found.commit, choice), fetched: 0 };
  }
  await mkdir(repo.folder, { recursive: true }).catch((error: unknown) => {
    throw diskError(error, repo.folder);
  });
  return withLock(CachedRepo.lockPath(settings.hubCache, source.id), lockOptions(shortSource(source), context), async (lock) => {
    const fetched = await fetchMissing({ repo, hub, source, context, lock, commit: found.commit, choice });
    await keepFound(repo, source, found);
    return { ...resolved(repo, source, found.commit, choice), fetched };
  });
}

/** Stores the hub's listing of a revision whose files are here. */
async function keepFound(repo: CachedRepo, { revision = 'main' }: HubSource, { commit, files }: Repository): Promise<void> {
  await repo.saveListing(commit, files);
  await repo.setCommit(revision, commit);
}

/** Finds the model that would be used without asking the hub; undefined if none is complete. */
export async function findHub(source: HubSource, { settings }: PullContext): Promise<Resolved | undefined> {
  const repo = new CachedRepo(settings.hubCache, source.id);
  const cached = await findCached(repo, source);
  return cached && (settings.offline !== undefined || (await repo.isListed(cached.commit!))) ? cached : undefined;
}

/** Finds a source's model in the cache; undefined if it is not complete. Makes no requests. */
export async function findCached(repo: CachedRepo, source: HubSource): Promise<Resolved | undefined> {
  const commit = await repo.commitOf(source.revision ?? 'main');
  const files = commit === undefined ? undefined : await repo.listing(commit);
  if (commit === undefined || files === undefined) return undefined;
  let choice: Choice;
  try {
    choice = chooseModel(source, files);
  } catch {
    return undefined; // another tool has fetched a part of it, or of another format
  }
  const here = await Promise.all(choice.files.map((file) => repo.has(commit, file)));
  return here.every(Boolean) ? { ...resolved(repo, source, commit, choice), fetched: 0 } : undefined;
}

async function askHub(hub: Hub, { id, revision = 'main' }: HubSource, { signal }: PullContext): Promise<Repository> {
  const stoppable: typeof fetch = (input, init) => hub.fetch(input, { ...init, signal });
  return readRepository({ ...hub, fetch: stoppable }, id, revision);
}

function resolved(repo: CachedRepo, source: HubSource, commit: string, choice: Choice): Omit<Resolved, 'fetched'> {
  const folder = repo.snapshot(commit);
  return {
    id: source.select === undefined ? source.id : `${source.id}:${source.select}`,
    path: choice.main === undefined ? folder : join(folder, ...choice.main.split('/')),
    files: choice.files.map(({ path, size }) => ({ path, size })),
    format: choice.format,
    commit,
  };
}

interface Pull {
  readonly repo: CachedRepo;
  readonly hub: Hub;
  readonly source: HubSource;
  readonly context: PullContext;
  readonly lock: HeldLock;
  readonly commit: string;
  readonly choice: Choice;
}

/** Fetches the missing files; returns the number of bytes fetched. */
async function fetchMissing({ repo, hub, source, context, lock, commit, choice }: Pull): Promise<number> {
  const present = await Promise.all(choice.files.map((file) => repo.has(commit, file)));
  const missing = choice.files.filter((_, index) => !present[index]);
  const jobs = [...new Map(missing.map((file) => [repo.blob(file), fileJob(repo, hub, commit, file)])).values()];
  const absent = (await Promise.all(jobs.map(async (job) => ((await hasSize(job)) ? [] : [job])))).flat();
  await mkdir(join(repo.folder, 'blobs'), { recursive: true }).catch((error: unknown) => {
    throw diskError(error, repo.folder);
  });
  const kept = await Promise.all(absent.map((job) => keptBytes(job.to, job.size, job.version)));
  const total = absent.reduce((sum, { size }) => sum + size, 0);
  const before = kept.reduce((sum, bytes) => sum + bytes, 0);
  await requireRoom(context.disk, repo.folder, total - before);
  const tally = new Tally(shortSource(source), total, context.onProgress, lock);
  const failed = new AbortController();
  const downloads: Downloads = {
    context,
    signal: AbortSignal.any([context.signal, lock.lost, failed.signal]),
    connection: limiter(context.tuning.connections),
    onBytes: (bytes) => tally.add(bytes),
    onChecked: (bytes) => tally.check(bytes),
    refusal: (answer, name) => fileRefusal(hub, source.id, source.revision ?? 'main', answer, name),
    wait: waiter(context),
  };
  const file = limiter(context.tuning.connections);
  const work = absent.map((job) =>
    file(() => downloadFile(job, downloads)).catch((error: unknown) => {
      failed.abort(error);
      throw error;
    }),
  );
  const ended = await Promise.allSettled(work);
  context.signal.throwIfAborted();
  const first = failed.signal.aborted ? failed.signal.reason : ended.find((end) => end.status === 'rejected');
  if (first !== undefined) throw first;
  for (const entry of missing) await repo.place(commit, entry);
  return total - before;
}

function fileJob(repo: CachedRepo, hub: Hub, commit: string, file: RepoFile): FileJob {
  const hash = file.sha256 !== undefined ? ({ kind: 'sha256', hex: file.sha256 } as const) : ({ kind: 'git', hex: file.git! } as const);
  return {
    name: file.path,
    url: fileUrl(hub.endpoint, repo.id, commit, file.path),
    size: file.size,
    version: hash.hex,
    hash,
    to: repo.blob(file),
  };
}

/** Whether the content is here already, from this or another commit. */
async function hasSize({ to, size }: FileJob): Promise<boolean> {
  const found = await stat(to).catch(() => undefined);
  return found?.isFile() === true && found.size === size;
}
