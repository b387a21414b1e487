/** File access of Node's platform. */
import { mkdir, open as openFile, readFile, readdir, rename, stat, writeFile } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { EngineError } from '../errors.ts';
import type { ByteSource, KeptTexts } from './platform.ts';

/** Texts as files of a folder. A text is written to a temporary file and renamed, so that other processes never read half of it. */
export function keptIn(folder: string): KeptTexts {
  return {
    read: (name) => readFile(join(folder, name), 'utf8').catch(() => undefined),
    async write(name, text) {
      await mkdir(folder, { recursive: true });
      const beside = join(folder, `${name}.${process.pid}`);
      await writeFile(beside, text);
      await rename(beside, join(folder, name));
    },
  };
}

export async function listFolder(path: string): Promise<readonly string[] | undefined> {
  return await readdir(path).catch(() => undefined);
}

/** Opens a regular file; throws EngineError('invalid_model') for anything else. It is checked first, since opening a pipe could block forever. */
async function openRegularFile(path: string): Promise<FileHandle> {
  const refuse = (why: string, cause?: unknown): EngineError => new EngineError('invalid_model', `${why}: ${path}`, { cause });
  try {
    const found = await stat(path);
    if (found.isFile()) return await openFile(path, 'r');
    throw refuse(found.isDirectory() ? 'a folder stands where a file is expected' : 'not a regular file');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (error instanceof EngineError) throw error;
    throw refuse(code === 'ENOENT' || code === 'ENOTDIR' ? 'file not found' : `file cannot be read (${code})`, error);
  }
}

export async function openByteSource(path: string): Promise<ByteSource> {
  const handle = await openRegularFile(path);
  const { size } = await handle.stat();
  return {
    size,
    async read(offset, length, into) {
      const bytes = into && into.length >= length ? into.subarray(0, length) : new Uint8Array(length);
      let done = 0;
      while (done < length) {
        const { bytesRead } = await handle.read(bytes, done, length - done, offset + done);
        if (bytesRead === 0) {
          throw new EngineError('invalid_model', `${path} is cut short: expected ${offset + length} bytes, found ${offset + done}`);
        }
        done += bytesRead;
      }
      return bytes;
    },
    close: () => handle.close(),
  };
}
