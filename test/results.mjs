/** What came of a test run, said once more at its end: who reads a long log from there, or is shown no more than its tail, sees what failed. Plain Node, as run.mjs. */
import { readFileSync } from 'node:fs';
import { relative, sep } from 'node:path';

/** So that the end of the log stays its end when a whole machine's tests fail. */
const SHOWN = 20;
const LINES = 25;
const CHARACTERS = 2_000;

/**
 * Prints what failed and then the counts, as the last line; returns the exit status.
 * @param {string[]} reports Paths of vitest's JSON reports.
 * @param {{ title: string, passed: boolean, output?: string }[]} runs Each process that had to succeed; `output` is what a check printed that wrote no report.
 * @param {string} root The folder that files' names are shown from.
 * @returns {0 | 1}
 */
export function summarise(reports, runs, root) {
  const results = reports.map((report) => JSON.parse(readFileSync(report, 'utf8')));
  const files = results.flatMap(({ testResults }) => testResults);
  const broken = files.filter((file) => file.status === 'failed' && file.assertionResults.length === 0);
  const kernels = files.filter((file) => file.name.includes(`${sep}test${sep}kernels${sep}`)).flatMap((file) => file.assertionResults);
  // A machine where every kernel case skips has tested nothing: that must not look like success.
  const untested = kernels.length > 0 && !kernels.some((test) => test.status === 'passed');
  const failures = [
    ...runs.filter(({ passed }) => !passed).map(({ title, output }) => ({ title, text: output ?? 'its process ended with a failure' })),
    ...broken.map((file) => ({ title: relative(root, file.name), text: file.message })),
    ...files.flatMap((file) => failuresOf(file, relative(root, file.name))),
  ];
  for (const { title, text } of failures.slice(0, SHOWN)) console.log(`FAILED: ${title}\n${shortened(text)}\n`);
  if (failures.length > SHOWN) console.log(`and ${failures.length - SHOWN} more failures\n`);
  if (untested) console.log('FAILED: no kernel case ran');
  const total = (count) => results.reduce((sum, result) => sum + result[count], 0);
  console.log(`${total('numPassedTests')} passed, ${total('numFailedTests') + broken.length} failed, ${total('numPendingTests')} skipped`);
  return failures.length === 0 && !untested ? 0 : 1;
}

/** The failed tests of a file that ran. */
function failuresOf({ assertionResults }, name) {
  return assertionResults
    .filter((test) => test.status === 'failed')
    .map((test) => ({ title: `${name} > ${test.fullName}`, text: test.failureMessages.join('\n') }));
}

/** The beginning of a message, indented. */
function shortened(text) {
  const lines = text.slice(0, CHARACTERS).trimEnd().split('\n');
  const rest = lines.length > LINES || text.length > CHARACTERS ? ['…'] : [];
  return [...lines.slice(0, LINES), ...rest].map((line) => `  ${line}`).join('\n');
}
