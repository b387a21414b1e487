/**
 * Reads the directory of a zip archive, and its files by byte ranges. Libraries inflate whole files; weights are stored uncompressed and
 * read in place, which needs their offsets. Format: PKWARE's APPNOTE 6.3.
 */
import { EngineError } from '../errors.ts';
import type { ByteSource } from '../platform/platform.ts';

/** A file of an archive. */
export interface ZipEntry {
  readonly name: string;
  /** Offset of its local header. */
  readonly header: number;
  readonly stored: boolean;
  /** Bytes in the archive, and bytes after inflating. */
  readonly packed: number;
  readonly size: number;
}

/** Limits of the directory; published weights have 550 files with names of 40 characters. */
const MAX_ENTRIES = 1 << 14;
const MAX_DIRECTORY = 4 * 2 ** 20;

const END = 0x06054b50;
const END_64 = 0x06064b50;
const LOCATOR_64 = 0x07064b50;
const DIRECTORY = 0x02014b50;
const LOCAL = 0x04034b50;
/** Value of a 32-bit field whose number is stored elsewhere in 64 bits. */
const ELSEWHERE = 0xffff_ffff;
const END_BYTES = 22;
const MAX_COMMENT = 0xffff;

/** Reads an archive's directory: its files by name; throws EngineError('invalid_model') with its path and what is wrong. */
export async function readZip(path: string, source: ByteSource): Promise<ReadonlyMap<string, ZipEntry>> {
  const { count, offset, size } = await findDirectory(path, source);
  if (count > MAX_ENTRIES || size > MAX_DIRECTORY) throw broken(path, `it claims ${count} files in a table of ${size} bytes; at most ${MAX_ENTRIES} in ${MAX_DIRECTORY} are read`); // prettier-ignore
  if (offset + size > source.size) throw broken(path, `its table of files ends at byte ${offset + size} of ${source.size}`);
  const bytes = await source.read(offset, size);
  const entries = new Map<string, ZipEntry>();
  for (let at = 0, i = 0; i < count; i++) {
    const { entry, next } = readEntry(path, viewOf(bytes), bytes, at);
    if (entry.header + entry.packed > source.size) throw broken(path, `${entry.name} takes ${entry.packed} bytes at ${entry.header} of ${source.size} (file cut short?)`); // prettier-ignore
    entries.set(entry.name, entry);
    at = next;
  }
  return entries;
}

/** Offset of the first byte of a file's contents. */
export async function dataStart(path: string, source: ByteSource, { name, header, packed }: ZipEntry): Promise<number> {
  const fixed = 30;
  if (header + fixed > source.size) throw broken(path, `${name} begins at byte ${header} of ${source.size}`);
  const view = viewOf(await source.read(header, fixed));
  if (view.getUint32(0, true) !== LOCAL) throw broken(path, `${name} does not begin at byte ${header}`);
  const start = header + fixed + view.getUint16(26, true) + view.getUint16(28, true);
  if (start + packed > source.size) throw broken(path, `${name} ends at byte ${start + packed} of ${source.size}`);
  return start;
}

/** Reads a whole file, inflating it if it is compressed; throws EngineError('invalid_model') when it has more than `most` bytes. */
export async function readEntryBytes(path: string, source: ByteSource, entry: ZipEntry, most: number): Promise<Uint8Array> {
  if (Math.max(entry.size, entry.packed) > most) throw broken(path, `${entry.name} has ${Math.max(entry.size, entry.packed)} bytes; at most ${most} are read`); // prettier-ignore
  const packed = await source.read(await dataStart(path, source, entry), entry.packed);
  return entry.stored ? packed : await inflate(path, packed, entry);
}

