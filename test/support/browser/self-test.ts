/**
 * The worker's side of the device page's self-test: runs the project's kernel cases (test/kernels) against their CPU references on this
 * browser's adapter.
 */
import './kernel-suites.ts';
import { runSuite } from './run-suites.ts';
import type { CaseOutcome } from './run-suites.ts';
import { takeSuites } from './vitest.ts';

/** How many cases there are at most, a case, one that has nothing to test on this adapter, or the end of the run. */
export type SelfTestMessage =
  | { readonly type: 'begin'; readonly total: number }
  | ({ readonly type: 'result' } & CaseOutcome)
  | { readonly type: 'skipped' }
  | { readonly type: 'end' };

const tell = (message: SelfTestMessage): void => self.postMessage(message);

/** Runs all cases in this worker and posts their results one by one. */
export async function runSelfTest(): Promise<void> {
  const suites = takeSuites();
  tell({ type: 'begin', total: suites.reduce((sum, suite) => sum + suite.tests.length, 0) });
  for (const suite of suites) await runSuite(suite, (outcome) => tell({ type: 'result', ...outcome }), () => tell({ type: 'skipped' })); // prettier-ignore
  tell({ type: 'end' });
}
