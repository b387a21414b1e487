/** Compiling on all cores: who compiles what, what is kept of it, and that Mesa's driver then has nothing left to compile. */
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Device } from '../../engine/gpu/device.ts';
import { ParallelCompiler } from '../../engine/gpu/parallel-compiler.ts';
import type { CompileJob } from '../../engine/gpu/compiler-process.ts';
import type { Recorder } from '../../engine/gpu/recorder.ts';
import { linear } from '../../engine/ops/linear.ts';
import { packLinear } from '../../engine/ops/pack-linear.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import type { DiskCompiler, Platform } from '../../engine/platform/platform.ts';
import type { CallMessage } from '../../engine/util/rpc.ts';

const DRIVER = 'driver 1';

interface FakeProcess {
  readonly labels: string[];
  ended: boolean;
}

/** A driver whose processes answer with `answer`: compiled, an error, or nothing as long as they live. */
function fake({ answer = () => 'compiled', text }: { answer?: (label: string) => 'compiled' | 'error' | 'dies' | 'never'; text?: string } = {}) {
  const processes: FakeProcess[] = [];
  const kept = { text };
  const driver: DiskCompiler = {
    processes: 3,
    kept: {
      read: async () => kept.text,
      write: async (_, written) => void (kept.text = written),
    },
    start: () => {
      const own: FakeProcess = { labels: [], ended: false };
      processes.push(own);
      let say: (message: unknown) => void = () => undefined;
      let exit: (why: string) => void = () => undefined;
      return {
        post: (message) => {
          const { id, request } = message as Extract<CallMessage, { type: 'call' }>;
          const { label } = request as CompileJob;
          own.labels.push(label);
          const given = answer(label);
          if (given === 'dies') queueMicrotask(() => exit('killed'));
          else if (given === 'compiled') queueMicrotask(() => say({ type: 'news', news: [{ type: 'end', id }] }));
          else if (given === 'error') queueMicrotask(() => say({ type: 'news', news: [{ type: 'error', id, error: { code: 'internal', message: 'no' } }] }));
        },
        onMessage: (callback) => void (say = callback),
        onExit: (callback) => void (exit = callback),
        terminate: async () => {
          own.ended = true;
          exit('ended');
        },
      };
    },
  };
  return { driver, processes, kept, labels: () => processes.flatMap(({ labels }) => labels).sort() };
} // prettier-ignore

const job = (label: string): CompileJob => ({ label, code: `// ${label}`, constants: {}, entries: [] });
const many = Array.from({ length: 12 }, (_, i) => `kernel ${String(i).padStart(2, '0')}`);
const compileAll = (compiler: ParallelCompiler, labels: readonly string[]): Promise<unknown> => Promise.all(labels.map((label) => compiler.compile(job(label)))); // prettier-ignore

describe('with processes that say what a test wants', () => {
  test('each kernel is compiled once, by as many processes as there are, and never again', async () => {
    const { driver, processes, labels, kept } = fake();
    const first = new ParallelCompiler(driver, DRIVER, {});
    await compileAll(first, many);
    expect(labels()).toEqual(many);
    expect(processes.map((one) => one.labels.length)).toEqual([4, 4, 4]);
    await first.close();
    expect(processes.map(({ ended }) => ended)).toEqual([true, true, true]);

    const second = new ParallelCompiler(driver, DRIVER, {});
    await compileAll(second, many);
    await second.close();
    expect(processes).toHaveLength(3);

    const others = new ParallelCompiler(driver, 'driver 2', {});
    await compileAll(others, many);
    await others.close();
    expect(processes).toHaveLength(6);
    expect(Object.keys(JSON.parse(kept.text!) as object)).toEqual([DRIVER, 'driver 2']);
  });

  test('a few are left to the device, and known to be there from then on', async () => {
    const { driver, processes, kept } = fake();
    const compiler = new ParallelCompiler(driver, DRIVER, {});
    await compileAll(compiler, many.slice(0, 3));
    await compiler.close();
    expect(processes).toHaveLength(0);
    expect((JSON.parse(kept.text!) as Record<string, string[]>)[DRIVER]).toHaveLength(3);
  });

  test.each(['error', 'dies'] as const)('what a process does not compile (%s) holds nothing up and is asked for again', async (how) => {
    const { driver, labels } = fake({ answer: (label) => (label === many[5] ? how : 'compiled') });
    const first = new ParallelCompiler(driver, DRIVER, {});
    await compileAll(first, many);
    await first.close();
    const second = new ParallelCompiler(driver, DRIVER, {});
    await compileAll(second, [...many, ...many.map((label) => `new ${label}`)]);
    await second.close();
    expect(labels().filter((label) => label === many[5])).toHaveLength(2);
    expect(labels().filter((label) => label === many[6])).toHaveLength(1);
  });

  test('processes that cannot work are tried once each', async () => {
    const { driver, processes, labels } = fake({ answer: () => 'dies' });
    const compiler = new ParallelCompiler(driver, DRIVER, {});
    await compileAll(compiler, many);
    await compileAll(compiler, many.map((label) => `new ${label}`)); // prettier-ignore
    await compiler.close();
    expect(processes).toHaveLength(3);
    expect(labels()).toHaveLength(3);
  });

  test('closing lets those go that wait, and ends what never answers', async () => {
    const { driver, processes } = fake({ answer: () => 'never' });
    const compiler = new ParallelCompiler(driver, DRIVER, {});
    const all = compileAll(compiler, many);
    await vi.waitUntil(() => processes.length === 3);
    await compiler.close();
    await all;
    expect(processes.map(({ ended }) => ended)).toEqual([true, true, true]);
  });

  test.each(['', 'no JSON', '[]', '{"driver 1": "x"}', 'null'])('what is kept is %j: as if nothing were', async (text) => {
    const { driver, labels, kept } = fake({ text });
    const compiler = new ParallelCompiler(driver, DRIVER, {});
    await compileAll(compiler, many);
    await compiler.close();
    expect(labels()).toEqual(many);
    expect((JSON.parse(kept.text!) as Record<string, string[]>)[DRIVER]).toHaveLength(12);
  });
});

