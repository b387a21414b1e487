/** Every storage type of GGUF, bit for bit against PyPI `gguf` (test/tools/dump_gguf_blocks.py). */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { STORAGE_TYPES } from '../../engine/weights/gguf/storage-types.ts';
import { gridOf } from '../../engine/weights/grids.ts';
import type { GridName } from '../../engine/weights/grids.ts';

interface Case {
  readonly type: number;
  readonly name: string;
  readonly at: number;
  readonly bytes: number;
  readonly values: number;
  readonly valuesAt: number;
}

const fixture = (name: string): Buffer => readFileSync(new URL(`../fixtures/gguf/${name}`, import.meta.url));
const cases = ['blocks', 'small-blocks'].flatMap((file) => {
  const data = new Uint8Array(fixture(`${file}.bin`));
  return (JSON.parse(fixture(`${file}.json`).toString()) as readonly Case[]).map((row) => ({ ...row, data }));
});

test('there is a case of every type that is read', () => {
  expect(cases.map(({ type }) => type).sort((a, b) => a - b)).toEqual([...STORAGE_TYPES.keys()]);
});

test.each(cases)('$name is widened as gguf does it, zeros and denormals included', ({ type, name, at, bytes, values, valuesAt, data }) => {
  const stored = STORAGE_TYPES.get(type)!;
  expect(stored.name).toBe(name);
  expect(bytes / stored.bytes).toBe(values / stored.values);
  const out = new Float32Array(values);
  stored.widen(data.slice(at, at + bytes), out);
  const bits = new Uint32Array(data.slice(valuesAt, valuesAt + values * 4).buffer);
  expect(new Uint32Array(out.buffer)).toEqual(bits);
});

const digests = JSON.parse(fixture('grids.json').toString()) as Readonly<Record<GridName, string>>;

/** The numbers that a grid's digits stand for, smallest first. */
const LEVELS: Readonly<Record<GridName, readonly number[]>> = {
  IQ1_S: [-1, 0, 1], IQ2_XXS: [8, 25, 43], IQ2_XS: [8, 25, 43], IQ2_S: [8, 25, 43], IQ3_XXS: [4, 12, 20, 28, 36, 44, 52, 62], IQ3_S: [1, 3, 5, 7, 9, 11, 13, 15],
}; // prettier-ignore

test.each(Object.keys(LEVELS) as GridName[])('the grid of %s is that of gguf', (name) => {
  const digits = new Uint8Array(gridOf(name).buffer);
  const numbers = Int8Array.from(digits, (digit) => LEVELS[name][digit]!);
  expect(createHash('sha256').update(numbers).digest('hex')).toBe(digests[name]);
});
