import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { NOT_OPTIMISED } from './support/not-optimised.ts';
import { SlowFirst } from './support/slow-first.ts';
import { THOROUGH } from './support/thorough.ts';

/** Files that share a process, which spares each of them the loading of the engine: none opens a device. `decode` measures its process's memory, so it has its own. */
const WITHOUT_DEVICES = [
  'architecture',
  'docs',
  'examples-library',
  'browser/{answers,failure,find-model,hub-token}',
  'fuzz/*',
  'models/{expert-settings,lfm2,olmo,phi3}',
  'parallel/rank-port',
  'results',
];
const PLAIN = [...WITHOUT_DEVICES, 'engine/*', 'server/!(decode)', 'sources/*', 'training/*'].map((files) => `test/${files}.test.ts`);

/** Other browsers, runtimes and adapters, of which some are fetched for them: `npm run test:everywhere`. */
const EVERYWHERE = 'test/everywhere/*.test.ts';

/** For test/support/codec.ts, which only these files use. */
const CLOSE_CODEC = fileURLToPath(new URL('support/close-codec.ts', import.meta.url));

/** Which cases of kernels and tiny models need not run again. */
const PASSED_CASES = fileURLToPath(new URL('support/passed-cases.ts', import.meta.url));

const KERNELS = 'test/kernels/*.test.ts';
const BROWSERS = 'test/browser/*.test.ts';

/** For the 2-core machines of CI. */
const WORKERS = 2;

/**
 * Threads of Mesa's software driver, so that files side by side share the cores; 0 = it computes in the thread that asks. On two cores a whole model's tests take 10 to 35 %
 * less of the processor so: their dispatches are too small to be worth waking a thread. Kernel cases keep a thread a core, for workgroups that run at the same time.
 */
const share = Math.floor(availableParallelism() / WORKERS);
const THREADS = { LP_NUM_THREADS: String(share > 1 ? share : 0) };

/**
 * What Mesa does by itself, but an engine then starts no processes to compile in (engine/platform/node-compilers.ts): they shorten a start on idle cores, which there are none of
 * here, and cost one twentieth of its processor time. Those of test/everywhere start as users' engines do.
 */
const env = { ...THREADS, MESA_SHADER_CACHE_DISABLE: 'false' };

/** Files that compile much and compute little. Kernels are compiled as users' are in the other models' tests, and once a week in their cases. */
const COMPILING = {
  plain: ['test/engine/{bad-weights,page-textures,random-model,self-test,self-test-coverage,tuning}.test.ts'],
  devices: [
    'test/e2e/gguf.test.ts',
    'test/models/{bad-checkpoints,batch-invariance-random,bytes-read,families,gemma4,gguf,gpt,gguf-{biased-routers,deepseek,dense,experts,falcon-h1,families,gpt,granite,layer-norm,nemotron-h,routers,small-types},granite-hybrid,gpt-oss,lora,qwen3-5*,qwen3-moe,windows}.test.ts',
    'test/parallel/{kernels,split}.test.ts',
  ],
};
/**
 * Modules are Node's own, as they are for users: Vite's are objects whose members are looked up at every use, with which an engine takes a third more of the processor. What
 * browsers are given to evaluate has to be without the helpers of the loader of TypeScript.
 */
const OWN_MODULES = {
  experimental: { viteModuleRunner: false, nodeLoader: false },
  execArgv: ['--import', import.meta.resolve('tsx')],
};
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
      {
        extends: true,
        test: { name: 'plain', include: PLAIN, exclude: COMPILING.plain, isolate: false, env, setupFiles: [CLOSE_CODEC], ...OWN_MODULES },
      },
      // One process a file: Dawn devices and worker threads do not mix. (Kernel cases start no threads.)
      {
        extends: true,
        test: {
          name: 'devices',
          include: ['test/**/*.test.ts'],
          exclude: [...PLAIN, ...COMPILING.devices, KERNELS, BROWSERS, EVERYWHERE],
          env,
          ...OWN_MODULES,
        },
      },
      { extends: true, test: { name: 'devices-browser', include: [BROWSERS], exclude: PLAIN, env } },
      {
        extends: true,
        test: {
          name: 'kernels',
          include: [KERNELS],
          isolate: false,
          env: THOROUGH ? {} : NOT_OPTIMISED,
          setupFiles: [PASSED_CASES],
          ...OWN_MODULES,
        },
      },
      // In Node they compile the bundled models for the other tests, which find them in Mesa's cache, and anew for every browser and runtime (SHORT_VECTORS).
      { extends: true, test: { name: 'everywhere', include: [EVERYWHERE], env: THREADS } },
      ...Object.entries(COMPILING).map(([name, include]) => ({
        extends: true as const,
        test: { name: `${name}-compiling`, include, env: unoptimised, setupFiles: [PASSED_CASES], ...OWN_MODULES },
      })),
    ],
  },
});
