/**
 * Fetches packages of a registry with the user's own pip and npm, so that their mirrors, proxies and credentials apply. Only the archive is fetched: no
 * dependencies, no source distributions (whose build would run code), no scripts; nothing is installed.
 */
import { spawn } from 'node:child_process';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { SourceError } from '../errors.ts';
import type { PackageSource } from '../source.ts';
import type { PullContext } from './context.ts';
import { diskError, folderBytes } from './disk.ts';

export type PackageName = Pick<PackageSource, 'registry' | 'name' | 'version'>;

/** For each registry: the extension of its archives, the commands that may start its tool, and the message if none does. */
const TOOLS: Readonly<
  Record<
    PackageSource['registry'],
    { readonly ending: string; readonly commands: readonly (readonly string[])[]; readonly missing: string }
  >
> = {
  pypi: {
    ending: '.whl',
    commands: [['pip'], ['pip3'], ['python3', '-m', 'pip'], ['python', '-m', 'pip'], ['py', '-m', 'pip']],
    missing:
      'packages of PyPI are fetched with pip, and there is none: install Python with pip (Debian: apt install python3-pip), or put it on the PATH',
  },
  npm: { ending: '.tgz', commands: [['npm']], missing: 'packages of npm are fetched with npm, and there is none on the PATH' },
};

const WATCH_MS = 500;

/** Downloads a package into `folder`, which is emptied first; returns the archive's path. `onBytes` receives the number of bytes so far. */
export async function fetchPackage(
  source: PackageName,
  folder: string,
  context: PullContext,
  onBytes: (done: number, total?: number) => void,
): Promise<string> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true }).catch((error: unknown) => {
    throw diskError(error, folder);
  });
  const { ending, commands, missing } = TOOLS[source.registry];
  const what = `${source.registry}:${source.name}@${source.version}`;
  let said: string | undefined;
  for (const command of commands) {
    said = await runTool([...command, ...askFor(source, folder)], folder, context, what, onBytes);
    if (said !== undefined) break;
  }
  if (said === undefined) throw new SourceError('tool', `${what}: ${missing}`);
  const archives = (await readdir(folder)).filter((name) => name.endsWith(ending));
  if (archives.length !== 1) throw new SourceError('tool', `${what}: ${archives.length} archives came, expected one`);
  return join(folder, archives[0]!);
}

function askFor({ registry, name, version }: PackageName, folder: string): string[] {
  if (registry === 'npm')
    return [
      'pack',
      `${name}@${version}`,
      '--pack-destination',
      folder,
      '--ignore-scripts',
      '--silent',
      '--no-update-notifier',
      '--no-fund',
      '--no-audit',
    ];
  const only = ['--no-deps', '--only-binary=:all:', '--ignore-requires-python'];
  return [
    'download',
    ...only,
    '--no-cache-dir',
    '--no-input',
    '--disable-pip-version-check',
    '--progress-bar=off',
    '--dest',
    folder,
    `${name}==${version}`,
  ];
}

/** Runs a tool to its end; returns its output, or undefined if it is not installed. Throws SourceError if it fails. */
async function runTool(
  argv: readonly string[],
  folder: string,
  { env, signal }: PullContext,
  what: string,
  onBytes: (done: number, total?: number) => void,
): Promise<string | undefined> {
  const [command, ...rest] = portable(argv);
  // Partial downloads should be on the same disk, where they are counted.
  const environment = { ...env, TMPDIR: folder, TEMP: folder, TMP: folder };
  const child = spawn(command!, rest, { env: environment, stdio: ['ignore', 'pipe', 'pipe'], signal });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8');
    stream.on('data', (text: string) => (said = (said + text).slice(-20_000)));
  }
  const watch = setInterval(() => void folderBytes(folder).then((bytes) => onBytes(bytes, announcedBytes(said))), WATCH_MS);
  try {
    const code = await new Promise<number | undefined>((resolve, reject) => {
      child.on('error', (error: NodeJS.ErrnoException) => (error.code === 'ENOENT' ? resolve(undefined) : reject(error)));
      child.on('close', (status) => resolve(status ?? 1));
    });
    if (code === undefined || (code !== 0 && /No module named pip/.test(said))) return undefined;
    if (code !== 0) throw toolError(what, argv, said, folder);
    return said;
  } finally {
    clearInterval(watch);
  }
}

/** On Windows npm is a script, which needs a shell, so npm's own program is run by this Node if its path is known. */
function portable(argv: readonly string[]): readonly string[] {
  const npm = process.env['npm_execpath'];
  if (argv[0] !== 'npm' || process.platform !== 'win32' || !npm?.endsWith('.js')) return argv;
  return [process.execPath, npm, ...argv.slice(1)];
}

/** Size in bytes that pip announces before a download: `Downloading name.whl (98.1 MB)`. */
function announcedBytes(said: string): number | undefined {
  const [, number, unit] = [...said.matchAll(/Downloading \S+ \((\d+(?:\.\d+)?) ([kMG]?)B\)/g)].at(-1) ?? [];
  return number === undefined ? undefined : Number(number) * { '': 1, k: 1e3, M: 1e6, G: 1e9 }[unit as '' | 'k' | 'M' | 'G'];
}

function toolError(what: string, argv: readonly string[], said: string, folder: string): unknown {
  if (/No space left on device|ENOSPC/.test(said)) return diskError(Object.assign(new Error(said), { code: 'ENOSPC' }), folder);
  const command = argv.slice(0, argv.findIndex((word) => word === 'download' || word === 'pack') + 1).join(' ');
  return new SourceError('tool', `${what}: ${command} failed: ${lastError(said)}`);
}

/** The line of a tool's output that tells the error: in Python's tracebacks the last. */
function lastError(said: string): string {
  const lines = said
    .split('\n')
    .map((line) => line.replace(/\x1b\[[0-9;]*m/g, '').trim())
    .filter((line) => line !== '');
  const errors = lines.filter((line) => /^(ERROR|npm (ERR!|error))/i.test(line));
  const line =
    errors.find((text) => /No matching distribution|E404|code E|Could not/i.test(text)) ??
    errors.findLast((text) => !text.endsWith('Exception:')) ??
    lines.at(-1) ??
    'it said nothing';
  return line.replace(/^ERROR: /, '').slice(0, 300);
}
