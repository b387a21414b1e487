import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { summarise } from './results.mjs';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'parley-results-'));
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

interface Test {
  fullName: string;
  status: 'passed' | 'failed' | 'pending';
  failureMessages: string[];
}

const passed = (fullName: string): Test => ({ fullName, status: 'passed', failureMessages: [] });
const failed = (fullName: string, message: string): Test => ({ fullName, status: 'failed', failureMessages: [message] });

/** Writes a report as vitest does; returns its path. */
function report(name: string, files: Record<string, Test[] | string>) {
  const path = join(folder, `${name}.json`);
  const tests = Object.values(files).flatMap((file) => (typeof file === 'string' ? [] : file));
  const count = (status: Test['status']) => tests.filter((test) => test.status === status).length;
  const testResults = Object.entries(files).map(([file, content]) => ({
    name: join(folder, file),
    status: typeof content === 'string' || content.some(({ status }) => status === 'failed') ? 'failed' : 'passed',
    message: typeof content === 'string' ? content : '',
    assertionResults: typeof content === 'string' ? [] : content,
  }));
  const counts = { numPassedTests: count('passed'), numFailedTests: count('failed'), numPendingTests: count('pending') };
  writeFileSync(path, JSON.stringify({ ...counts, testResults }));
  return path;
}

/** What `summarise` prints and returns. */
function summary(reports: string[], runs: Parameters<typeof summarise>[1]) {
  const log = vi.spyOn(console, 'log').mockReturnValue();
  const status = summarise(reports, runs, folder);
  return { status, lines: log.mock.calls.map(([line]) => String(line)) };
}

test('the end of a run names each failure of every report, and the counts are the last line', () => {
  const first = report('first', { 'a.test.ts': [passed('one'), failed('two', 'expected 1 to be 2\n    at a.test.ts:3')] });
  const second = report('second', { 'b.test.ts': [passed('three')], 'c.test.ts': 'cannot find a module' });
  const { status, lines } = summary([first, second], [{ title: 'tests', passed: false }]);
  expect(status).toBe(1);
  expect(lines).toEqual([
    'FAILED: tests\n  its process ended with a failure\n',
    'FAILED: c.test.ts\n  cannot find a module\n',
    'FAILED: a.test.ts > two\n  expected 1 to be 2\n      at a.test.ts:3\n',
    '2 passed, 2 failed, 0 skipped',
  ]);
});

test('a check that fails is a failure without a failed test, and says what it found', () => {
  const all = report('all', { 'a.test.ts': [passed('one')] });
  const runs = [
    { title: 'lint', passed: false, output: 'a.ts:1: unused' },
    { title: 'tests', passed: true },
  ];
  expect(summary([all], runs)).toEqual({ status: 1, lines: ['FAILED: lint\n  a.ts:1: unused\n', '1 passed, 0 failed, 0 skipped'] });
});

test('a machine on which every kernel case skips has failed', () => {
  const all = report('all', { 'test/kernels/a.test.ts': [{ fullName: 'one', status: 'pending', failureMessages: [] }] });
  expect(summary([all], [])).toEqual({ status: 1, lines: ['FAILED: no kernel case ran', '0 passed, 0 failed, 1 skipped'] });
});

test('many failures and long messages leave the end of a log its end', () => {
  const message = Array.from({ length: 1000 }, (_, line) => `line ${line}`).join('\n');
  const all = report('all', { 'a.test.ts': Array.from({ length: 30 }, (_, index) => failed(String(index), message)) });
  const { status, lines } = summary([all], []);
  expect(status).toBe(1);
  expect(lines).toHaveLength(22);
  expect(lines[0]!.split('\n')).toHaveLength(1 + 25 + 1 + 1);
  expect(lines.slice(20)).toEqual(['and 10 more failures\n', '0 passed, 30 failed, 0 skipped']);
});

test('a run in which all passes says only how many', () => {
  const all = report('all', { 'a.test.ts': [passed('one')] });
  expect(summary([all], [{ title: 'tests', passed: true }])).toEqual({ status: 0, lines: ['1 passed, 0 failed, 0 skipped'] });
});