const platform = createNodePlatform({ log: () => undefined });
const name = process.env['PARLEY_ADAPTER'];
const { info } = await platform.requestAdapter(name ? { name } : {});
const isMesa = /llvmpipe/i.test(info.description);
const folders: string[] = [];
beforeEach(() => void vi.stubEnv('MESA_SHADER_CACHE_DISABLE', undefined));
afterEach(() => void vi.unstubAllEnvs());
afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true })));

describe.skipIf(!isMesa)(
  `the processes themselves (${isMesa ? 'on' : 'skipped: it takes llvmpipe, and this is'} ${info.description})`,
  () => {
    /** A device whose driver keeps what it compiles in a folder of its own. */
    async function mesa(folder: string, started: URL[]): Promise<Device> {
      vi.stubEnv('MESA_SHADER_CACHE_DIR', folder);
      const watched: Platform = {
        ...platform,
        diskCompiler: (adapter) => {
          const driver = platform.diskCompiler!(adapter)!;
          const start = (url: URL): ReturnType<DiskCompiler['start']> => {
            started.push(url);
            return driver.start(url);
          };
          return { ...driver, processes: 2, start };
        },
      };
      // Mesa looks where it keeps things when an adapter is asked for.
      return Device.create(watched, name ? { name } : {});
    }

    /** Products of so many kinds that processes are worth it. */
    function products(device: Device): ((rec: Recorder) => void)[] {
      const [N, K] = [64, 64];
      const weight = packLinear(device, 'weight', new Float32Array(N * K), N, K);
      return [1, 2, 8, 16].flatMap((rows) =>
        (['none', 'gelu', 'silu'] as const).map((activation) => {
          const [x, out] = [device.tensor('x', 'f32', [rows, K]), device.tensor('out', 'f32', [rows, N])];
          return (rec: Recorder) => linear(rec, { x, weight, out, activation });
        }),
      );
    }

    /** What the driver keeps: each has 28 bytes in its index. */
    const entries = (folder: string): number => {
    const cache = join(folder, 'mesa_shader_cache_db');
    const parts = existsSync(cache) ? readdirSync(cache).filter((part) => part.startsWith('part')) : [];
    return parts.reduce((sum, part) => sum + readdirSync(join(cache, part)).filter((file) => file.endsWith('.idx')).reduce((bytes, file) => bytes + statSync(join(cache, part, file)).size, 0), 0) / 28;
  }; // prettier-ignore

    test('what they compiled, the device only reads; the next start starts none', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'parley-mesa-'));
      folders.push(folder);
      const started: URL[] = [];
      const device = await mesa(folder, started);
      const before = entries(folder);
      device.beginParallelCompiling();
      const work = products(device);
      const labels = new Set(work.flatMap((record) => [...device.compile(record)]));
      expect(labels.size).toBeGreaterThanOrEqual(8);
      await device.pipelines.settled();
      // The driver writes when it likes: the kernels, and before them the one by which Dawn checks counts of workgroups. Nothing was dispatched here.
      await vi.waitUntil(() => entries(folder) - before > labels.size, { timeout: 60_000 });
      await device.endParallelCompiling();
      expect(started).toHaveLength(2);
      const compiled = entries(folder);
      for (const record of work) await device.warmUp(record);
      const kept = JSON.parse(readFileSync(join(folder, 'mesa_shader_cache_db', 'parley.json'), 'utf8')) as Record<string, string[]>;
      expect(kept[device.info.name]).toHaveLength(labels.size);
      device.close();

      const again = await mesa(folder, started);
      again.beginParallelCompiling();
      for (const record of products(again)) again.compile(record);
      await again.pipelines.settled();
      await again.endParallelCompiling();
      again.close();
      expect(started).toHaveLength(2);
      expect(entries(folder)).toBe(compiled);
    });

    test("what is known is kept beside the driver's cache, also in a home that is not the account's", async (context) => {
      const home = mkdtempSync(join(tmpdir(), 'parley-home-'));
      folders.push(home);
      for (const variable of ['MESA_SHADER_CACHE_DIR', 'XDG_CACHE_HOME']) vi.stubEnv(variable, undefined);
      vi.stubEnv('HOME', home);
      const adapter = await platform.requestAdapter(name ? { name } : {});
      // Mesa makes its folder with the first device.
      (await adapter.requestDevice()).destroy();
      const cache = join(home, '.cache', 'mesa_shader_cache_db');
      // Mesa before 25 looks there, whatever HOME says.
      if (!existsSync(cache)) return context.skip(`${info.description} keeps its cache in the account's home`);
      await platform.diskCompiler!(adapter)!.kept.write('a-test.json', '{}');
      expect(readFileSync(join(cache, 'a-test.json'), 'utf8')).toBe('{}');
    });

    test.each([
      ['MESA_SHADER_CACHE_DISABLE', 'true'],
      ['MESA_SHADER_CACHE_DIR', '/proc/1/none'],
    ])('none where the driver keeps nothing: %s=%s', async (variable, setting) => {
      vi.stubEnv(variable, setting);
      const adapter = await platform.requestAdapter(name ? { name } : {});
      expect(platform.diskCompiler!(adapter)).toBeUndefined();
    });
  },
);
