import { defineConfig } from 'vitest/config';
import { SlowFirst } from './support/slow-first.ts';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // One process a file: Dawn devices and worker threads do not mix. Two at a time on the 2-core machines of CI.
    pool: 'forks',
    maxWorkers: 2,
    sequence: { sequencer: SlowFirst },
    // Against hangs, not a measure of speed: software adapters on a busy machine take their time.
    testTimeout: 300_000,
    hookTimeout: 400_000,
    expect: { poll: { timeout: 60_000 } },
  },
});
