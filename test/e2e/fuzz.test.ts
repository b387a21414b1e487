/** Hostile requests of all kinds against the whole server: a fixed stretch of two seeds, with and without a key. More of it: `npm run bench -- fuzz`. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { runFuzz } from '../fuzz/run.ts';
import { THOROUGH } from '../support/thorough.ts';

const FOLDER = join(fileURLToPath(new URL('../..', import.meta.url)), '.parley', 'fuzz');

const CASES = THOROUGH ? 300 : 60;

test.each([
  ['without a key', 2],
  ['with a key', 1],
])(`${CASES} hostile cases %s: no crash, no hang, no answer against the contract`, { timeout: 600_000 }, async (_, seed) => {
  const { cases, faults, counts } = await runFuzz({ seed, cases: CASES, folder: FOLDER });
  console.log(`${cases} cases: ${JSON.stringify(counts)}`);
  expect(faults).toEqual([]);
  expect(cases).toBe(CASES);
});
