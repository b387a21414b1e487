/** Reads the text files that settings name: keys, certificates, a config file. */
import { readFileSync } from 'node:fs';

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such file',
  EISDIR: 'is a folder, where a file is expected',
  EACCES: 'this user may not read it',
};

/** Reads a text file that a setting names, without the byte order mark that Windows programs write; throws an Error that says why it cannot be read. */
export function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8').replace(/^\uFEFF/, '');
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    throw new Error(REASONS[code] ?? message, { cause: error });
  }
}
