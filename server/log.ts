/** The log: JSON lines on stderr. Ids, routes, models, counts, times and error codes; never text, audio, keys or addresses. */
import { write, writeSync } from 'node:fs';
import { pino } from 'pino';
import type { Logger } from 'pino';

export type { Logger };

/** Bytes that wait for a slow reader, or for room on the disk; lines beyond are lost. */
const MAX_WAITING = 1 << 20;
/** A pipe that is full now may take more after this. */
const BUSY_MS = 100;
/** How often it is tried again while the process ends. */
const LAST_TRIES = 10;

/**
 * Lines for a file, a pipe or a terminal, which cost nothing but themselves where they cannot be written. pino's own stream ends the process where
 * the disk is full or the terminal has gone, and as it ends waits for room forever.
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

  /** Writes what waits, together; after a failure it waits for the next line. */
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

  /** There is no other time: what cannot be written now is lost. What is being written is not written twice. */
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

/** Levels as in pino: trace, debug, info, warn, error, fatal, silent. */
export function createLog(level: string): Logger {
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, STDERR);
}

/** A log for a program that Parley is a part of: `line` gets each line, of levels from `info` on. */
export function createLineLog(line: ((text: string) => void) | undefined): Logger {
  const level = line ? 'info' : 'silent';
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, { write: (text: string) => line?.(text.trimEnd()) });
}
