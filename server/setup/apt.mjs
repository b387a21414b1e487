/**
 * Unpacks packages of Debian and Ubuntu without installing them: apt, with its own state, lists and cache, downloads what the system lacks, and dpkg-deb unpacks
 * it into a folder. Needs no root, and changes nothing outside that folder, not even as root. Plain Node.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { CACHE } from './layout.mjs';
import { SetupError, replaceFolder } from './setup.mjs';

const DPKG_STATUS = '/var/lib/dpkg/status';

/** Fields of /etc/os-release, such as ID and VERSION_CODENAME; empty if there is none. */
export function osRelease(file = '/etc/os-release') {
  if (!existsSync(file)) return {};
  const lines = readFileSync(file, 'utf8').matchAll(/^(\w+)="?([^"\n]*)"?$/gm);
  return Object.fromEntries([...lines].map(([, key, value]) => [key, value]));
}

/** Whether apt can fetch packages that fit this system. */
export function hasApt() {
  return existsSync(DPKG_STATUS) && ['apt-get', 'dpkg-deb'].every((tool) => spawnSync(tool, ['--version']).status === 0);
}

/**
 * Unpacks packages, and the dependencies that the system lacks, into `folder`, which is replaced. `suite`, such as bookworm-backports, is preferred, and is
 * fetched from the machine's mirror. Throws a SetupError with apt's own words.
 */
export function unpackPackages(packages, folder, suite) {
  mkdirSync(CACHE, { recursive: true });
  const temporary = mkdtempSync(join(CACHE, 'apt-'));
  try {
    const apt = prepareApt(temporary);
    downloadPackages(packages, apt, suite);
    const names = readdirSync(apt.archives).filter((name) => name.endsWith('.deb'));
    if (names.length === 0) throw new SetupError(`apt-get: the newest ${packages.join(' and ')} is installed already`);
    const root = join(temporary, 'root');
    for (const name of names) {
      const unpacked = run('dpkg-deb', ['--extract', join(apt.archives, name), root], process.env);
      if (unpacked.status !== 0) throw new SetupError(`dpkg-deb ${name}: ${unpacked.words}`);
    }
    replaceFolder(root, folder);
  } finally {
    rmSync(temporary, { recursive: true });
  }
}

function downloadPackages(packages, apt, suite) {
  // A configured source that does not answer does not matter as long as another has the packages.
  const update = run('apt-get', ['-q', 'update'], apt.environment);
  if (suite && addSuite(apt, suite)) run('apt-get', ['-q', 'update'], apt.environment);
  const install = ['-q', 'install', '--download-only', '--yes', ...(suite ? ['--target-release', suite] : []), ...packages];
  const { status, words } = run('apt-get', install, apt.environment);
  if (status !== 0) throw new SetupError(`apt-get: ${words || update.words || `ended with ${status}`}`);
}

/** Lists the folders below an unpacked root that contain libraries, the system's usual ones first, for LD_LIBRARY_PATH. */
export function libraryFolders(root) {
  const folders = ['usr/lib', 'lib'].map((part) => join(root, part)).filter((folder) => existsSync(folder));
  const libraries = folders
    .flatMap((folder) => readdirSync(folder, { recursive: true, withFileTypes: true }))
    .filter((entry) => !entry.isDirectory() && /^lib.*\.so(\.|$)/.test(entry.name));
  // Some libraries need others in a folder of their own package, which they name by the path where it would be installed.
  return [...new Set(libraries.map((entry) => entry.parentPath))].sort((a, b) => a.length - b.length);
}

/** Runs a command; `words` are its error messages, or the last line that it wrote. */
function run(command, argv, env) {
  const child = spawnSync(command, argv, { env: { ...env, LC_ALL: 'C' }, encoding: 'utf8', maxBuffer: 1 << 26 });
  const lines = `${child.stdout ?? ''}\n${child.stderr ?? ''}`.split('\n').filter((line) => line.trim() !== '');
  const complaints = lines.filter((line) => line.startsWith('E: '));
  const words = complaints.length > 0 ? complaints.join(' ') : (lines.at(-1) ?? '');
  return { status: child.status, words: child.error?.message ?? words, stdout: child.stdout ?? '' };
}

