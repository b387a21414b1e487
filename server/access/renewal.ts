/** Files of keys and certificates are taken again while the server runs: when they have changed, and when somebody asks for it. */
import { readFile, stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../log.ts';

/** Kubernetes itself takes a minute until a pod sees a changed Secret. */
const LOOK_MS = 30_000;

/** Files that are only right together. */
export interface Renewable {
  /** What lies in them, for the log. */
  readonly what: string;
  readonly paths: readonly string[];
  /** Reads the files and goes on with what they say; throws an Error of one sentence where that cannot be used. */
  take(): void;
}

export class Renewal {
  readonly #files: readonly Renewable[];
  readonly #log: Logger;
  /** What each of them said when it was last taken or refused. */
  readonly #seen = new Map<Renewable, string>();
  #isClosed = false;

  constructor(files: readonly Renewable[], log: Logger) {
    this.#files = files;
    this.#log = log;
  }

  /**
   * From now on looks at the files every `lookMs`: at their text, as the system's events miss what is exchanged behind a link (Secrets are) or on another
   * machine. Resolves once it is closed.
   */
  async watch(lookMs = LOOK_MS): Promise<void> {
    while (this.#files.length > 0 && !this.#isClosed) {
      await sleep(lookMs, undefined, { ref: false });
      await this.#look();
    }
  }

  /** Takes all of them, changed or not. What is wrong with some is logged, and what they said before stays. None waits for the others. */
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
      // What the server began with was read before anybody looked, so the first look cannot tell whether it is new.
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

/** The text of all of them; one that cannot be read is none. Undefined where one is a pipe: it has been read already, and a read that waits for more may never end. */
async function textOf({ paths }: Renewable): Promise<string | undefined> {
  for (const path of paths) if (await isPipe(path)) return undefined;
  return (await Promise.all(paths.map((path) => readFile(path, 'utf8').catch(() => '')))).join('\0');
}

const isPipe = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => !found.isFile(),
    () => false,
  );
