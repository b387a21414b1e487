/** Naming adapters, and `parley adapters` with the drivers this machine has. */
import { execFile } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  listByDriver,
  matchingAdapters,
  noSuchAdapter,
  parseAdapterChoice,
  parseAdapterList,
} from '../../engine/platform/adapter-choice.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { describeAdapters, shortName } from '../../server/setup/adapters.ts';
import type { AdapterRow } from '../../server/setup/adapters.ts';
import { LAVAPIPE, SWIFTSHADER } from '../support/drivers.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const DAWN = `Error: no suitable backends found
Available adapters:
 * backend: 'vulkan', name: 'NVIDIA A100'
 * backend: 'vulkan', name: 'NVIDIA A10'
 * backend: 'vulkan', name: 'NVIDIA A10'
 * backend: 'opengl', name: 'it's odd'
`;

describe('names', () => {
  const listed = parseAdapterList(DAWN);

  test("Dawn's list is read, quotes and all; other messages list nothing", () => {
    expect(listed.map(({ name }) => name)).toEqual(['NVIDIA A100', 'NVIDIA A10', 'NVIDIA A10', "it's odd"]);
    expect(listed[3]).toMatchObject({ backend: 'opengl', environment: {} });
    expect(parseAdapterList('Error: no suitable backends found')).toEqual([]);
  });

  test('a choice is a part of a name, with or without an index', () => {
    expect(parseAdapterChoice('A10')).toEqual({ part: 'A10', index: undefined });
    expect(parseAdapterChoice('A10#1')).toEqual({ part: 'A10', index: 1 });
    expect(parseAdapterChoice('#2')).toEqual({ part: '', index: 2 });
    expect(parseAdapterChoice('Card #x')).toEqual({ part: 'Card #x', index: undefined });
    expect(matchingAdapters(listed, 'nvidia a10').length).toBe(3);
  });

  test('a wrong one is answered with what there is', () => {
    expect(noSuchAdapter('Radeon', listed)).toMatchObject({
      code: 'no_adapter',
      message: expect.stringContaining("no WebGPU adapter matches 'Radeon'; there are 'NVIDIA A100', 'NVIDIA A10'"),
    });
    expect(noSuchAdapter('Radeon', []).message).toContain('there are none');
  });

  test('twins are told apart by driver file, and within one by number', async () => {
    const all = await listByDriver(['/a.json', '/b.json'], async ({ VK_DRIVER_FILES: file }) =>
      file === '/a.json' ? parseAdapterList(DAWN) : [{ name: 'NVIDIA A10', backend: 'vulkan', environment: {} }],
    );
    expect(matchingAdapters(all, 'NVIDIA A10').map(({ environment }) => environment)).toEqual([
      { VK_DRIVER_FILES: '/a.json' },
      { VK_DRIVER_FILES: '/a.json' },
      { VK_DRIVER_FILES: '/a.json', DRI_PRIME: '1' },
      { VK_DRIVER_FILES: '/b.json' },
    ]);
  });

  test('the name to give is the shortest that means one adapter', () => {
    const names = [
      'NVIDIA A100',
      'llvmpipe (LLVM 15.0.6, 256 bits)',
      'llvmpipe (LLVM 15.0.6, 256 bits)',
      'AMD Radeon 780M',
      'AMD Radeon RX',
    ];
    expect(names.map((_, index) => shortName(names, index))).toEqual([
      'NVIDIA',
      'llvmpipe#0',
      'llvmpipe#1',
      'AMD Radeon 780M',
      'AMD Radeon RX',
    ]);
    const parts = ['NVIDIA A100', 'NVIDIA A10'];
    expect(shortName(parts, 1)).toBe('NVIDIA A10#1');
    expect(
      matchingAdapters(
        parts.map((name) => ({ name })),
        'NVIDIA A10',
      )[1],
    ).toEqual({ name: 'NVIDIA A10' });
  });
});

describe.skipIf(!LAVAPIPE || !SWIFTSHADER)('choosing (skipped without lavapipe and SwiftShader)', () => {
  const folder = mkdtempSync(join(tmpdir(), 'parley-twins-'));
  const before = process.env['VK_DRIVER_FILES'];
  const twin = join(folder, 'twin.json');
  const platform = createNodePlatform({ log: () => {} });
  beforeAll(() => {
    copyFileSync(LAVAPIPE!, twin);
    process.env['VK_DRIVER_FILES'] = [LAVAPIPE, SWIFTSHADER, twin].join(':');
  });
  afterAll(() => {
    rmSync(folder, { recursive: true });
    if (before === undefined) delete process.env['VK_DRIVER_FILES'];
    else process.env['VK_DRIVER_FILES'] = before;
  });

  test.each([
    ['LLVMpipe', 'llvmpipe'],
    ['llvmpipe#0', 'llvmpipe'],
    ['llvmpipe#1', 'llvmpipe'],
    ['swiftshader', 'SwiftShader'],
    ['#1', 'SwiftShader'],
  ])('%s is %s, and the environment is as before', async (name, expected) => {
    const { info } = await platform.requestAdapter({ name });
    expect(info.description).toContain(expected);
    expect(process.env['VK_DRIVER_FILES']).toBe([LAVAPIPE, SWIFTSHADER, twin].join(':'));
    expect(process.env['DRI_PRIME']).toBeUndefined();
  });

  test('the environment reaches the driver: a twin whose file is broken is not there', async () => {
    writeFileSync(twin, '{}');
    await expect(platform.requestAdapter({ name: 'llvmpipe#1' })).rejects.toMatchObject({ code: 'no_adapter' });
    expect((await platform.requestAdapter({ name: 'llvmpipe#0' })).info.description).toContain('llvmpipe');
  });

  test('there is no third one', async () => {
    await expect(platform.requestAdapter({ name: 'llvmpipe#2' })).rejects.toMatchObject({
      code: 'no_adapter',
      message: expect.stringContaining("'SwiftShader Device"),
    });
  });
});

describe('parley adapters', () => {
  const folder = mkdtempSync(join(tmpdir(), 'parley-drivers-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  async function adapters(drivers: string, ...argv: string[]): Promise<{ code: number; stdout: string }> {
    const run = promisify(execFile)(process.execPath, ['server/parley.mjs', 'adapters', ...argv], {
      cwd: ROOT,
      env: { ...process.env, VK_DRIVER_FILES: drivers },
    });
    return run.then(
      ({ stdout }) => ({ code: 0, stdout }),
      (error: { code: number; stdout: string }) => error,
    );
  }

  test('none: it says what to install and exits 1', async () => {
    const { code, stdout } = await adapters(join(folder, 'none.json'));
    expect(code).toBe(1);
    expect(stdout).toContain('mesa-vulkan-drivers');
    expect(JSON.parse((await adapters(join(folder, 'none.json'), '--json')).stdout)).toMatchObject({ rows: [] });
  });

  test.skipIf(!LAVAPIPE || !SWIFTSHADER)(
    'two drivers, one of them twice: features, limits, speed and the names to use (skipped: needs lavapipe and SwiftShader)',
    { timeout: 120_000 },
    async () => {
      const twin = join(folder, 'twin.json');
      copyFileSync(LAVAPIPE!, twin);
      const { code, stdout } = await adapters([LAVAPIPE, SWIFTSHADER, twin].join(':'), '--json');
      expect(code).toBe(0);
      const { rows, broken } = JSON.parse(stdout) as { rows: AdapterRow[]; broken: unknown[] };
      expect(broken).toEqual([]);
      expect(rows.map(({ choose, driver }) => [choose, driver])).toEqual([
        ['llvmpipe#0', LAVAPIPE],
        ['SwiftShader', SWIFTSHADER],
        ['llvmpipe#1', twin],
      ]);
      expect(rows.filter(({ standard }) => standard).length).toBe(1);
      for (const { report } of rows) {
        expect(report!.info).toMatchObject({ software: true, family: 'cpu' });
        expect(report!.info.features).toContain('subgroups');
        expect(report!.info.limits['maxStorageBufferBindingSize']).toBeGreaterThanOrEqual(2 ** 27);
        expect(report!.speed.gigabytesPerSecond).toBeGreaterThan(0.01);
        expect(report!.speed.gigaflops).toBeGreaterThan(0.1);
        expect(report!.speed.roundTripMs).toBeGreaterThan(0);
      }
      const text = describeAdapters({ rows, broken: [] });
      expect(text).toContain('--adapters "llvmpipe#0,SwiftShader,llvmpipe#1" --pp-size 3 --pp-split auto');
      expect(text).toMatch(/reads weights at [\d.]+ GB\/s/);
    },
  );

  test('an adapter that cannot be used and a driver that crashes are said, not hidden', () => {
    const row: AdapterRow = { name: 'Old GPU', backend: 'vulkan', driver: '/x.json', choose: 'Old', standard: true, problem: 'no f32' };
    const text = describeAdapters({ rows: [row], broken: [{ driver: '/y.json', problem: 'the probe ended with SIGSEGV' }] });
    expect(text).toContain('cannot be used: no f32');
    expect(text).toContain('/y.json: the probe ended with SIGSEGV');
    expect(text).toContain('None of them can be used.');
  });
});