/** Inflates at most the size that the directory claims, so that a small file cannot become a large one. */
async function inflate(path: string, packed: Uint8Array, { name, size }: ZipEntry): Promise<Uint8Array> {
  const out = new Uint8Array(size);
  let at = 0;
  try {
    const stream = new Blob([packed as Uint8Array<ArrayBuffer>]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
    for (const reader = stream.getReader(); ;) {
      const { done, value } = await reader.read();
      if (done) break;
      if (at + value.length > size) {
        await reader.cancel();
        at = size + 1;
        break;
      }
      out.set(value, at);
      at += value.length;
    }
  } catch (cause) {
    throw new EngineError('invalid_model', `${path}: ${name} cannot be unpacked`, { cause });
  }
  if (at !== size) throw broken(path, `${name} unpacks to ${at > size ? 'more than' : `${at} of`} ${size} bytes`);
  return out;
}

interface Directory {
  readonly count: number;
  readonly offset: number;
  readonly size: number;
}

async function findDirectory(path: string, source: ByteSource): Promise<Directory> {
  const length = Math.min(source.size, END_BYTES + MAX_COMMENT);
  const tail = await source.read(source.size - length, length);
  const view = viewOf(tail);
  let at = length - END_BYTES;
  while (at >= 0 && view.getUint32(at, true) !== END) at--;
  if (at < 0) throw broken(path, 'it has no table of files at its end (file cut short?)');
  const directory = { count: view.getUint16(at + 10, true), size: view.getUint32(at + 12, true), offset: view.getUint32(at + 16, true) };
  const locator = at - 20;
  if (locator < 0 || view.getUint32(locator, true) !== LOCATOR_64) return directory;
  const end = Number(view.getBigUint64(locator + 8, true));
  if (!(end + 56 <= source.size)) throw broken(path, `its table of files is said to end at byte ${end} of ${source.size}`);
  const wide = viewOf(await source.read(end, 56));
  if (wide.getUint32(0, true) !== END_64) throw broken(path, `its table of files does not end at byte ${end}`);
  const number = (offset: number): number => Number(wide.getBigUint64(offset, true));
  return { count: number(32), size: number(40), offset: number(48) };
}

function readEntry(path: string, view: DataView, bytes: Uint8Array, at: number): { readonly entry: ZipEntry; readonly next: number } {
  const fixed = 46;
  if (at + fixed > bytes.length || view.getUint32(at, true) !== DIRECTORY) throw broken(path, 'its table of files is damaged');
  const [nameBytes, extraBytes, commentBytes] = [
    view.getUint16(at + 28, true),
    view.getUint16(at + 30, true),
    view.getUint16(at + 32, true),
  ];
  const extra = at + fixed + nameBytes;
  const next = extra + extraBytes + commentBytes;
  if (next > bytes.length) throw broken(path, 'its table of files is damaged');
  const name = new TextDecoder().decode(bytes.subarray(at + fixed, extra));
  if (/[\p{Cc}\ufffd]/u.test(name) || name.length > 512) throw broken(path, 'a file in it has a name that is no text');
  const [flags, method] = [view.getUint16(at + 8, true), view.getUint16(at + 10, true)];
  if (flags & 1) throw broken(path, `${name} is encrypted`);
  if (method !== 0 && method !== 8) throw broken(path, `${name} is packed by method ${method}, expected 0 or 8`);
  const wide = wideFields(view, extra, extraBytes);
  const number = (offset: number): number => {
    const value = view.getUint32(at + offset, true);
    return value === ELSEWHERE ? (wide.shift() ?? value) : value;
  };
  const size = number(24);
  const packed = number(20);
  const header = number(42);
  if (method === 0 && size !== packed) throw broken(path, `${name} is stored and has two sizes, ${size} and ${packed}`);
  return { entry: { name, header, stored: method === 0, packed, size }, next };
}

/** A file's 64-bit numbers, in order. */
function wideFields(view: DataView, from: number, length: number): number[] {
  for (let at = from; at + 4 <= from + length; at += 4 + view.getUint16(at + 2, true)) {
    if (view.getUint16(at, true) !== 1) continue;
    const count = Math.min(view.getUint16(at + 2, true), from + length - at - 4) >> 3;
    return Array.from({ length: count }, (_, i) => Number(view.getBigUint64(at + 4 + 8 * i, true)));
  }
  return [];
}

const viewOf = ({ buffer, byteOffset, byteLength }: Uint8Array): DataView => new DataView(buffer, byteOffset, byteLength);

function broken(path: string, why: string): EngineError {
  return new EngineError('invalid_model', `${path} is not a zip archive that can be read: ${why}`);
}
