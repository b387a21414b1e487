/** Runs collected kernel cases one after the other, outside vitest. */
import { Skipped } from './vitest.ts';
import type { Suite } from './vitest.ts';

export interface CaseOutcome {
  readonly suite: string;
  readonly name: string;
  /** Empty = passed. */
  readonly problem: string;
}

/** What an error says. */
const words = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Tells of every case of the suite, and calls `skipped` for those that have nothing to test on this adapter. */
export async function runSuite(
  { name, before, after, tests }: Suite,
  tell: (outcome: CaseOutcome) => void,
  skipped: () => void,
): Promise<void> {
  let broken = '';
  for (const work of before) {
    try {
      await work();
    } catch (error) {
      broken = `set-up failed: ${words(error)}`;
    }
  }
  for (const test of tests) {
    let problem = broken;
    try {
      if (problem === '') await test.run();
    } catch (error) {
      if (error instanceof Skipped) {
        skipped();
        continue;
      }
      problem = words(error);
    }
    tell({ suite: name, name: test.name, problem });
  }
  for (const work of after) {
    try {
      await work();
    } catch {
      // A set-up that failed has nothing to take down; its tests have said so.
    }
  }
}
