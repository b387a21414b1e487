/**
 * The tab and Node compute the same: chat, log-mel features, a transcript and speech, in real Chromium and in a Node process, both on the SwiftShader that
 * comes with Chromium.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'vite';
import { beforeAll, describe, expect, test } from 'vitest';
import { nmse } from '../support/compare.ts';
import { SWIFTSHADER } from '../support/drivers.ts';
import type { ParityResult } from '../support/parity.ts';
import { sharedShaders } from '../../web/shared-shaders.ts';
import { ROOT, findChromium, launchChromium } from './chromium.ts';
import { serveFolder } from './static-server.ts';

interface Measured {
  readonly adapter: string;
  readonly errors: readonly string[];
  readonly result: ParityResult;
}

const FOLDER = join(ROOT, '.parley', 'parity');
const MINUTES = 60_000;

async function measureInNode(): Promise<Measured> {
  const file = join(FOLDER, 'node.json');
  const child = spawn(process.execPath, ['--import', 'tsx', join(ROOT, 'test', 'support', 'parity-node.ts'), file], {
    cwd: ROOT,
    env: { ...process.env, VK_DRIVER_FILES: SWIFTSHADER, PARLEY_ADAPTER: 'SwiftShader' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.on('data', (data: Buffer) => (said += data.toString()));
  const status = await new Promise<number | null>((resolve) => child.once('close', resolve));
  if (status !== 0) throw new Error(`the Node side ended with ${status}:\n${said}`);
  return JSON.parse(readFileSync(file, 'utf8')) as Measured;
}

async function measureInTab(): Promise<Measured> {
  await build({
    configFile: false,
    root: join(ROOT, 'test', 'support', 'browser'),
    logLevel: 'error',
    plugins: [sharedShaders()],
    build: {
      outDir: FOLDER,
      emptyOutDir: false,
      target: 'es2023',
      modulePreload: false,
      rollupOptions: {
        input: join(ROOT, 'test', 'support', 'browser', 'parity-worker.ts'),
        output: { entryFileNames: 'parity-worker.js', codeSplitting: false },
      },
    },
  });
  const server = await serveFolder(FOLDER);
  const browser = await launchChromium();
  try {
    const page = await browser.newPage();
    await page.goto(server.url);
    return await page.evaluate(
      () =>
        new Promise<Measured>((resolve, reject) => {
          const worker = new Worker('parity-worker.js', { type: 'module' });
          worker.addEventListener('error', (event) => reject(new Error(event.message || 'the worker did not start')));
          worker.addEventListener('message', ({ data }) => (data.problem ? reject(new Error(data.problem)) : resolve(data)));
          worker.postMessage({ models: 'models', clip: 'clip.wav' });
        }),
    );
  } finally {
    await browser.close();
    await server.close();
  }
}

describe.skipIf(findChromium() === undefined || SWIFTSHADER === undefined)('the tab and Node on SwiftShader', () => {
  let tab: Measured;
  let node: Measured;

  beforeAll(async () => {
    rmSync(FOLDER, { recursive: true, force: true });
    mkdirSync(FOLDER, { recursive: true });
    symlinkSync(join(ROOT, 'models'), join(FOLDER, 'models'));
    symlinkSync(join(ROOT, 'test', 'fixtures', 'parley-transcribe', 'clip.wav'), join(FOLDER, 'clip.wav'));
    writeFileSync(join(FOLDER, 'index.html'), '<!doctype html><title>parity</title>');
    node = await measureInNode();
    tab = await measureInTab();
  }, 10 * MINUTES);

  test('both ran on SwiftShader, without a WebGPU error', () => {
    expect([node.adapter, tab.adapter].join(' ').toLowerCase()).toMatch(/swiftshader.* swiftshader/);
    expect([...node.errors, ...tab.errors]).toEqual([]);
  });

  test('both took the same kernels in the same variants', () => {
    expect(tab.result.kernels.length).toBeGreaterThan(30);
    expect(tab.result.kernels).toEqual(node.result.kernels);
  });

  test('five greedy answers have the same tokens', () => {
    const texts = ({ result }: Measured): string[][] => result.answers.map((answer) => answer.map(({ token }) => token));
    expect(texts(node)).toHaveLength(5);
    expect(Math.min(...texts(node).map((tokens) => tokens.length))).toBeGreaterThan(3);
    expect(texts(tab)).toEqual(texts(node));
  });

  test('the transcript has the same tokens and times', () => {
    expect(node.result.transcript.length).toBeGreaterThan(0);
    expect(tab.result.transcript).toEqual(node.result.transcript);
  });

  // The same kernels on the same driver leave no room for another rounding.
  test.each(['mel', 'audio'] as const)('%s agrees to 1e-8, and to the last bit where the kernels are the same', (name) => {
    const [actual, expected] = [tab.result[name], node.result[name]];
    expect(expected.length).toBeGreaterThan(1000);
    expect(expected.some((value) => Math.abs(value) > 0.01)).toBe(true);
    expect(actual).toHaveLength(expected.length);
    expect(nmse(actual, expected)).toBeLessThanOrEqual(1e-8);
    if (tab.result.kernels.join() === node.result.kernels.join()) {
      expect(actual.filter((value, i) => value !== expected[i])).toHaveLength(0);
    }
  });
});
