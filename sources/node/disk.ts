/** Free disk space, and messages for failures to write. */
import { open, readdir, stat, statfs } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { SourceError } from '../errors.ts';
import { formatBytes } from '../progress.ts';

/** Access to the disk, which tests replace. */
export interface DiskAccess {
  open(path: string, flags: string): Promise<Pick<FileHandle, 'write' | 'sync' | 'close'>>;
  /** Bytes that may still be written to a folder's disk; undefined if unknown. */
  free(folder: string): Promise<number | undefined>;
}

/** The real disk. */
export const DISK: DiskAccess = {
  open: (path, flags) => open(path, flags),
  free: async (folder) => {
    const found = await statfs(folder).catch(() => undefined);
    return found && Number(found.bavail) * Number(found.bsize);
  },
};

/** Bytes left free for others when a download would fill a disk. */
const SPARE_BYTES = 64 * 2 ** 20;

/** Throws SourceError('disk') if `bytes` more do not fit into `folder`, which must exist. */
export async function requireRoom(disk: DiskAccess, folder: string, bytes: number): Promise<void> {
  const free = await disk.free(folder);
  if (bytes === 0 || free === undefined || bytes + SPARE_BYTES <= free) return;
  const lacking = formatBytes(bytes + SPARE_BYTES - free);
  throw new SourceError(
    'disk',
    `${formatBytes(bytes)} have to come and ${formatBytes(free)} are free in ${folder}: make room for ${lacking} more, or set HF_HOME and PARLEY_CACHE to folders of another disk`,
  );
}

/** Converts an error of the file system to a SourceError that explains it; returns any other error unchanged. */
export function diskError(error: unknown, path: string): unknown {
  const { code, syscall } = (error ?? {}) as NodeJS.ErrnoException;
  const folder = dirname(path);
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return new SourceError('disk', `the disk is full: ${folder}; what came is kept, so make room and do the same again`, { cause: error });
  if (code === 'EFBIG')
    return new SourceError('disk', `no file may become so large in ${folder} (EFBIG; 'ulimit -f' shows the limit); what came is kept`, {
      cause: error,
    });
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS')
    return new SourceError('disk', `this may not be written: ${folder} (${code}); set HF_HOME and PARLEY_CACHE to folders that may`, {
      cause: error,
    });
  // For example a link to a missing disk, a file in place of a folder, or a name that is too long.
  if (code !== undefined && syscall !== undefined)
    return new SourceError('disk', `nothing can be kept in ${folder} (${code}); HF_HOME and PARLEY_CACHE name other folders`, {
      cause: error,
    });
  return error;
}

/** Whether anything is at this path. */
export const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

/** Total size of the files in a folder, in bytes; links do not count. */
export async function folderBytes(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const sizes = await Promise.all(
    entries
      .filter((entry) => entry.isFile())
      .map((entry) =>
        stat(join(entry.parentPath, entry.name)).then(
          ({ size }) => size,
          () => 0,
        ),
      ),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}
