/**
 * What `npm start` and `npm test` do before anything else can run: npm packages, and on Linux without a usable WebGPU adapter
 * Mesa's software Vulkan driver. Plain Node, because nothing is installed yet. Everything is found out anew each time (well
 * under a second); nothing is installed twice. PARLEY_NO_INSTALL=1 forbids installing anything.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('..', import.meta.url));
const MINIMUM_NODE = [20, 19];
/** Debian 12's own Mesa (22.3) lacks features that WebGPU requires; its backports have a newer one. */
const TOO_OLD = { debian: 12 };

const say = (line) => process.stderr.write(`setup: ${line}\n`);
const forbidden = () => process.env.PARLEY_NO_INSTALL === '1';

/** A failure that the user can mend; printed without a stack. */
export class SetupError extends Error {}

/** Prints a SetupError's message and exits 1; anything else is a bug and keeps its stack. */
export async function withSetup(main) {
  try {
    await main();
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  }
}

export function requireNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > MINIMUM_NODE[0] || (major === MINIMUM_NODE[0] && minor >= MINIMUM_NODE[1])) return;
  throw new SetupError(`Parley needs Node ${MINIMUM_NODE.join('.')} or newer; this is ${process.versions.node}.`);
}

/** Runs `npm ci` unless node_modules already holds what the lock file asks for. `dev` adds what only tests need. */
export function installPackages({ dev }) {
  const lacking = missingPackages(dev);
  if (lacking.length === 0) return;
  const command = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error', ...(dev ? [] : ['--omit=dev'])];
  if (forbidden())
    throw new SetupError(`npm packages are missing (${lacking[0]}) and PARLEY_NO_INSTALL=1 is set. Run: npm ${command.join(' ')}`);
  say(`installing ${lacking.length} npm packages`);
  const npm = process.env.npm_execpath;
  const done = npm?.endsWith('.js')
    ? spawnSync(process.execPath, [npm, ...command], { cwd: ROOT, stdio: 'inherit' })
    : spawnSync('npm', command, { cwd: ROOT, stdio: 'inherit', shell: process.platform === 'win32' });
  if (done.status !== 0) throw new SetupError('npm could not install the packages (its message is above).');
}

/** Compares the lock file with npm's own record of node_modules. Packages for other platforms are optional and not looked at. */
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

/** Makes sure that WebGPU finds an adapter with a device; installs Mesa's software Vulkan driver on Linux if not. */
export function ensureAdapter() {
  const verdict = probeAdapter();
  if (verdict.name) return verdict;
  const problem = `No usable WebGPU adapter (${verdict.problem}).`;
  if (process.platform !== 'linux') throw new SetupError(`${problem} Install a graphics driver with Vulkan, Metal or Direct3D 12.`);
  say(`${problem} Mesa's software Vulkan driver will do`);
  aptInstall(['mesa-vulkan-drivers', 'libvulkan1'], mesaSuite());
  const again = probeAdapter();
  if (again.name) return again;
  throw new SetupError(`Mesa's driver is installed, but there is still no usable adapter (${again.problem}). Mesa 24 or newer is needed.`);
}

/** Asks for adapter and device in a child process, because a bad driver may crash it. */
function probeAdapter() {
  const child = spawnSync(process.execPath, [fileURLToPath(new URL('probe-adapter.mjs', import.meta.url))], {
    cwd: ROOT,
    encoding: 'utf8',
    timeout: 60_000,
  });
  const line = child.stdout?.trim().split('\n').at(-1) ?? '';
  if (child.status === 0 && line.startsWith('{')) return JSON.parse(line);
  return {
    problem: child.error?.message ?? child.stderr?.trim().split('\n').at(-1) ?? `the probe ended with ${child.signal ?? child.status}`,
  };
}

