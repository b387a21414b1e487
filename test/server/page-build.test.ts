/** How the page is put in its place, with a stand-in for the bundler. */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'parley-page-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('the page is built beside its place', () => {
  const checkout = join(folder, 'built');
  const dist = join(checkout, 'dist');
  for (const path of ['node_modules/vite/bin', 'node_modules/.bin']) mkdirSync(join(checkout, path), { recursive: true });
  mkdirSync(join(checkout, 'web'));
  writeFileSync(join(checkout, 'web', 'index.html'), '');
  writeFileSync(join(checkout, 'package-lock.json'), '{"packages":{}}');
  for (const path of ['package.json', 'server/setup', 'server/closed-pipe.mjs'])
    cpSync(join(ROOT, path), join(checkout, path), { recursive: true });
  // Empties its folder and writes the page's two files. Between them it is stopped with whoever asked for it, or another builds the page too.
  const vite = `#!/usr/bin/env node
    const { mkdirSync, rmSync, writeFileSync } = require('node:fs');
    const { spawnSync } = require('node:child_process');
    const at = process.argv.indexOf('--outDir');
    const out = at < 0 ? 'dist/web' : process.argv[at + 1];
    rmSync(out, { recursive: true, force: true });
    mkdirSync(out, { recursive: true });
    writeFileSync(out + '/index.html', '');
    const { MIDWAY, ...env } = process.env;
    if (MIDWAY === 'stopped') {
      process.kill(process.ppid, 'SIGKILL');
      process.exit(1);
    }
    if (MIDWAY !== undefined) spawnSync(process.execPath, ['--eval', MIDWAY], { env, stdio: 'inherit' });
    writeFileSync(out + '/the-rest', '');`;
  writeFileSync(join(checkout, 'node_modules', 'vite', 'bin', 'vite.js'), vite, { mode: 0o755 });
  symlinkSync('../vite/bin/vite.js', join(checkout, 'node_modules', '.bin', 'vite'));
  const command = `import(${JSON.stringify(pathToFileURL(join(checkout, 'server', 'setup', 'setup.mjs')).href)}).then((setup) => setup.buildPlayground())`;
  const build = (environment: Readonly<Record<string, string>> = {}) =>
    spawnSync(process.execPath, ['--eval', command], { cwd: checkout, encoding: 'utf8', env: { ...process.env, ...environment } });
  beforeEach(() => rmSync(dist, { recursive: true, force: true }));

  test('one that is stopped leaves nothing that the next start would take for the page', () => {
    expect(build({ MIDWAY: 'stopped' }).signal).toBe('SIGKILL');
    expect(existsSync(join(dist, 'web'))).toBe(false);
    expect(build().stderr).toBe('setup: building the playground\n');
    expect(readdirSync(dist)).toEqual(['web']);
    expect(readdirSync(join(dist, 'web')).sort()).toEqual(['index.html', 'the-rest']);
    expect(build().stderr).toBe('');
  });

  test('two at once: the page of whoever is done first stays', () => {
    const { status, stderr } = build({ MIDWAY: command });
    expect([status, stderr]).toEqual([0, 'setup: building the playground\n'.repeat(2)]);
    expect(readdirSync(dist)).toEqual(['web']);
    expect(readdirSync(join(dist, 'web')).sort()).toEqual(['index.html', 'the-rest']);
  });

  // Windows starts no scripts by their first line.
  test.skipIf(process.platform === 'win32')(
    '`npm run build` leaves the one before in place until it is done, and then replaces it, new as it is',
    () => {
      build();
      writeFileSync(join(dist, 'web', 'before'), '');
      const MIDWAY = `require('node:fs').cpSync('dist/web', 'midway', { recursive: true })`;
      const { status } = spawnSync('npm', ['run', 'build'], { cwd: checkout, env: { ...process.env, MIDWAY }, encoding: 'utf8' });
      expect(status).toBe(0);
      expect(readdirSync(join(checkout, 'midway')).sort()).toEqual(['before', 'index.html', 'the-rest']);
      expect(readdirSync(dist)).toEqual(['web']);
      expect(readdirSync(join(dist, 'web')).sort()).toEqual(['index.html', 'the-rest']);
    },
  );

  test('where a file system is mounted in its place, its files are exchanged', () => {
    mkdirSync(join(dist, 'web', 'assets'), { recursive: true });
    for (const name of ['before', 'assets/before']) writeFileSync(join(dist, 'web', name), '');
    // As the system does where a folder is a mount point.
    const mounted = join(checkout, 'mounted.cjs');
    writeFileSync(
      mounted,
      `const fs = require('node:fs');
      const { renameSync } = fs;
      fs.renameSync = (from, to) => {
        if (from === ${JSON.stringify(join(dist, 'web'))}) throw Object.assign(new Error('busy'), { code: 'EBUSY' });
        renameSync(from, to);
      };
      require('node:module').syncBuiltinESMExports();`,
    );
    const { status, stderr } = build({ NODE_OPTIONS: `--require ${mounted}` });
    expect([status, stderr]).toEqual([0, 'setup: building the playground\n']);
    expect(readdirSync(dist)).toEqual(['web']);
    expect(readdirSync(join(dist, 'web')).sort()).toEqual(['index.html', 'the-rest']);
  });
});
