/**
 * One process at a time pulls a model; the others wait, see how far it is, and find the model when it is done. The lock is a file that its owner
 * keeps writing to, so that one left behind by a dead process is known as such, on this machine at once and on a shared disk after a while.
 */
import { randomUUID } from 'node:crypto';
import { readlinkSync } from 'node:fs';
import { link, mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { SourceError } from '../errors.ts';
import type { PullContext } from './context.ts';
import { diskError } from './disk.ts';

interface LockRecord {
  readonly token: string;
  readonly pid: number;
  /** Machine and namespace of process ids: only there does a pid mean this process. */
  readonly place: string;
  readonly done: number;
  readonly total: number;
}

export interface LockOptions {
  readonly signal: AbortSignal;
  readonly pollMs: number;
  /** Called while another process has the lock. */
  readonly onWait: (other: Pick<LockRecord, 'pid' | 'done' | 'total'>) => void;
}

/** Waits for another process that pulls `what`, and shows how far that one is. */
export function lockOptions(what: string, { signal, tuning, onProgress }: PullContext): LockOptions {
  return {
    signal,
    pollMs: tuning.pollMs,
    onWait: ({ pid, done, total }) => onProgress({ what, step: 'fetching', done, ...(total > 0 && { total }), process: pid }),
  };
}

/** What the holder of a lock may do with it. */
export interface HeldLock {
  /** Tells those who wait how far this is. */
  tell(done: number, total: number): void;
  /** Aborted when another process took the lock, because this one stood still for too long. */
  readonly lost: AbortSignal;
}

const BEAT_MS = 1_000;
const STALE_MS = 60_000;
/** The record has a fixed length, so that it can be written over in place. */
const RECORD_BYTES = 512;

/** Runs `work` while no other process runs with the same lock. */
export async function withLock<T>(path: string, options: LockOptions, work: (lock: HeldLock) => Promise<T>): Promise<T> {
  const token = randomUUID();
  const handle = await acquire(path, token, options);
  const lost = new AbortController();
  const state = { done: 0, total: 0 };
  const beat = async (): Promise<void> => {
    if ((await handle.stat()).nlink === 0)
      lost.abort(new SourceError('network', 'this process stood still for so long that another one took over'));
    else await handle.write(record(token, state.done, state.total), 0, RECORD_BYTES, 0);
  };
  const timer = setInterval(() => void beat().catch(() => undefined), BEAT_MS).unref();
  try {
    return await work({ lost: lost.signal, tell: (done, total) => Object.assign(state, { done, total }) });
  } finally {
    clearInterval(timer);
    if ((await handle.stat()).nlink > 0) await rm(path, { force: true });
    await handle.close();
  }
}

/** Whether a living process has the lock. */
export async function isLocked(path: string): Promise<boolean> {
  const found = await readLock(path);
  return found !== undefined && !found.isStale;
}

async function acquire(path: string, token: string, { signal, pollMs, onWait }: LockOptions): Promise<FileHandle> {
  for (;;) {
    signal.throwIfAborted();
    const handle = await create(path, token);
    if (handle) return handle;
    const other = await readLock(path);
    if (other?.isStale) await removeStale(path, other.token);
    else if (other) {
      onWait(other);
      await sleep(pollMs, undefined, { signal });
    }
  }
}

async function create(path: string, token: string): Promise<FileHandle | undefined> {
  let handle: FileHandle;
  try {
    await mkdir(dirname(path), { recursive: true });
    handle = await open(path, 'wx+');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return undefined;
    throw diskError(error, path);
  }
  try {
    await handle.write(record(token, 0, 0), 0, RECORD_BYTES, 0);
    return handle;
  } catch (error) {
    // An empty lock would hold the others up until it is old.
    await handle.close();
    await rm(path, { force: true });
    throw diskError(error, path);
  }
}

/** The present lock; undefined when there is none. */
async function readLock(path: string): Promise<(LockRecord & { readonly isStale: boolean }) | undefined> {
  let found: LockRecord = { token: '', pid: 0, place: '', done: 0, total: 0 };
  let age = 0;
  try {
    age = Date.now() - (await stat(path)).mtimeMs;
    found = JSON.parse(await readFile(path, 'utf8')) as LockRecord;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    // Just created and not yet written; should it stay so, its age decides.
  }
  const isDead = found.place === PLACE && !isAlive(found.pid);
  return { ...found, isStale: isDead || age > STALE_MS };
}

/** Takes a dead process's lock away. Two may see the same one: who finds that it has taken a new one puts it back. */
async function removeStale(path: string, token: string): Promise<void> {
  const aside = `${path}.${randomUUID()}`;
  try {
    await rename(path, aside);
  } catch {
    return; // another was quicker
  }
  const taken = await readFile(aside, 'utf8').catch(() => '');
  if (token !== '' && !taken.includes(token)) await link(aside, path).catch(() => undefined);
  await rm(aside, { force: true });
}

function record(token: string, done: number, total: number): Buffer {
  const found: LockRecord = { token, pid: process.pid, place: PLACE, done, total };
  return Buffer.from(JSON.stringify(found).padEnd(RECORD_BYTES));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

const PLACE = `${hostname().slice(0, 200)} ${pidNamespace()}`;

function pidNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    return ''; // no Linux
  }
}
