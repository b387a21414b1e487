/** The order of the test files: those that take long first, so that no long one is left to run alone at the end. */
import { BaseSequencer } from 'vitest/node';
import type { TestSpecification } from 'vitest/node';

/** Files of a quarter of a minute and more on two cores, the longest first. A machine that has run them before knows their times itself. */
const SLOW = [
  'everywhere/firefox',
  'everywhere/chromium-kernels',
  'everywhere/package',
  'everywhere/equal-answers',
  'everywhere/deno',
  'models/families',
  'engine/self-test',
  'browser/playground',
  'browser/own-models',
  'e2e/fuzz',
  'parallel/split',
  'server/commands',
  'engine/self-test-coverage',
  'browser/tab-audio',
  'models/batch-invariance',
  'models/batch-invariance-random',
  'kernels/fused-linear',
  'kernels/project-heads',
  'e2e/server',
  'server/process',
  'parallel/kernels',
  'engine/chat-engine',
  'engine/page-textures',
  'e2e/chat-memory',
  'kernels/paged-attention',
  'models/kv-quality',
  'models/transcriber',
  'browser/accessibility',
  'browser/work',
  'parallel/rank-loss',
  'models/qwen3-5-mtp',
  'models/synthesizer',
  'parallel/rank-death',
  'browser/long-recordings',
  'server/upload-budget',
  'engine/grammar-threads',
  'browser/split',
  'browser/server-mode',
  'parallel/adapters',
  'sources/command',
];

export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => {
      const at = SLOW.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
      return at < 0 ? SLOW.length : at;
    };
    return (await super.sort(files)).toSorted((a, b) => place(a) - place(b));
  }
}
