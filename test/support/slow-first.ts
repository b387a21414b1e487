/** The order of the test files: those that take long first, so that no long one is left to run alone at the end. */
import { BaseSequencer } from 'vitest/node';
import type { TestSpecification } from 'vitest/node';

/** Files of half a minute and more on two cores, the longest first. A machine that has run them before knows their times itself. */
const SLOW = [
  'browser/tab-audio',
  'browser/playground',
  'browser/split',
  'models/batch-invariance',
  'browser/own-models',
  'models/transcriber',
  'server/upload-budget',
  'models/kv-quality',
  'engine/chat-engine',
  'e2e/server',
  'models/synthesizer',
  'server/process',
  'browser/accessibility',
  'engine/grammar-threads',
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