/** Creates apt's folders and settings below `folder`. */
function prepareApt(folder) {
  const archives = join(folder, 'cache', 'archives');
  const sources = join(folder, 'sources');
  for (const path of [join(folder, 'state'), join(folder, 'lists', 'partial'), join(archives, 'partial')])
    mkdirSync(path, { recursive: true });
  // A copy, because apt locks the folder of this file, and only root may lock the system's.
  copyFileSync(DPKG_STATUS, join(folder, 'status'));
  mkdirSync(sources);
  const parts = machineFolder('Dir::Etc::sourceparts');
  const names = existsSync(parts) ? readdirSync(parts).filter((name) => /\.(list|sources)$/.test(name)) : [];
  for (const name of names) symlinkSync(join(parts, name), join(sources, name));
  const file = join(folder, 'apt.conf');
  writeFileSync(file, aptConfiguration(run('apt-config', ['dump'], process.env).stdout, folder));
  return { archives, sources, environment: { ...process.env, APT_CONFIG: file, DEBIAN_FRONTEND: 'noninteractive' } };
}

/** A folder of the machine's apt configuration. */
function machineFolder(key) {
  const { stdout } = run('apt-config', ['shell', 'FOLDER', `${key}/d`], process.env);
  return /^FOLDER='(.*)'$/m.exec(stdout)?.[1] ?? '/etc/apt/sources.list.d';
}

/**
 * Text of an apt.conf that keeps everything that apt writes below `folder`. From the machine's own configuration (`apt-config dump`) it takes only how to download
 * (proxies, certificates, retries): above all no hooks, some of which empty the system's cache.
 */
export function aptConfiguration(dump, folder) {
  const download = dump
    .split('\n')
    .filter((line) => line.startsWith('Acquire::') && !/^Acquire::(IndexTargets|Languages|GzipIndexes)\b/.test(line));
  const own = {
    'Dir::State': join(folder, 'state'),
    'Dir::State::lists': join(folder, 'lists'),
    'Dir::State::status': join(folder, 'status'),
    'Dir::Cache': join(folder, 'cache'),
    // apt's index of its lists is built each time; if kept, it would be larger than they are.
    'Dir::Cache::pkgcache': '',
    'Dir::Cache::srcpkgcache': '',
    'Dir::Log': join(folder, 'log'),
    'Dir::Etc::main': '/dev/null',
    'Dir::Etc::parts': '/dev/null',
    'Dir::Etc::preferences': '/dev/null',
    'Dir::Etc::preferencesparts': '/dev/null',
    'Dir::Etc::sourceparts': join(folder, 'sources'),
    // Root's downloads run as the user _apt, who may not be able to read the checkout.
    'APT::Sandbox::User': 'root',
    'APT::Install-Recommends': 'false',
    'Acquire::Languages': 'none',
    'Acquire::GzipIndexes': 'true',
  };
  return `${[...download, ...Object.entries(own).map(([key, value]) => `${key} "${value}";`)].join('\n')}\n`;
}

/** Adds a suite to apt's own sources, from the mirror of the machine's release; false if the machine has the suite already. */
function addSuite({ sources, environment }, suite) {
  const format = '$(ORIGIN)|$(CODENAME)|$(COMPONENT)|$(SOURCESENTRY)';
  const { stdout } = run('apt-get', ['indextargets', '--format', format, 'Identifier: Packages'], environment);
  const targets = stdout.split('\n').map((line) => line.split('|'));
  if (targets.some(([, codename]) => codename === suite)) return false;
  const [, , , entry = ''] = targets.find(([, codename, component]) => codename === suite.replace(/-.*/, '') && component === 'main') ?? [];
  const [, file = '', index] = /^(.*):(\d+)$/.exec(entry) ?? [];
  if (file === '') throw new SetupError(`apt-get: no source of ${suite.replace(/-.*/, '')} answers`);
  writeFileSync(join(sources, `parley-${basename(file)}`), suiteSource(readFileSync(file, 'utf8'), file, Number(index), suite));
  return true;
}

/** Rewrites an entry of a sources file (`index`: line of a .list, stanza of a .sources, from 1) for another suite: same mirror, same keyring, only main. */
export function suiteSource(text, file, index, suite) {
  if (file.endsWith('.list')) {
    const line = text.split('\n')[index - 1] ?? '';
    return `${line.replace(/^(\s*deb(?:-src)?\s+(?:\[[^\]]*\]\s+)?\S+)\s.*$/, `$1 ${suite} main`)}\n`;
  }
  const stanza = text.split(/\n(?:[ \t]*\n)+/).filter((part) => /^URIs:/im.test(part))[index - 1] ?? '';
  const lines = stanza.split('\n').filter((line) => !line.startsWith('#'));
  const fields = { types: 'deb', suites: suite, components: 'main' };
  return `${lines.map((line) => line.replace(/^(Types|Suites|Components):.*$/i, (_, name) => `${name}: ${fields[name.toLowerCase()]}`)).join('\n')}\n`;
}
