/**
 * Runs the project's kernel cases (test/kernels) against their CPU references on this browser's adapter. Started by the playground's device page; results
 * are posted one by one.
 */
import { runSuite, words } from './run-suites.ts';
import type { CaseOutcome } from './run-suites.ts';
import { takeSuites } from './vitest.ts';

/** How many cases there are at most, a case, one that has nothing to test on this adapter, or the end of the run. */
export type SelfTestMessage =
  | { readonly type: 'begin'; readonly total: number }
  | ({ readonly type: 'result' } & CaseOutcome)
  | { readonly type: 'skipped' }
  | { readonly type: 'end' };

const tell = (message: SelfTestMessage): void => self.postMessage(message);

async function main(): Promise<void> {
  // A file that breaks is told of.
  await import('./kernel-suites.ts');
  const suites = takeSuites();
  tell({ type: 'begin', total: suites.reduce((sum, suite) => sum + suite.tests.length, 0) });
  for (const suite of suites) await runSuite(suite, (outcome) => tell({ type: 'result', ...outcome }), () => tell({ type: 'skipped' })); // prettier-ignore
  tell({ type: 'end' });
}

void main().catch((error: unknown) => {
  tell({ type: 'result', suite: 'self-test', name: 'starts', problem: words(error) });
  tell({ type: 'end' });
});
