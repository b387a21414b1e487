/** A folder of files that last as long as what they are made for, and none longer than this process. */
import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { HttpError } from '../http/errors.ts';

/** Processes of other machines or containers may see the same folder, and have the same numbers. */
const PREFIX = `parley-${hostname().replaceAll(/[^\w.]/g, '_')}-`;

/** One of this process alone, made for its first file, and anew where somebody has removed it: systems tidy up what has been idle for days. */
export class TemporaryFolder {
  #folder: string | undefined;
  /** However the process ends, unless it is killed: see removeAbandoned. */
  readonly #onExit = (): void => this.#remove();

  /** A path that nothing has; only this user can read what is written there. */
  newPath(): string {
    if (this.#folder === undefined) process.once('exit', this.#onExit);
    if (this.#folder === undefined || !existsSync(this.#folder)) this.#folder = make(join(tmpdir(), `${PREFIX}${process.pid}-`));
    return join(this.#folder, randomUUID());
  }

  /** Removes a file; harmless when there is none. */
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

/** What a failure to write there is to whoever sent the audio: where there is no room, there may be later. */
export function writeFailure(cause: unknown): unknown {
  if (!NO_ROOM.includes((cause as NodeJS.ErrnoException).code)) return cause;
  const message = 'the folder for temporary files has no room for the samples of this audio';
  return new HttpError(503, 'out_of_memory', message, { headers: { 'retry-after': '5' }, cause });
}

/** A full disk, a user's share of it, and the limit of a process on its files. */
const NO_ROOM: readonly (string | undefined)[] = ['ENOSPC', 'EDQUOT', 'EFBIG'];

function make(prefix: string): string {
  try {
    return mkdtempSync(prefix);
  } catch (cause) {
    throw writeFailure(cause);
  }
}

/** Removes what processes of this machine left behind that were killed; for the start, before this process has a folder. */
export function removeAbandoned(parent = tmpdir()): void {
  for (const name of namesIn(parent)) {
    const [, pid] = name.startsWith(PREFIX) ? (/^(\d+)-\w+$/.exec(name.slice(PREFIX.length)) ?? []) : [];
    if (pid === undefined || isRunning(Number(pid))) continue;
    try {
      rmSync(join(parent, name), { recursive: true, force: true });
    } catch {
      // Another user's are theirs.
    }
  }
}

/** Nothing where there is no such folder or it cannot be read: an upload says so when it needs one. */
function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** In a container the next process often has the number of the last one, so what has ours was there before us. */
function isRunning(pid: number): boolean {
  if (pid === process.pid) return false;
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
