/** The log: JSON lines on stderr. Ids, routes, models, counts, times and error codes; never text, audio, keys or addresses. */
import { write, writeSync } from 'node:fs';
import { pino } from 'pino';
import type { Logger } from 'pino';

export type { Logger };

/** Most bytes that wait for a slow reader or a full disk; further lines are lost. */
const MAX_WAITING = 1 << 20;
/** Delay before a full pipe is tried again, in milliseconds. */
const BUSY_MS = 100;
/** Number of tries to write the remaining lines when the process exits. */
const LAST_TRIES = 10;

/**
 * A destination of log lines (file, pipe or terminal) that drops lines that cannot be written. pino's own destination ends the process when the disk is full or
 * the terminal is gone, and blocks forever at exit.
 */
class Lines {
  readonly #fd: number;
  #waiting: Buffer[] = [];
  #length = 0;
  #isWriting = false;
  #isHeard = false;

  constructor(fd: number) {
    this.#fd = fd;
  }

  write(line: string): void {
    if (this.#length > MAX_WAITING) return this.#next();
    if (!this.#isHeard) process.on('exit', () => this.#lastWords());
    this.#isHeard = true;
    const bytes = Buffer.from(line);
    this.#waiting.push(bytes);
    this.#length += bytes.length;
    this.#next();
  }

  /** Writes all waiting lines at once; after a failure they wait for the next line. */
  #next(): void {
    if (this.#isWriting || this.#length === 0) return;
    this.#isWriting = true;
    const bytes = Buffer.concat(this.#waiting);
    this.#waiting = [bytes];
    write(this.#fd, bytes, (error, count) => {
      this.#isWriting = false;
      if (isBusy(error)) setTimeout(() => this.#next(), BUSY_MS);
      if (error) return;
      this.#waiting[0] = bytes.subarray(count);
      this.#length -= count;
      this.#next();
    });
  }

  /** Writes the remaining lines synchronously at exit, except those that are being written already; what cannot be written is lost. */
  #lastWords(): void {
    let bytes = Buffer.concat(this.#waiting.slice(this.#isWriting ? 1 : 0));
    for (let tries = 0; bytes.length > 0 && tries < LAST_TRIES;) {
      try {
        bytes = bytes.subarray(writeSync(this.#fd, bytes));
      } catch (error) {
        if (!isBusy(error)) return;
        tries++;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BUSY_MS);
      }
    }
  }
}

const isBusy = (error: unknown): boolean => (error as NodeJS.ErrnoException | null)?.code === 'EAGAIN';

const STDERR = new Lines(2);

/** Makes the server's log, on stderr. `level` is one of pino's: trace, debug, info, warn, error, fatal, silent. */
export function createLog(level: string): Logger {
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, STDERR);
}

/**
 * Makes the log for a program that embeds Parley: `line` gets each line of level `info` and above; undefined = no log. A line at which it throws is lost, since whoever
 * logs has something else to finish.
 */
export function createLineLog(line: ((text: string) => void) | undefined): Logger {
  const level = line ? 'info' : 'silent';
  const write = (text: string): void => {
    try {
      line?.(text.trimEnd());
    } catch {
      // Lost.
    }
  };
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, { write });
}
