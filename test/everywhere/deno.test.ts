/** Under Deno, whose WebGPU is wgpu: every kernel, the example, its permissions, models of a hub, threads. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import type { CaseOutcome } from '../support/browser/run-suites.ts';
import { denoVersion, runDeno } from '../support/deno/run-deno.ts';
import { serveHub } from '../support/hub-server.ts';
import { THOROUGH } from '../support/thorough.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** What an engine needs: the models and the shaders, and how much memory there is. */
const ENGINE = ['--allow-read=.', '--allow-sys=systemMemoryInfo'];
/** One case of every kernel. All of them, with the kernels that GPUs get too, take longer than a test may: most of it goes into compiling. */
const [CASES, LIMIT] = THOROUGH ? ['all', { timeout: 3_600_000 }] : ['some', {}];

describe.skipIf(denoVersion() === undefined)('Deno', () => {
  test(`${CASES} kernel cases agree with their CPU reference`, LIMIT, async () => {
    const importMap = '--import-map=test/support/deno/import-map.json';
    const { stdout } = await runDeno([...ENGINE, '--allow-env', importMap], 'test/support/deno/kernels.ts', [CASES]);
    const outcomes = stdout.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line) as CaseOutcome] : []));
    expect(outcomes.filter(({ problem }) => problem !== '')).toEqual([]);
    // Each file has one family of kernels or several.
    expect(outcomes.length).toBeGreaterThan(3 * readdirSync(join(ROOT, 'test', 'kernels')).length);
  });

  test('the example answers, speaks and writes down what it hears', async () => {
    const { stdout } = await runDeno(ENGINE, 'examples/deno.ts');
    expect(stdout).toMatch(/^said: The capital of France is Paris\.$/m);
    expect(stdout).toMatch(/^heard: The capital of France?s? (is )?Paris\.$/m);
  });

  test('a permission that is missing is named', async () => {
    const withoutMemory = runDeno(['--allow-read=.'], 'examples/deno.ts');
    await expect(withoutMemory).rejects.toThrow(/it lacks the permission allow-sys=systemMemoryInfo/);
    const withoutModels = runDeno(
      ['--allow-read=engine,shaders,node_modules,package.json', '--allow-sys=systemMemoryInfo'],
      'examples/deno.ts',
    );
    await expect(withoutModels).rejects.toThrow(/Deno may not read models\/parley-\w+.*: it lacks the permission allow-read for it/);
  });

  test('a model of the hub is fetched once into the cache that others share, and answers, over two threads too, in free text and in JSON', async () => {
    const hub = await serveHub('somebody/parley-chat', join(ROOT, 'models', 'parley-chat'));
    const cache = mkdtempSync(join(tmpdir(), 'parley-deno-'));
    const permissions = [
      `--allow-read=.,${cache}`,
      `--allow-write=${cache}`,
      '--allow-net',
      '--allow-env',
      '--allow-sys=systemMemoryInfo,hostname,homedir',
    ];
    const ask = async (ranks: number): Promise<{ readonly fetched: number; readonly answer: string; readonly json: string }> => {
      const env = { HF_ENDPOINT: hub.url, HF_HUB_CACHE: cache };
      const { stdout } = await runDeno(permissions, 'test/support/deno/hub.ts', ['somebody/parley-chat', String(ranks)], env);
      return JSON.parse(stdout) as Awaited<ReturnType<typeof ask>>;
    };
    try {
      const [first, second] = [await ask(1), await ask(2)];
      expect(first.fetched).toBeGreaterThan(2 ** 20);
      expect(second.fetched).toBe(0);
      for (const { answer, json } of [first, second]) {
        expect(answer).toBe('The capital of France is Paris.');
        expect(JSON.parse(json)).toEqual({ capital: 'Paris' });
      }
    } finally {
      await hub.close();
      rmSync(cache, { recursive: true });
    }
  });
});
