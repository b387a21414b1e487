/** What `npm start` does on a machine without an adapter: which way is taken, what is refused, and what is told. Nothing is fetched here. */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { brotliCompressSync } from 'node:zlib';
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { CACHE } from '../../server/setup/layout.mjs';
import { aptConfiguration, libraryFolders, osRelease, suiteSource } from '../../server/setup/apt.mjs';
import { send, until } from '../support/listeners.ts';
import { spawnAt, whenReady } from '../support/server-process.ts';
import { chromiumEnvironment } from '../setup-browsers.mjs';
import { planDrivers, refusal, unpackSwiftShader, usedLine } from '../../server/setup/drivers.mjs';
import { isForbidden } from '../../server/setup/setup.mjs';
import { sourceSettings } from '../../sources/node/index.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'parley-setup-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('the order of the ways to a driver', () => {
  const DEBIAN = { ID: 'debian', VERSION_ID: '12', VERSION_CODENAME: 'bookworm' };
  const machine = { platform: 'linux', arch: 'x64', release: DEBIAN, apt: true, unpacked: [] as string[] };
  const ways = (changes: Partial<typeof machine> | { readonly release: Record<string, string> }): string[] =>
    planDrivers({ ...machine, ...changes }).map(({ driver, fetch, suite }) =>
      [fetch ? 'fetch' : 'use', driver, suite ?? ''].join(' ').trim(),
    );
  const swiftshader = 'fetch swiftshader';

  test.each([
    ['Debian 12: its own Mesa is too old', {}, ['fetch mesa bookworm-backports', swiftshader]],
    [
      'Debian 13: its own Mesa where there are no backports',
      { release: { ID: 'debian', VERSION_ID: '13', VERSION_CODENAME: 'trixie' } },
      ['fetch mesa trixie-backports', 'fetch mesa', swiftshader],
    ],
    ['Debian testing, which has no number', { release: { ID: 'debian', VERSION_CODENAME: 'forky' } }, ['fetch mesa', swiftshader]],
    ['Ubuntu', { release: { ID: 'ubuntu', ID_LIKE: 'debian', VERSION_ID: '24.04' } }, ['fetch mesa', swiftshader]],
    ['a child of Ubuntu', { release: { ID: 'linuxmint', ID_LIKE: 'ubuntu debian', VERSION_ID: '22' } }, ['fetch mesa', swiftshader]],
    ['Fedora with apt: its packages are not meant', { release: { ID: 'fedora', VERSION_ID: '42' } }, [swiftshader]],
    ['Linux that does not say which', { release: {} }, [swiftshader]],
    ['Debian without apt', { apt: false }, [swiftshader]],
    ['ARM: SwiftShader is for x64 only', { arch: 'arm64' }, ['fetch mesa bookworm-backports']],
    ['ARM without apt', { arch: 'arm64', apt: false }, []],
    [
      'what was unpacked comes first',
      { unpacked: ['swiftshader', 'mesa'] },
      ['use mesa', 'use swiftshader', 'fetch mesa bookworm-backports', swiftshader],
    ],
    [
      'an unpacked SwiftShader spares the fetch of Mesa',
      { unpacked: ['swiftshader'] },
      ['use swiftshader', 'fetch mesa bookworm-backports', swiftshader],
    ],
    ['macOS', { platform: 'darwin', apt: false }, []],
    ['Windows', { platform: 'win32', apt: false }, []],
  ] as const)('%s', (_, changes, expected) => {
    expect(ways(changes as Partial<typeof machine>)).toEqual(expected);
  });

  test('os-release is read with and without quotes; a machine without one is Linux of no name', () => {
    const file = join(folder, 'os-release');
    writeFileSync(file, 'NAME="Debian GNU/Linux"\nVERSION_ID="12"\nID=debian\n# ID=other\n');
    expect(osRelease(file)).toEqual({ NAME: 'Debian GNU/Linux', VERSION_ID: '12', ID: 'debian' });
    expect(osRelease(join(folder, 'none'))).toEqual({});
  });
});

