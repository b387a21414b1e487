/** Every storage type of GGUF, bit for bit against PyPI `gguf` (test/tools/dump_gguf_blocks.py). */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { STORAGE_TYPES } from '../../engine/weights/gguf/storage-types.ts';

interface Case {
  readonly type: number;
  readonly name: string;
  readonly at: number;
  readonly bytes: number;
  readonly values: number;
  readonly valuesAt: number;
}

const fixture = (name: string): Buffer => readFileSync(new URL(`../fixtures/gguf/${name}`, import.meta.url));
const cases = JSON.parse(fixture('blocks.json').toString()) as readonly Case[];
const data = new Uint8Array(fixture('blocks.bin'));

test('there is a case of every type that is read', () => {
  expect(cases.map(({ type }) => type).sort((a, b) => a - b)).toEqual([...STORAGE_TYPES.keys()]);
});

test.each(cases)('$name is widened as gguf does it, zeros and denormals included', ({ type, name, at, bytes, values, valuesAt }) => {
  const stored = STORAGE_TYPES.get(type)!;
  expect(stored.name).toBe(name);
  expect(bytes / stored.bytes).toBe(values / stored.values);
  const out = new Float32Array(values);
  stored.widen(data.slice(at, at + bytes), out);
  const bits = new Uint32Array(data.slice(valuesAt, valuesAt + values * 4).buffer);
  expect(new Uint32Array(out.buffer)).toEqual(bits);
});
