import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { SlowFirst } from './support/slow-first.ts';
import { THOROUGH } from './support/thorough.ts';

/** Files that share a process, which spares each of them the loading of the engine: none opens a device. `decode` measures its process's memory, so it has its own. */
const WITHOUT_DEVICES = [
  'architecture',
  'docs',
  'examples-library',
  'browser/{answers,failure,find-model,hub-token}',
  'fuzz/*',
  'models/{lfm2,olmo,phi3}',
  'parallel/rank-port',
];
const PLAIN = [...WITHOUT_DEVICES, 'engine/*', 'server/!(decode)', 'sources/*', 'training/*'].map((files) => `test/${files}.test.ts`);

/** Other browsers, runtimes and adapters, of which some are fetched for them: `npm run test:everywhere`. */
const EVERYWHERE = 'test/everywhere/*.test.ts';

const KERNELS = 'test/kernels/*.test.ts';

/** For the 2-core machines of CI. */
const WORKERS = 2;

/**
 * Threads of Mesa's software driver, so that files side by side share the cores; 0 = it computes in the thread that asks. On two cores a whole model's tests take 10 to 35 %
 * less of the processor so: their dispatches are too small to be worth waking a thread. Kernel cases keep a thread a core, for workgroups that run at the same time.
 */
const share = Math.floor(availableParallelism() / WORKERS);
const env = { LP_NUM_THREADS: String(share > 1 ? share : 0) };

/**
 * Files that compile much and compute little. Mesa's driver leaves out its optimising passes for them and for kernel cases, which changes no bit of a result and is a third to two fifths
 * of what their first run takes. Kernels are compiled as users' are in the other models' tests, and once a week in their cases.
 */
const COMPILING = {
  plain: ['test/engine/{bad-weights,page-textures,random-model,self-test,self-test-coverage}.test.ts'],
  devices: [
    'test/models/{bad-checkpoints,families,gguf,gguf-families,gpt-oss,qwen3-5*,windows}.test.ts',
    'test/parallel/{kernels,split}.test.ts',
  ],
};
const NOT_OPTIMISED = { GALLIVM_PERF: 'nopt' };
const unoptimised = { ...env, ...NOT_OPTIMISED };

export default defineConfig({
  test: {
    pool: 'forks',
    maxWorkers: WORKERS,
    sequence: { sequencer: SlowFirst },
    // Against hangs, not a measure of speed: software adapters on a busy machine take their time.
    testTimeout: 300_000,
    hookTimeout: 400_000,
    expect: { poll: { timeout: 60_000 } },
    projects: [
      { extends: true, test: { name: 'plain', include: PLAIN, exclude: COMPILING.plain, isolate: false, env } },
      // One process a file: Dawn devices and worker threads do not mix. (Kernel cases start no threads.)
      {
        extends: true,
        test: { name: 'devices', include: ['test/**/*.test.ts'], exclude: [...PLAIN, ...COMPILING.devices, KERNELS, EVERYWHERE], env },
      },
      { extends: true, test: { name: 'kernels', include: [KERNELS], isolate: false, env: THOROUGH ? {} : NOT_OPTIMISED } },
      // They compile the bundled models anew for every browser and runtime, and say little with them.
      { extends: true, test: { name: 'everywhere', include: [EVERYWHERE], env: unoptimised } },
      ...Object.entries(COMPILING).map(([name, include]) => ({
        extends: true as const,
        test: { name: `${name}-compiling`, include, env: unoptimised },
      })),
    ],
  },
});
