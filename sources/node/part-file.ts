/** A file that is not whole yet, and beside it a note of which bytes are there, so that any stop leaves something to go on from. */
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { addRange, rangeBytes, readRanges } from '../ranges.ts';
import type { Range } from '../ranges.ts';
import type { DiskAccess } from './disk.ts';
import { diskError } from './disk.ts';

/** At most this much of what came is fetched again after a process was killed. */
const NOTE_EVERY_MS = 1_000;

type Handle = Awaited<ReturnType<DiskAccess['open']>>;

/** `.incomplete` would be taken up by Hugging Face's own client, which knows of no holes. */
export const partPath = (to: string): string => `${to}.parley-part`;

export class PartFile {
  readonly path: string;
  readonly #note: string;
  readonly #size: number;
  readonly #version: string;
  readonly #handle: Handle;
  #done: readonly Range[];
  #noted = performance.now();
  #noting: Promise<void> = Promise.resolve();

  private constructor(path: string, size: number, version: string, handle: Handle, done: readonly Range[]) {
    [this.path, this.#note, this.#size, this.#version, this.#handle, this.#done] = [path, `${path}.json`, size, version, handle, done];
  }

  /** Takes up what is there of the same version of the file; anything else is thrown away. `version` names the content, by hash or ETag. */
  static async open(disk: DiskAccess, to: string, size: number, version: string): Promise<PartFile> {
    const path = partPath(to);
    const kept = await keptRanges(`${path}.json`, size, version);
    try {
      const handle = await disk.open(path, kept ? 'r+' : 'w+').catch((error: NodeJS.ErrnoException) => {
        if (kept && error.code === 'ENOENT') return undefined;
        throw error;
      });
      return new PartFile(path, size, version, handle ?? (await disk.open(path, 'w+')), handle ? (kept ?? []) : []);
    } catch (error) {
      throw diskError(error, path);
    }
  }

  get done(): readonly Range[] {
    return this.#done;
  }

  get bytes(): number {
    return rangeBytes(this.#done);
  }

  /** Writes bytes at a position; they count once they are written. */
  async write(position: number, bytes: Uint8Array): Promise<void> {
    try {
      for (let at = 0; at < bytes.length;) {
        const { bytesWritten } = await this.#handle.write(bytes, at, bytes.length - at, position + at);
        at += bytesWritten;
      }
    } catch (error) {
      throw diskError(error, this.path);
    }
    this.#done = addRange(this.#done, [position, position + bytes.length]);
    if (performance.now() - this.#noted > NOTE_EVERY_MS) await this.note();
  }

  /** Writes down what is here. The old note stays true when there is no room for the new one. */
  async note(): Promise<void> {
    this.#noted = performance.now();
    this.#noting = this.#noting.then(async () => {
      const next = `${this.#note}.new`;
      const text = JSON.stringify({ size: this.#size, version: this.#version, done: this.#done });
      await writeFile(next, text)
        .then(() => rename(next, this.#note))
        .catch(() => rm(next, { force: true }).catch(() => undefined));
    });
    return this.#noting;
  }

  /** Closes it; what came stays for the next time. */
  async close(): Promise<void> {
    await this.note();
    await this.#handle.close();
  }

  /** Gives the whole file its name. */
  async finish(to: string): Promise<void> {
    try {
      await this.#handle.sync();
      await this.#handle.close();
      await rename(this.path, to);
    } catch (error) {
      throw diskError(error, to);
    }
    await this.#noting;
    await rm(this.#note, { force: true });
  }

  /** Throws away what came. */
  async discard(): Promise<void> {
    await this.#handle.close();
    await this.#noting;
    await Promise.all([rm(this.path, { force: true }), rm(this.#note, { force: true })]);
  }
}

async function keptRanges(path: string, size: number, version: string): Promise<Range[] | undefined> {
  try {
    const note = JSON.parse(await readFile(path, 'utf8')) as {
      readonly size?: unknown;
      readonly version?: unknown;
      readonly done?: unknown;
    } | null;
    return note?.size === size && note.version === version ? readRanges(note.done, size) : undefined;
  } catch {
    return undefined; // none, or one that cannot be read: then nothing is known of what is there
  }
}

/** Bytes of a file that came before and were kept. */
export async function keptBytes(to: string, size: number, version: string): Promise<number> {
  return rangeBytes((await keptRanges(`${partPath(to)}.json`, size, version)) ?? []);
}
