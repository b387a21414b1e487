/** A temporary folder whose files are removed by their owners, or else when this process ends. */
import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { HttpError } from '../http/errors.ts';

/** The host's name is part of the prefix, because processes of other machines or containers may see the same folder and have the same process ids. */
const PREFIX = `parley-${hostname().replaceAll(/[^\w.]/g, '_')}-`;

/** A folder of this process alone. It is created for its first file, and again if it was removed: systems clean up files that have been idle for days. */
export class TemporaryFolder {
  #folder: string | undefined;
  /** Runs however the process ends, unless it is killed (see removeAbandoned). */
  readonly #onExit = (): void => this.#remove();

  /** Returns an unused path; only this user can read what is written there. */
  newPath(): string {
    if (this.#folder === undefined) process.once('exit', this.#onExit);
    if (this.#folder === undefined || !existsSync(this.#folder)) this.#folder = make(join(tmpdir(), `${PREFIX}${process.pid}-`));
    return join(this.#folder, randomUUID());
  }

  /** Removes a file, if it is there. */
  async remove(path: string): Promise<void> {
    await rm(path, { force: true });
  }

  /** Removes the folder and what is in it. */
  close(): void {
    process.off('exit', this.#onExit);
    this.#remove();
  }

  #remove(): void {
    if (this.#folder !== undefined) rmSync(this.#folder, { recursive: true, force: true });
    this.#folder = undefined;
  }
}

/**
 * Converts a failure to write in the folder for the client: HttpError 503, since there may be room, or a folder, later. Other errors are returned unchanged. The path
 * is for the log alone.
 */
export function writeFailure(cause: unknown): unknown {
  const problem = PROBLEMS[(cause as NodeJS.ErrnoException).code ?? ''];
  if (problem === undefined) return cause;
  const message = `the server's folder for temporary files ${problem}, so the samples of this audio have no place`;
  return new HttpError(503, 'out_of_memory', message, { headers: { 'retry-after': '5' }, cause });
}

/** What is wrong with the folder, by the code of the system's error. */
const PROBLEMS: Readonly<Record<string, string>> = {
  ENOSPC: 'is full',
  EDQUOT: 'has used up its quota',
  EFBIG: 'takes no file of this size',
  ENOENT: 'is missing',
  ENOTDIR: 'is not a folder',
  EACCES: 'may not be written',
  EPERM: 'may not be written',
  EROFS: 'is read-only',
  EIO: 'is on a broken disk',
};

function make(prefix: string): string {
  try {
    return mkdtempSync(prefix);
  } catch (cause) {
    throw writeFailure(cause);
  }
}

/** Removes the folders that killed processes of this machine left behind. Must run before this process has a folder. */
export function removeAbandoned(parent = tmpdir()): void {
  for (const name of namesIn(parent)) {
    const [, pid] = name.startsWith(PREFIX) ? (/^(\d+)-\w+$/.exec(name.slice(PREFIX.length)) ?? []) : [];
    if (pid === undefined || isRunning(Number(pid))) continue;
    try {
      rmSync(join(parent, name), { recursive: true, force: true });
    } catch {
      // Folders of other users are left to them.
    }
  }
}

/** Names in a folder; none if it is missing or cannot be read, which an upload will report when it needs it. */
function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Whether a process is running. Its own id counts as no: in a container processes often get the same id, so a folder with it is from a previous one. */
function isRunning(pid: number): boolean {
  if (pid === process.pid) return false;
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
