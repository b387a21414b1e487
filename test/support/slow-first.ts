/** The order of the test files: those that take long first, so that no long one is left to run alone at the end. */
import { BaseSequencer } from 'vitest/node';
import type { TestSpecification } from 'vitest/node';

/** Files of a quarter of a minute and more on two cores, the longest first. A machine that has run them before knows their times itself. */
const SLOW = [
  'everywhere/chromium-kernels',
  'everywhere/package',
  'everywhere/firefox',
  'everywhere/two-adapters-server',
  'everywhere/parity',
  'browser/playground',
  'browser/own-models',
  'e2e/fuzz',
  'parallel/split',
  'models/families',
  'browser/tab-audio',
  'models/batch-invariance',
  'models/transcriber',
  'browser/accessibility',
  'browser/work',
  'server/process',
  'parallel/rank-loss',
  'models/kv-quality',
  'models/synthesizer',
  'e2e/server',
  'engine/chat-engine',
  'parallel/rank-death',
  'browser/long-recordings',
  'e2e/chat-memory',
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
