/** Reloads key files and certificates while the server runs: when they have changed, and on SIGHUP. */
import { readFile, stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../log.ts';

/** Interval of checking for changes. A pod sees a changed Kubernetes Secret only after a minute anyway. */
const LOOK_MS = 30_000;

/** A set of files that must be reloaded together, such as a certificate and its key. */
export interface Renewable {
  /** What the files contain, for the log. */
  readonly what: string;
  readonly paths: readonly string[];
  /** Reads the files and applies them; throws an Error of one sentence if they cannot be used. */
  take(): void;
}

export class Renewal {
  readonly #files: readonly Renewable[];
  readonly #log: Logger;
  /** Text of each set of files when it was last applied or refused. */
  readonly #seen = new Map<Renewable, string>();
  #isClosed = false;

  constructor(files: readonly Renewable[], log: Logger) {
    this.#files = files;
    this.#log = log;
  }

  /**
   * Reads the files every `lookMs` and applies those whose text has changed. File system events are not used: they miss a change behind a symbolic link (as with
   * Secrets) or on another machine. Resolves once closed.
   */
  async watch(lookMs = LOOK_MS): Promise<void> {
    while (this.#files.length > 0 && !this.#isClosed) {
      await sleep(lookMs, undefined, { ref: false });
      await this.#look();
    }
  }

  /** Applies all files, changed or not. Files that cannot be used are logged, and what they said before stays in force; the others are applied all the same. */
  async now(): Promise<void> {
    const texts = await Promise.all(this.#files.map(textOf));
    this.#files.forEach((file, i) => {
      this.#seen.set(file, texts[i] ?? '');
      this.#take(file, 'were read again');
    });
  }

  close(): void {
    this.#isClosed = true;
  }

  async #look(): Promise<void> {
    for (const file of this.#files) {
      const before = this.#seen.get(file);
      const text = await textOf(file);
      if (text === undefined || text === before) continue;
      this.#seen.set(file, text);
      // The server read its files before the first look, which therefore cannot tell whether they have changed since.
      this.#take(file, before === undefined ? undefined : 'have changed and were read again');
    }
  }

  #take({ what, take }: Renewable, said: string | undefined): void {
    try {
      take();
      if (said !== undefined) this.#log.warn(`the files of ${what} ${said}`);
    } catch (error) {
      this.#log.error(
        { why: error instanceof Error ? error.message : String(error) },
        `a file of ${what} is not taken; the one before stays`,
      );
    }
  }
}

/** The joined text of the files; '' stands for one that cannot be read. Undefined if one is a pipe, which was read at the start: another read may wait for ever. */
async function textOf({ paths }: Renewable): Promise<string | undefined> {
  for (const path of paths) if (await isPipe(path)) return undefined;
  return (await Promise.all(paths.map((path) => readFile(path, 'utf8').catch(() => '')))).join('\0');
}

const isPipe = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => !found.isFile(),
    () => false,
  );