/** Builds the playground into dist/web unless that is newer than all it is made of. Without it the listeners still serve. */
export function buildPlayground() {
  const sources = ['web', 'engine', 'shaders', 'models', 'package-lock.json'].map((path) => join(ROOT, path));
  const page = join(ROOT, 'dist', 'web', 'index.html');
  if (!existsSync(join(ROOT, 'web', 'index.html'))) return;
  if (existsSync(page) && Math.max(...sources.map(newestChange)) < statSync(page).mtimeMs) return;
  say('building the playground');
  const vite = join(ROOT, 'node_modules', 'vite', 'bin', 'vite.js');
  const { status } = spawnSync(process.execPath, [vite, 'build', '--config', 'web/vite.config.ts', '--logLevel', 'error'], {
    cwd: ROOT,
    stdio: 'inherit',
  });
  if (status !== 0) say('the playground was not built (see above); the listeners do not need it');
}

/** Milliseconds since 1970 of the latest change to a file or to anything in a folder. */
function newestChange(path) {
  const { mtimeMs } = statSync(path);
  if (!statSync(path).isDirectory()) return mtimeMs;
  return Math.max(mtimeMs, ...readdirSync(path, { recursive: true }).map((name) => statSync(join(path, name)).mtimeMs));
}

/** Chromium for the browser tests: found, or installed where apt has it; otherwise those tests say that they skip. */
export function ensureChromium() {
  const names = ['chromium', 'chromium-browser', 'google-chrome'];
  const found = () => names.some((name) => spawnSync('sh', ['-c', `command -v ${name}`]).status === 0);
  if (process.platform !== 'linux' || found() || osRelease().ID !== 'debian') return;
  if (!mayInstall()) {
    say('no Chromium found: the browser tests will skip. To have them: apt-get install chromium');
    return;
  }
  aptInstall(['chromium']);
}

function osRelease() {
  const file = '/etc/os-release';
  if (!existsSync(file)) return {};
  const lines = readFileSync(file, 'utf8').matchAll(/^(\w+)="?([^"\n]*)"?$/gm);
  return Object.fromEntries([...lines].map(([, key, value]) => [key, value]));
}

/** The suite to take Mesa from where the distribution's own is too old. */
function mesaSuite() {
  const { ID, VERSION_ID, VERSION_CODENAME } = osRelease();
  return Number(VERSION_ID) <= TOO_OLD[ID] ? `${VERSION_CODENAME}-backports` : undefined;
}

function aptInstall(packages, suite) {
  const install = ['install', '-y', '--no-install-recommends', ...(suite ? ['-t', suite] : []), ...packages];
  if (spawnSync('apt-get', ['--version']).error)
    throw new SetupError(`There is no apt-get here; install these yourself: ${packages.join(' ')}`);
  if (!mayInstall()) {
    const why = forbidden() ? 'PARLEY_NO_INSTALL=1 is set' : 'this user is not root';
    const enable = suite ? `enable ${suite} in /etc/apt/sources.list.d, ` : '';
    throw new SetupError(`Nothing was installed, because ${why}. As root, ${enable}run: apt-get update && apt-get ${install.join(' ')}`);
  }
  say(`installing ${packages.join(' and ')} with apt`);
  apt('update');
  if (suite && enableSuite(suite)) apt('update');
  apt(...install);
}

const mayInstall = () => !forbidden() && process.getuid?.() === 0;

/** apt writes pages of progress; they are shown only if it fails. */
function apt(...step) {
  const { status, stdout, stderr } = spawnSync('apt-get', ['-q', '-o', 'DPkg::Lock::Timeout=300', ...step], {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  });
  if (status !== 0) throw new SetupError(`apt-get ${step.join(' ')} failed:\n${stdout}${stderr}`);
}

/** Adds a suite of the mirror in use to apt's sources; false if it is there. Apt lists its targets only after an update. */
function enableSuite(suite) {
  const { stdout } = spawnSync('apt-get', ['indextargets', '--format', '$(REPO_URI) $(RELEASE)'], { encoding: 'utf8' });
  const targets = stdout.split('\n').map((line) => line.split(' '));
  if (targets.some(([, release]) => release === suite)) return false;
  const mirror = targets.find(([, release]) => release === osRelease().VERSION_CODENAME)?.[0] ?? 'http://deb.debian.org/debian';
  const file = `/etc/apt/sources.list.d/parley-${suite}.sources`;
  say(`enabling ${suite} in ${file}`);
  const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg';
  writeFileSync(file, `Types: deb\nURIs: ${mirror}\nSuites: ${suite}\nComponents: main\nSigned-By: ${keyring}\n`);
  return true;
}
