/** Starts Chromium with its software WebGPU adapter, so that browser tests run on machines without a GPU. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import type { Browser, BrowserContext } from 'playwright-core';
import { chromiumEnvironment, findChromium } from '../setup-browsers.mjs';

export { findChromium };

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const QUIET = [
  '--no-sandbox',
  '--disable-background-networking',
  '--disable-quic',
  '--no-first-run',
  '--disable-component-update',
  '--disable-sync',
];
/** Without its watchdog, Chromium's GPU process is not ended where a software adapter waits for the processors. */
const WEBGPU = ['--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader', '--disable-gpu-watchdog'];

/** A headless browser; `webgpu: false` is one whose pages find no adapter. */
export async function launchChromium({ webgpu = true, args = [] as readonly string[] } = {}): Promise<Browser> {
  const executablePath = findChromium()!;
  const env = chromiumEnvironment(executablePath);
  return chromium.launch({ executablePath, env, args: [...QUIET, ...(webgpu ? WEBGPU : []), ...args] });
}

/** A headless browser whose person lets pages keep nothing; `profile` is an empty folder for it. */
export async function launchKeepingNothing(profile: string): Promise<BrowserContext> {
  const executablePath = findChromium()!;
  const blocked = { profile: { default_content_setting_values: { cookies: 2 } } };
  mkdirSync(join(profile, 'Default'));
  writeFileSync(join(profile, 'Default', 'Preferences'), JSON.stringify(blocked));
  const env = chromiumEnvironment(executablePath);
  return chromium.launchPersistentContext(profile, { executablePath, env, args: [...QUIET, ...WEBGPU] });
}

/**
 * A folder with the playground as it is now: what `npm test` has just built, or a folder that is built here, under a name of the test's own because tests
 * build side by side and somebody may be serving dist/web.
 */
export function buildPlayground(name: string): string {
  const built = process.env['PARLEY_BUILT_PLAYGROUND'];
  if (built !== undefined) return built;
  const folder = join(ROOT, '.parley', `web-${name}`);
  const vite = join(ROOT, 'node_modules', 'vite', 'bin', 'vite.js');
  const args = [
    vite,
    'build',
    '--config',
    join('web', 'vite.config.ts'),
    '--configLoader',
    'runner',
    '--outDir',
    folder,
    '--logLevel',
    'error',
  ];
  const { status, stderr } = spawnSync(process.execPath, args, {
    cwd: ROOT,
    encoding: 'utf8',
    env: { ...process.env, NODE_ENV: 'production' },
  });
  if (status !== 0) throw new Error(`the playground does not build:\n${stderr}`);
  return folder;
}
