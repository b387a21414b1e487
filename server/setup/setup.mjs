/**
 * First steps of `npm start` and `npm test`: installs the npm packages and builds the playground; drivers.mjs provides the adapter. Plain Node, because nothing is
 * installed yet. Each run checks what is missing (in well under a second), so nothing is installed twice. Nothing outside the checkout changes.
 * PARLEY_NO_INSTALL=1 forbids installing and fetching anything.
 */
import { spawnSync } from 'node:child_process';
import {
  accessSync,
  constants,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  rmdirSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { outliveReaders } from '../closed-pipe.mjs';
import { CACHE, IS_REPOSITORY, PAGE, ROOT } from './layout.mjs';
import { LEAST_OPEN_FILES, openFilesLimit } from './open-files.mjs';

const MINIMUM_NODE = [20, 19];
/** A path as people would type it, relative to the current folder; absolute if that no longer exists. */
export const shown = (path) => (folderProblem() === undefined ? relative(process.cwd(), path) : path);
/** Hint for removing everything that was fetched. */
export const REMOVE = `To remove it: rm -r ${shown(CACHE)}`;

export const say = (line) => process.stderr.write(`setup: ${line}\n`);
/** Whether the user has forbidden to install and fetch, in any spelling of yes that sources/node/settings.ts accepts. */
export const isForbidden = () => ['1', 'on', 'yes', 'true'].includes((process.env.PARLEY_NO_INSTALL ?? '').toLowerCase());

/** A failure that the user can mend, printed without a stack. `exitCode` 2: the same start would meet it again. */
export class SetupError extends Error {
  constructor(message, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Error code of a missing current folder; undefined if it exists. On Unix it can be deleted while a shell is in it. */
function folderProblem() {
  try {
    process.cwd();
  } catch (error) {
    return error.code;
  }
  return undefined;
}

/** Prints a SetupError's message and exits with its code; anything else is a bug and keeps its stack. */
export async function withSetup(main) {
  outliveReaders();
  try {
    requireCurrentFolder();
    await main();
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(error.exitCode);
  }
}

/** Requires the current folder: files that settings name are looked for in it, and if it is missing, Node ends wherever it is asked for. */
function requireCurrentFolder() {
  const problem = folderProblem();
  if (problem !== undefined) throw new SetupError(`the current folder is not there any more (${problem}); change to another one`, 2);
}

/** Throws a SetupError if this version of Node is too old. */
export function requireNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > MINIMUM_NODE[0] || (major === MINIMUM_NODE[0] && minor >= MINIMUM_NODE[1])) return;
  throw new SetupError(`Parley needs Node ${MINIMUM_NODE.join('.')} or newer; this is ${process.versions.node}.`);
}

const isWritable = (folder) => {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
};

/** Requires a writable folder for temporary files: uploads are decoded into it, and tsx caches its output there. */
export function requireTemporaryFolder() {
  const folder = tmpdir();
  try {
    // Rights alone do not tell: root has them all, and in /proc nobody can make anything.
    rmdirSync(mkdtempSync(join(folder, 'parley-')));
  } catch (error) {
    // What may have room again is no reason not to start.
    if (error.code === 'ENOSPC' || error.code === 'EDQUOT') return;
    throw new SetupError(`temporary files cannot be written to ${folder} (${error.code}); TMPDIR names another folder`, 2);
  }
}

/** Requires that enough files may be open at once: with fewer the server's modules cannot even be read. */
export function requireOpenFiles() {
  const limit = openFilesLimit();
  if (limit === undefined || limit >= LEAST_OPEN_FILES) return;
  throw new SetupError(`only ${limit} files may be open at once, and Parley needs ${LEAST_OPEN_FILES}: ulimit -n ${LEAST_OPEN_FILES}`, 2);
}

/** Runs `npm ci`, unless node_modules has what the lock file asks for. `dev` adds what only tests need. */
export function installPackages({ dev }) {
  if (!IS_REPOSITORY) return;
  const lacking = missingPackages(dev);
  if (lacking.length === 0) return;
  const command = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error', ...(dev ? [] : ['--omit=dev'])];
  if (isForbidden())
    throw new SetupError(`npm packages are missing (${lacking[0]}) and PARLEY_NO_INSTALL=1 is set. Run: npm ${command.join(' ')}`);
  say(`installing ${lacking.length} npm packages`);
  const done = runNpm(command, { cwd: ROOT, stdio: 'inherit' });
  if (done.status !== 0) throw new SetupError('npm could not install the packages (its message is above).');
}

/** Runs the npm that runs this process, or else the one on the PATH; returns the result of spawnSync. */
export function runNpm(command, options) {
  const npm = process.env.npm_execpath;
  if (npm?.endsWith('.js')) return spawnSync(process.execPath, [npm, ...command], options);
  return spawnSync('npm', command, { ...options, shell: process.platform === 'win32' });
}

/** Lists missing packages, by comparing the lock file with npm's own record of node_modules. Packages for other platforms are optional and ignored. */
function missingPackages(dev) {
  const wanted = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')).packages;
  const record = join(ROOT, 'node_modules', '.package-lock.json');
  const installed = existsSync(record) ? JSON.parse(readFileSync(record, 'utf8')).packages : {};
  return Object.keys(wanted).filter((path) => {
    const entry = wanted[path];
    if (path === '' || entry.optional || entry.devOptional || (entry.dev && !dev)) return false;
    return installed[path]?.version !== entry.version || !existsSync(join(ROOT, path, 'package.json'));
  });
}

/** Builds the playground into dist/web, unless that is newer than its sources; returns the folder. Without it the listeners still serve. */
export function buildPlayground() {
  if (IS_REPOSITORY && existsSync(join(ROOT, 'web', 'index.html')) && !isBuilt()) build();
  return PAGE;
}

/**
 * Builds the playground beside its place, so that a build that is stopped, or that of another process at the same time, leaves no half of a page there, and a server
 * serves none meanwhile. `always` replaces one that another process has built meanwhile. Returns whether it was built.
 */
export function build({ always = false } = {}) {
  const dist = dirname(PAGE);
  if (![existsSync(dist) ? dist : ROOT, PAGE].filter(existsSync).every(isWritable)) {
    say(`the playground is not built: ${shown(PAGE)} may not be written by this user; the listeners do not need it`);
    return false;
  }
  say('building the playground');
  removeStopped(dist);
  const unfinished = `${PAGE}.${process.pid}`;
  const vite = join(ROOT, 'node_modules', 'vite', 'bin', 'vite.js');
  const { status } = spawnSync(
    process.execPath,
    [vite, 'build', '--config', 'web/vite.config.ts', '--configLoader', 'runner', '--outDir', unfinished, '--logLevel', 'error'],
    {
      cwd: ROOT,
      stdio: 'inherit',
    },
  );
  if (status !== 0) say('the playground was not built (see above); the listeners do not need it');
  // Another process may have built it meanwhile, and may serve it by now.
  else if (always || !isBuilt()) placePage(unfinished);
  rmSync(unfinished, { recursive: true, force: true });
  return status === 0;
}

/** Puts the built page in its place. */
function placePage(built) {
  try {
    replaceFolder(built, PAGE);
  } catch (error) {
    if (error.code !== 'EBUSY') throw error;
    exchangeFiles(built, PAGE);
  }
}

/** Gives `folder` the files of `built` where it cannot be replaced itself, since a file system is mounted there. */
function exchangeFiles(built, folder) {
  // The page's own file comes last: by it the page counts as built.
  const isLast = (name) => Number(name === 'index.html');
  const names = readdirSync(built).sort((a, b) => isLast(a) - isLast(b));
  for (const name of names) cpSync(join(built, name), join(folder, name), { recursive: true });
  for (const name of readdirSync(folder, { recursive: true }))
    if (!existsSync(join(built, name))) rmSync(join(folder, name), { recursive: true, force: true });
}

/** Whether the playground is there and newer than everything that it is built from. */
function isBuilt() {
  // The page's self-test is built from test/.
  const parts = ['web', 'engine', 'sources', 'shaders', 'models', 'test', 'package-lock.json']
    .map((path) => join(ROOT, path))
    .filter(existsSync);
  const page = join(PAGE, 'index.html');
  return existsSync(page) && Math.max(...parts.map(newestChange)) < statSync(page).mtimeMs;
}

/** Removes the folders of builds that were stopped. */
function removeStopped(dist) {
  for (const name of existsSync(dist) ? readdirSync(dist) : []) {
    const [, pid] = /^web\.(\d+)(?:\.before)?$/.exec(name) ?? [];
    if (pid !== undefined && !isRunning(Number(pid))) rmSync(join(dist, name), { recursive: true, force: true });
  }
}

function isRunning(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** Replaces a folder by a finished one; processes that have its files open are not affected. Of several processes that do so at once the last one prevails. */
export function replaceFolder(finished, folder) {
  mkdirSync(dirname(folder), { recursive: true });
  const before = `${finished}.before`;
  for (let isPlaced = false; !isPlaced;) {
    rmSync(before, { recursive: true, force: true });
    rename(folder, before, ['ENOENT']);
    // Another process may have put its own there since.
    isPlaced = rename(finished, folder, ['ENOTEMPTY', 'EEXIST']);
  }
  rmSync(before, { recursive: true, force: true });
}

/** Renames a folder; returns false if it could not be for one of these error codes. */
function rename(from, to, codes) {
  try {
    renameSync(from, to);
    return true;
  } catch (error) {
    if (!codes.includes(error.code)) throw error;
    return false;
  }
}

/** Time of the latest change to a file, or to anything in a folder, in milliseconds since 1970. */
function newestChange(path) {
  const { mtimeMs } = statSync(path);
  if (!statSync(path).isDirectory()) return mtimeMs;
  return Math.max(mtimeMs, ...readdirSync(path, { recursive: true }).map((name) => statSync(join(path, name)).mtimeMs));
}
