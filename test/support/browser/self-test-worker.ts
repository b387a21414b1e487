/**
 * Runs the project's kernel cases (test/kernels) against their CPU references on this browser's adapter. Started by the playground's device page; results
 * are posted one by one.
 */
import { takeSuites } from './vitest.ts';
import type { Suite } from './vitest.ts';

/** One case, or with `type: 'end'` the end of the run. */
export type SelfTestMessage =
  | { readonly type: 'begin'; readonly total: number }
  | { readonly type: 'result'; readonly suite: string; readonly name: string; readonly problem: string }
  | { readonly type: 'end' };

const tell = (message: SelfTestMessage): void => self.postMessage(message);
const words = (error: unknown): string => (error instanceof Error ? error.message : String(error));

async function runSuite({ name, before, after, tests }: Suite): Promise<void> {
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
      problem = words(error);
    }
    tell({ type: 'result', suite: name, name: test.name, problem });
  }
  for (const work of after) {
    try {
      await work();
    } catch {
      // A set-up that failed has nothing to take down; its tests have said so.
    }
  }
}

async function main(): Promise<void> {
  const files = import.meta.glob('../../kernels/*.test.ts');
  for (const load of Object.values(files)) await load();
  const suites = takeSuites();
  tell({ type: 'begin', total: suites.reduce((sum, suite) => sum + suite.tests.length, 0) });
  for (const suite of suites) await runSuite(suite);
  tell({ type: 'end' });
}

void main().catch((error: unknown) => {
  tell({ type: 'result', suite: 'self-test', name: 'starts', problem: words(error) });
  tell({ type: 'end' });
});
