import { defineConfig } from 'vitest/config';
import { SlowFirst } from './support/slow-first.ts';

/** Files that share a process, which spares each of them the loading of the engine. `decode` measures its process's memory, so it has its own. */
const PLAIN = ['engine/*', 'server/!(decode)', 'sources/*', 'training/*'].map((files) => `test/${files}.test.ts`);

/** Other browsers and runtimes, which are fetched for them: `npm run test:everywhere`. */
const EVERYWHERE = 'test/everywhere/*.test.ts';

export default defineConfig({
  test: {
    pool: 'forks',
    // For the 2-core machines of CI.
    maxWorkers: 2,
    sequence: { sequencer: SlowFirst },
    // Against hangs, not a measure of speed: software adapters on a busy machine take their time.
    testTimeout: 300_000,
    hookTimeout: 400_000,
    expect: { poll: { timeout: 60_000 } },
    projects: [
      { extends: true, test: { name: 'plain', include: PLAIN, isolate: false } },
      // One process a file: Dawn devices and worker threads do not mix.
      { extends: true, test: { name: 'devices', include: ['test/**/*.test.ts'], exclude: [...PLAIN, EVERYWHERE] } },
      { extends: true, test: { name: 'everywhere', include: [EVERYWHERE] } },
    ],
  },
});
