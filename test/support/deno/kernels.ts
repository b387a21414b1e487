/** Entry of a Deno process: runs kernel cases and prints the outcome of each as a line of JSON. With the argument `some`, one case of every kernel. */
import { readdirSync } from 'node:fs';
import { argv, exit } from 'node:process';
import { runSuite } from '../browser/run-suites.ts';
import { takeSuites } from '../browser/vitest.ts';
import type { CollectedTest } from '../browser/vitest.ts';

const CASES = new URL('../../kernels/', import.meta.url);
for (const name of readdirSync(CASES)) if (name.endsWith('.test.ts')) await import(new URL(name, CASES).href);
for (const suite of takeSuites()) {
  const tests = argv[2] === 'some' ? oneOfEach(suite.tests) : suite.tests;
  await runSuite({ ...suite, tests }, (outcome) => console.log(JSON.stringify(outcome)), () => undefined); // prettier-ignore
}
// After all cases, all devices closed, Deno 2.9 does not end by itself; after those of any one file it does.
exit(0);

/** The first of the cases whose names begin with the same word, which is the kernel's, on the adapter as it is. */
function oneOfEach(tests: readonly CollectedTest[]): CollectedTest[] {
  const first = new Map<string, CollectedTest>();
  for (const test of tests) {
    const [word = ''] = test.name.split(' ');
    if (!first.has(word)) first.set(word, test);
  }
  return [...first.values()];
}
