/**
 * A lock with which one process at a time pulls a model; the others wait, see its progress, and find the model when it is done. The lock is a file that its owner
 * keeps writing to, so that one left behind by a dead process is recognised, at once on this machine and after a while on a shared disk.
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
  /** Machine and PID namespace: only within it does a pid identify a process. */
  readonly place: string;
  readonly done: number;
  readonly total: number;
}

/** How to wait for a lock. */
export interface LockOptions {
  readonly signal: AbortSignal;
  readonly pollMs: number;
  /** Called while another process has the lock. */
  readonly onWait: (other: Pick<LockRecord, 'pid' | 'done' | 'total'>) => void;
}

/** Lock options of a pull of `what`, which report the progress of another process that holds the lock. */
export function lockOptions(what: string, { signal, tuning, onProgress }: PullContext): LockOptions {
  return {
    signal,
    pollMs: tuning.pollMs,
    onWait: ({ pid, done, total }) => onProgress({ what, step: 'fetching', done, ...(total > 0 && { total }), process: pid }),
  };
}

/** A lock, as its holder sees it. */
export interface HeldLock {
  /** Publishes the progress for waiting processes. */
  tell(done: number, total: number): void;
  /** Aborted if another process took the lock, because this one was suspended for too long to keep writing to it. */
  readonly lost: AbortSignal;
}

const BEAT_MS = 1_000;
const STALE_MS = 60_000;
/** Fixed length of the record, so that it can be overwritten in place. */
const RECORD_BYTES = 512;

/** Runs `work` while holding the lock, so that no other process runs with it. */
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

/** Whether a living process holds the lock. */
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
      // Before its holder has written its record there is no process to name.
      if (other.token !== '') onWait(other);
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
    // An empty lock would block the others until it is old.
    await handle.close();
    await rm(path, { force: true });
    throw diskError(error, path);
  }
}

/** Reads the current lock; undefined if there is none. */
async function readLock(path: string): Promise<(LockRecord & { readonly isStale: boolean }) | undefined> {
  let found: LockRecord = { token: '', pid: 0, place: '', done: 0, total: 0 };
  let age = 0;
  try {
    age = Date.now() - (await stat(path)).mtimeMs;
    found = JSON.parse(await readFile(path, 'utf8')) as LockRecord;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    // The lock was just created and is not written yet; if it stays so, its age decides.
  }
  const isDead = found.place === PLACE && !isAlive(found.pid);
  return { ...found, isStale: isDead || age > STALE_MS };
}

/** Removes a dead process's lock. Two processes may see the same one: a process that finds that it has removed a new one puts it back. */
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