// Other systems do not say how many there may be.
test.skipIf(process.platform !== 'linux')('too few files that may be open are one line, before anything is read', () => {
  const script = 'ulimit -n 64; exec "$@"';
  for (const argv of [['server/setup/start.mjs'], ['server/parley.mjs', 'models']]) {
    const { status, stderr } = spawnSync('sh', ['-c', script, 'sh', process.execPath, ...argv], { cwd: ROOT, encoding: 'utf8' });
    expect([status, stderr]).toEqual([2, 'only 64 files may be open at once, and Parley needs 256: ulimit -n 256\n']);
  }
});

describe('what is told', () => {
  const failures = [
    { what: "the system's", problem: 'Dawn offers no adapter' },
    { what: "Mesa's software Vulkan driver", problem: 'apt-get: E: Unable to locate package' },
  ];

  test('a driver of our own: why, which, what is faster and how to remove it, in one line', () => {
    const line = usedLine('swiftshader', 'SwiftShader driver', failures);
    expect(line).not.toContain('\n');
    for (const part of [
      'Dawn offers no adapter',
      'Unable to locate package',
      'SwiftShader',
      'Faster: ',
      'mesa-vulkan-drivers',
      'rm -r .parley',
    ])
      expect(line).toContain(part);
    expect(usedLine('mesa', 'llvmpipe', failures.slice(0, 1))).toMatch(/Mesa.* computes on the CPU \(llvmpipe\)\. Faster: a GPU/);
  });

  test('no adapter at all: every way that failed, and what to do', () => {
    const linux = { platform: 'linux', arch: 'x64' };
    expect(refusal(failures, linux, false)).toBe(
      "No usable WebGPU adapter (the system's: Dawn offers no adapter; Mesa's software Vulkan driver: apt-get: E: Unable to locate package). " +
        'Install a graphics driver with Vulkan, Metal or Direct3D 12; Mesa 24 or newer has one for the CPU.',
    );
    expect(refusal(failures, linux, true)).toContain(
      'PARLEY_NO_INSTALL=1 is set, so none was fetched: without it, one is unpacked into .parley/drivers',
    );
    expect(refusal(failures, { ...linux, arch: 'riscv64' }, false)).toContain('none to fetch for riscv64 but Mesa');
    expect(refusal(failures, { ...linux, platform: 'darwin' }, false)).toMatch(/Direct3D 12\.$/);
  });

  // Other systems have an adapter that no variable hides.
  test.skipIf(process.platform !== 'linux')(
    'PARLEY_NO_INSTALL=1 on a machine without an adapter: one line and 1, nothing is fetched',
    () => {
      // A checkout of its own, so that what this one may have unpacked is not seen.
      const checkout = join(folder, 'checkout');
      mkdirSync(checkout);
      for (const name of readdirSync(ROOT))
        if (!name.startsWith('.') && name !== 'server') symlinkSync(join(ROOT, name), join(checkout, name));
      spawnSync('cp', ['-r', join(ROOT, 'server'), checkout]);
      const { status, stderr } = spawnSync(process.execPath, ['server/setup/start.mjs'], {
        cwd: checkout,
        encoding: 'utf8',
        env: { ...process.env, VK_DRIVER_FILES: '/nowhere.json', PARLEY_NO_INSTALL: '1' },
      });
      expect(stderr).toMatch(/^No usable WebGPU adapter \(the system's: [^\n]*\)\. PARLEY_NO_INSTALL=1 is set[^\n]*\n$/);
      expect(status).toBe(1);
      expect(existsSync(join(checkout, '.parley'))).toBe(false);
    },
  );
});

test.each([undefined, '', '0', 'false', '1', 'true', 'Yes'])(
  'PARLEY_NO_INSTALL=%s forbids installing where it forbids fetching',
  (value) => {
    vi.stubEnv('PARLEY_NO_INSTALL', value);
    vi.stubEnv('HF_HUB_OFFLINE', undefined);
    try {
      const forbids = value !== undefined && ['1', 'true', 'Yes'].includes(value);
      expect(isForbidden()).toBe(forbids);
      expect(sourceSettings(process.env).offline !== undefined).toBe(forbids);
    } finally {
      vi.unstubAllEnvs();
    }
  },
);

test('files are looked for where the command was given', () => {
  writeFileSync(join(folder, 'here.json'), '{"port": 4000}');
  const ask = (file: string) =>
    spawnSync(process.execPath, [join(ROOT, 'server', 'setup', 'start.mjs'), '--help', '--config', file], {
      cwd: folder,
      encoding: 'utf8',
    });
  expect(ask('here.json')).toMatchObject({ status: 0, stderr: '' });
  expect(ask('elsewhere.json')).toMatchObject({ status: 2, stderr: expect.stringContaining('elsewhere.json') });
});

/** Commands of the server and of the image, in a folder that is deleted before they begin. */
test
  .skipIf(process.platform === 'win32')
  .each([[['server/setup/start.mjs']], [['server/parley.mjs', 'models']], [['deploy/parley.mjs']], [['deploy/parley.mjs', 'doctor']]])(
  'a current folder that has been deleted is one line and 2: %j',
  ([file, ...rest]) => {
    const gone = mkdtempSync(join(folder, 'gone-'));
    const script = 'rmdir "$PWD" && exec "$@"';
    const { status, stdout, stderr } = spawnSync('sh', ['-c', script, 'sh', process.execPath, join(ROOT, file!), ...rest], { cwd: gone, encoding: 'utf8' }); // prettier-ignore
    expect([status, stdout, stderr]).toEqual([2, '', 'the current folder is not there any more (ENOENT); change to another one\n']);
  },
);

// Its two processes have to be told apart.
test.skipIf(process.platform !== 'linux')('a start that is killed takes its server along', async () => {
  const checkout = join(folder, 'killed');
  mkdirSync(checkout);
  // Without the page, which would be built.
  for (const name of readdirSync(ROOT))
    if (!name.startsWith('.') && !['server', 'web', 'dist'].includes(name)) symlinkSync(join(ROOT, name), join(checkout, name));
  spawnSync('cp', ['-r', join(ROOT, 'server'), checkout]);
  writeFileSync(
    join(checkout, 'server', 'main.ts'),
    `import ${JSON.stringify(pathToFileURL(join(ROOT, 'test/support/serve-fake.ts')).href)};`,
  );
  const start = await whenReady(spawnAt(pathToFileURL(join(checkout, 'server', 'setup', 'start.mjs')), []));
  const { pid } = start.child;
  const server = Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8'));
  onTestFinished(() => {
    for (const one of [pid!, server]) if (existsSync(`/proc/${one}`)) process.kill(one, 'SIGKILL');
  });
  expect((await send(`${start.urls['chat']}/health`)).status).toBe(200);
  start.child.kill('SIGKILL');
  await until(() => !existsSync(`/proc/${server}`));
});

test('processes that put the same folder in its place at once do not trip over each other', async () => {
  const place = join(folder, 'placed');
  const script = `const { mkdirSync, writeFileSync } = await import('node:fs');
    const { replaceFolder } = await import(${JSON.stringify(pathToFileURL(join(ROOT, 'server', 'setup', 'setup.mjs')).href)});
    for (let i = 0; i < 200; i++) {
      const mine = ${JSON.stringify(place)} + '.' + process.pid;
      mkdirSync(mine);
      for (const name of ['a', 'b', 'c']) writeFileSync(mine + '/' + name, '');
      replaceFolder(mine, ${JSON.stringify(place)});
    }`;
  const run = async (): Promise<unknown> => {
    const child = spawn(process.execPath, ['--input-type=module', '--eval', script], { stdio: ['ignore', 'ignore', 'inherit'] });
    return (await once(child, 'exit'))[0];
  };
  expect(await Promise.all([run(), run(), run()])).toEqual([0, 0, 0]);
  expect(readdirSync(place).sort()).toEqual(['a', 'b', 'c']);
  expect(readdirSync(folder).filter((name) => name.startsWith('placed.'))).toEqual([]);
});

test('a WebGPU that does not load is told from a missing driver, which could be fetched', () => {
  const checkout = join(folder, 'broken');
  const webgpu = join(checkout, 'node_modules', 'webgpu');
  mkdirSync(webgpu, { recursive: true });
  writeFileSync(join(webgpu, 'package.json'), '{"main":"index.js"}');
  writeFileSync(join(webgpu, 'index.js'), 'throw new Error("libc.musl is not glibc\\nand more")');
  const probe = join(checkout, 'probe-adapter.mjs');
  copyFileSync(join(ROOT, 'server', 'setup', 'probe-adapter.mjs'), probe);
  const { status, stderr } = spawnSync(process.execPath, [probe], { encoding: 'utf8' });
  expect([status, stderr]).toEqual([2, 'the npm package webgpu does not run on this system: libc.musl is not glibc\n']);
});

test('Chromium is not shown the unpacked graphics driver, and keeps what the user set', () => {
  const drivers = join(CACHE, 'drivers', 'mesa');
  vi.stubEnv('VK_DRIVER_FILES', join(drivers, 'lvp_icd.json'));
  vi.stubEnv('LD_LIBRARY_PATH', `${drivers}/usr/lib:/opt/own/lib`);
  const environment = chromiumEnvironment('/usr/bin/chromium');
  vi.unstubAllEnvs();
  expect(environment['LD_LIBRARY_PATH']).toBe('/opt/own/lib');
  expect(environment['VK_DRIVER_FILES']).toBeUndefined();
  expect(environment['PATH']).toBe(process.env['PATH']);
});

test('the package is built by a command that needs nothing installed: it installs what is missing, or says which command does', () => {
  const checkout = join(folder, 'bare-checkout');
  const needed = ['package.json', 'package-lock.json', 'server/setup', 'server/closed-pipe.mjs', 'library/build/package.mjs'];
  for (const path of needed) cpSync(join(ROOT, path), join(checkout, path), { recursive: true });
  const env = { ...process.env, PARLEY_NO_INSTALL: '1' };
  const { status, stderr } = spawnSync('npm', ['run', 'package'], { cwd: checkout, env, encoding: 'utf8' });
  expect(stderr).toMatch(/^npm packages are missing \(.+\) and PARLEY_NO_INSTALL=1 is set\. Run: npm ci (?!.*--omit=dev)/m);
  expect(status).toBe(1);
});

describe('the archive of SwiftShader', () => {
  const files = ['libvk_swiftshader.so', 'libvulkan.so.1', 'vk_swiftshader_icd.json'];
  const archive = join(folder, 'package.tgz');
  const contents = join(folder, 'contents');
  mkdirSync(join(folder, 'package', 'bin'), { recursive: true });
  mkdirSync(contents);
  for (const name of [...files, 'libEGL.so']) writeFileSync(join(contents, name), `this is ${name}`);
  const inner = spawnSync('tar', ['-cf', '-', '-C', contents, ...readdirSync(contents)]).stdout;
  writeFileSync(join(folder, 'package', 'bin', 'swiftshader.tar.br'), brotliCompressSync(inner));
  spawnSync('tar', ['-czf', archive, '-C', folder, 'package']);
  const hash = `sha512-${createHash('sha512').update(readFileSync(archive)).digest('base64')}`;

  test('gives the driver, the loader and the driver file, and nothing else', () => {
    const target = join(folder, 'good');
    unpackSwiftShader(archive, target, hash);
    expect(readdirSync(target).sort()).toEqual(files);
    expect(readFileSync(join(target, 'libvulkan.so.1'), 'utf8')).toBe('this is libvulkan.so.1');
  });

  test('with one byte changed is refused with both hashes, and nothing is unpacked', () => {
    const changed = readFileSync(archive);
    changed[changed.length - 1]! ^= 1;
    const file = join(folder, 'changed.tgz');
    writeFileSync(file, changed);
    const target = join(folder, 'bad');
    expect(() => unpackSwiftShader(file, target, hash)).toThrow(`instead of ${hash}`);
    expect(readdirSync(folder).filter((name) => name.startsWith('bad'))).toEqual([]);
  });
});

describe('apt with folders of its own', () => {
  const own = '/home/somebody/parley/.parley/apt';

  test('keeps how the machine downloads, and no hook, folder or user of it', () => {
    const dump = [
      'APT::Update::Post-Invoke:: "rm -f /var/cache/apt/archives/*.deb || true";',
      'DPkg::Post-Invoke:: "rm -f /var/cache/apt/*.bin || true";',
      'Dir::State::lists "/var/lib/apt/lists";',
      'Acquire::http::Proxy "http://proxy:3128";',
      'Acquire::IndexTargets::deb::DEP-11 "";',
      'Acquire::Languages "de";',
    ].join('\n');
    const lines = aptConfiguration(dump, own).trim().split('\n');
    expect(lines).toContain('Acquire::http::Proxy "http://proxy:3128";');
    expect(lines.join('\n')).not.toMatch(/Invoke|DEP-11|\/var\/|"de"/);
    const written = lines.filter((line) => /^Dir::(State|Cache|Log)/.test(line) && !line.endsWith('"";'));
    expect(written).toHaveLength(5);
    for (const line of written) expect(line).toContain(`"${own}/`);
    for (const line of lines) expect(line).toMatch(/^[\w:-]+ "[^"]*";$/);
  });

  test.each([
    [
      'a line',
      '/etc/apt/sources.list',
      2,
      '# mirror\ndeb [signed-by=/k.gpg arch=amd64] http://mirror/debian bookworm main contrib\n',
      'deb [signed-by=/k.gpg arch=amd64] http://mirror/debian bookworm-backports main\n',
    ],
    [
      'a line without options',
      '/x.list',
      1,
      'deb http://mirror/debian bookworm main',
      'deb http://mirror/debian bookworm-backports main\n',
    ],
    [
      'the second stanza, with its keyring',
      '/etc/apt/sources.list.d/debian.sources',
      2,
      'Types: deb\nURIs: http://security\nSuites: bookworm-security\nComponents: main\n\n# ours\nTypes: deb deb-src\nURIs: http://mirror/debian\nSuites: bookworm bookworm-updates\nComponents: main contrib\nSigned-By: /k.gpg\n',
      'Types: deb\nURIs: http://mirror/debian\nSuites: bookworm-backports\nComponents: main\nSigned-By: /k.gpg\n',
    ],
  ])("the backports are taken from the machine's mirror: %s", (_, file, index, text, expected) => {
    expect(suiteSource(text, file, index, 'bookworm-backports').replace(/\n+$/, '\n')).toBe(expected);
  });

  test('libraries are found where packages put them, private folders included, the usual ones first', () => {
    const root = join(folder, 'root');
    const put = (path: string): void => {
      mkdirSync(join(root, path, '..'), { recursive: true });
      writeFileSync(join(root, path), '');
    };
    put('lib/x86_64-linux-gnu/libexpat.so.1');
    put('usr/lib/x86_64-linux-gnu/pulseaudio/libpulsecommon.so');
    put('usr/lib/x86_64-linux-gnu/libvulkan_lvp.so');
    put('usr/lib/x86_64-linux-gnu/dri/swrast_dri.so');
    put('usr/share/doc/libfake.so');
    expect(libraryFolders(root).map((path) => path.slice(root.length + 1))).toEqual([
      'lib/x86_64-linux-gnu',
      'usr/lib/x86_64-linux-gnu',
      'usr/lib/x86_64-linux-gnu/pulseaudio',
    ]);
  });
});
