/** Reads wheels (zip) and npm's packages (tar.gz). Names are checked before anything is written, links are refused, and sizes are bounded. */
import { once } from 'node:events';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Readable } from 'node:stream';
import type { ReadEntry } from 'tar';
import { SourceError } from '../errors.ts';
import { pathProblem, quoteName } from '../names.ts';
import { diskError } from './disk.ts';

/** A file in an archive. */
export interface Member {
  readonly path: string;
  readonly size: number;
}

/** Largest ratio of unpacked to packed bytes. Weights hardly compress, so an archive that grows by more is made to fill disks. */
const MAX_GROWTH = 200;
const MAX_MEMBERS = 100_000;

/** Lists the files in an archive; throws SourceError if one of their names could lead out of a folder. */
export async function listArchive(archive: string): Promise<Member[]> {
  const members: Member[] = [];
  const limit = (await stat(archive)).size * MAX_GROWTH + 2 ** 20;
  let bytes = 0;
  await eachMember(archive, async (member) => {
    members.push(member);
    bytes += member.size;
    if (members.length > MAX_MEMBERS) throw refused(archive, `has more than ${MAX_MEMBERS} files`);
    if (bytes > limit) throw refused(archive, `would grow to more than ${MAX_GROWTH} times its size`);
  });
  const names = new Set(members.map(({ path }) => path));
  const within = members.find(({ path }) => foldersOf(path).some((folder) => names.has(folder)));
  if (within) throw refused(archive, `holds ${quoteName(within.path)} and a file in the place of its folder`);
  return members;
}

/** The folders that contain a path, the outermost first. */
function foldersOf(path: string): string[] {
  const parts = path.split('/');
  return parts.slice(1).map((_, count) => parts.slice(0, count + 1).join('/'));
}

/** Extracts members below a folder, under their paths. */
export async function extract(archive: string, paths: ReadonlySet<string>, folder: string, signal: AbortSignal): Promise<void> {
  await eachMember(archive, async ({ path }, open) => {
    if (!paths.has(path)) return;
    const to = join(folder, ...path.split('/'));
    try {
      await mkdir(dirname(to), { recursive: true });
      await pipeline(await open(), createWriteStream(to), { signal });
    } catch (error) {
      throw diskError(error, to);
    }
  });
}

type Take = (member: Member, open: () => Promise<Readable>) => Promise<void>;

const refused = (archive: string, why: string): SourceError => new SourceError('refused', `${basename(archive)} ${why}; refused`);

function checkName(archive: string, path: string): void {
  const problem = pathProblem(path);
  if (problem !== undefined) throw refused(archive, `holds a file ${quoteName(path)}, whose name ${problem}`);
}

async function eachMember(archive: string, take: Take): Promise<void> {
  try {
    await (archive.endsWith('.whl') ? eachOfZip(archive, take) : eachOfTar(archive, take));
  } catch (error) {
    if (
      error instanceof SourceError ||
      (error as Error).name === 'AbortError' ||
      typeof (error as NodeJS.ErrnoException).syscall === 'string'
    )
      throw error;
    throw new SourceError('damaged', `${basename(archive)} cannot be read: ${(error as Error).message.split('\n')[0]}`, { cause: error });
  }
}

const UNIX_LINK = 0o120000;

async function eachOfZip(archive: string, take: Take): Promise<void> {
  const { openPromise } = await import('yauzl');
  // Names are checked here, with our own messages.
  const zip = await openPromise(archive, { lazyEntries: true, decodeStrings: false, autoClose: false });
  try {
    for await (const entry of zip.eachEntry()) {
      const path = new TextDecoder('utf-8', { fatal: true }).decode(entry.fileNameRaw);
      if (((entry.externalFileAttributes >>> 16) & 0o170000) === UNIX_LINK) throw refused(archive, `holds a link (${quoteName(path)})`);
      checkName(archive, path.replace(/\/$/, ''));
      if (!path.endsWith('/')) await take({ path, size: entry.uncompressedSize }, () => zip.openReadStreamPromise(entry));
    }
  } finally {
    zip.close();
  }
}

async function eachOfTar(archive: string, take: Take): Promise<void> {
  const { Parser } = await import('tar');
  let failure: unknown;
  const visits: Promise<void>[] = [];
  const visit = async (entry: ReadEntry): Promise<void> => {
    if (failure !== undefined) return;
    const isFile = ['File', 'OldFile', 'ContiguousFile'].includes(entry.type);
    if (!isFile && entry.type !== 'Directory') throw refused(archive, `holds a ${entry.type} (${quoteName(entry.path)})`);
    checkName(archive, entry.path.replace(/\/$/, ''));
    // npm's archives have one outer folder, which npm removes too.
    const path = entry.path.slice(entry.path.indexOf('/') + 1);
    if (isFile) await take({ path, size: entry.size }, async () => entry as unknown as Readable);
  };
  // The next entry is emitted once this one has been read to its end.
  const onReadEntry = (entry: ReadEntry): void => {
    const ended = visit(entry).catch((error: unknown) => (failure ??= error));
    visits.push(
      ended.then(() => {
        entry.resume();
      }),
    );
  };
  const parser = new Parser({ strict: true, onReadEntry });
  const ended = once(parser, 'end');
  ended.catch(() => undefined);
  for await (const bytes of createReadStream(archive)) {
    if (!parser.write(bytes as Buffer)) await once(parser, 'drain');
    if (failure !== undefined) break;
  }
  if (failure === undefined) {
    parser.end();
    await ended;
  }
  await Promise.all(visits);
  if (failure !== undefined) throw failure;
}
