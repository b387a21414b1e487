/** A partial file, with a note of which bytes it has, so that a download can be resumed after any interruption. */
import { open, readFile, rename, rm } from 'node:fs/promises';
import { addRange, rangeBytes, readRanges } from '../ranges.ts';
import type { Range } from '../ranges.ts';
import type { DiskAccess } from './disk.ts';
import { diskError } from './disk.ts';

/** Milliseconds between two notes. After a process was killed, what it fetched within this time is fetched again. */
const NOTE_EVERY_MS = 1_000;
/** Bytes of a note, allocated at the beginning, since it must be possible to write one when the disk is full. */
const NOTE_BYTES = 4096;

type Handle = Awaited<ReturnType<DiskAccess['open']>>;

/** Content of a note. Two notes are written in turns, so that one of them is always intact; the one with the higher number is valid. */
interface Note {
  readonly turn: number;
  readonly size: number;
  readonly version: string;
  readonly done: readonly Range[];
}

/** Not `.incomplete`, which Hugging Face's own client would resume without knowing of holes. */
const partPath = (to: string): string => `${to}.parley-part`;
const notePaths = (part: string): readonly [string, string] => [`${part}.0.json`, `${part}.1.json`];

/** A partial file that is being written. */
export class PartFile {
  readonly path: string;
  readonly #size: number;
  readonly #version: string;
  readonly #handle: Handle;
  #turn: number;
  #done: readonly Range[];
  #noted = performance.now();
  #noting: Promise<void> = Promise.resolve();

  private constructor(path: string, handle: Handle, { turn, size, version, done }: Note) {
    [this.path, this.#handle, this.#turn, this.#size, this.#version, this.#done] = [path, handle, turn, size, version, done];
  }

  /** Opens the partial file and keeps what it has of the same version; anything else is discarded. `version` identifies the content, by hash or ETag. */
  static async open(disk: DiskAccess, to: string, size: number, version: string): Promise<PartFile> {
    const path = partPath(to);
    const kept = await readNote(path, size, version);
    try {
      const found = kept && (await disk.open(path, 'r+').catch(() => undefined));
      const handle = found ?? (await disk.open(path, 'w+'));
      const note: Note = found ? kept : { turn: 0, size, version, done: [] };
      for (const place of notePaths(path)) await writeNote(place, note);
      return new PartFile(path, handle, note);
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

  /** Forgets which bytes are there. */
  forget(): void {
    this.#done = [];
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

  /** Writes a note of which bytes are there. */
  async note(): Promise<void> {
    this.#noted = performance.now();
    this.#noting = this.#noting.then(() => {
      const note: Note = { turn: ++this.#turn, size: this.#size, version: this.#version, done: this.#done };
      // The previous note stays valid.
      return writeNote(notePaths(this.path)[this.#turn % 2]!, note).catch(() => undefined);
    });
    return this.#noting;
  }

  /** Closes the file, which is kept for the next try. */
  async close(): Promise<void> {
    await this.note();
    await this.#handle.close();
  }

  /** Gives the complete file its name. */
  async finish(to: string): Promise<void> {
    try {
      await this.#handle.sync();
      await this.#handle.close();
      await rename(this.path, to);
    } catch (error) {
      throw diskError(error, to);
    }
    await this.#noting;
    for (const note of notePaths(this.path)) await rm(note, { force: true });
  }

  /** Discards the file. */
  async discard(): Promise<void> {
    await this.#handle.close();
    await this.#noting;
    for (const path of [this.path, ...notePaths(this.path)]) await rm(path, { force: true });
  }
}

/** Overwrites a note, which needs no additional space. */
async function writeNote(path: string, note: Note): Promise<void> {
  const text = Buffer.from(JSON.stringify(note).padEnd(NOTE_BYTES));
  const handle = await open(path, 'r+').catch(() => open(path, 'w+'));
  try {
    await handle.write(text, 0, text.length, 0);
    // The previous note may have been longer.
    await handle.truncate(text.length);
  } finally {
    await handle.close();
  }
}

/** The latest note of this version of a file; undefined if there is none. */
async function readNote(part: string, size: number, version: string): Promise<Note | undefined> {
  const notes = await Promise.all(
    notePaths(part).map(async (path): Promise<Note | undefined> => {
      try {
        const note = JSON.parse(await readFile(path, 'utf8')) as Partial<Note> | null;
        const done = readRanges(note?.done, size);
        return done && note?.size === size && note.version === version && Number.isSafeInteger(note.turn)
          ? { turn: note.turn!, size, version, done }
          : undefined;
      } catch {
        return undefined; // none, or one that was being written when its process ended
      }
    }),
  );
  const [one, other] = notes;
  return one && other ? (one.turn > other.turn ? one : other) : (one ?? other);
}

/** Number of bytes of a file that an earlier try fetched and kept. */
export async function keptBytes(to: string, size: number, version: string): Promise<number> {
  return rangeBytes((await readNote(partPath(to), size, version))?.done ?? []);
}
