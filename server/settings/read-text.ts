/** Text files that settings name: keys, certificates, a config file. */
import { readFileSync } from 'node:fs';

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such file',
  EISDIR: 'is a folder, where a file is expected',
  EACCES: 'this user may not read it',
};

/** The text of a file that a setting names, without the mark that Windows' programs begin it with; throws an Error that says in words why it cannot be read. */
export function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8').replace(/^\uFEFF/, '');
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    throw new Error(REASONS[code] ?? message, { cause: error });
  }
}
