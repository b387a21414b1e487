/** Waiting for the lock of a pull, without other processes. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { withLock } from '../../sources/node/lock.ts';

test('a lock that its holder has not written yet is waited for, and names no process before it names one', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'parley-lock-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'lock');
  const { signal } = new AbortController();
  let turns = 0;
  // Asked at the beginning of each turn of the wait.
  signal.throwIfAborted = () => {
    turns++;
    if (turns === 1) writeFileSync(path, '');
    if (turns === 3) writeFileSync(path, JSON.stringify({ token: 'other', pid: 4711, place: 'elsewhere', done: 1, total: 2 }));
    if (turns === 4) rmSync(path);
  };
  const named: number[] = [];
  const options = { signal, pollMs: 1, onWait: ({ pid }: { readonly pid: number }) => void named.push(pid) };
  expect(await withLock(path, options, async () => turns)).toBe(4);
  expect(named).toEqual([4711]);
});
