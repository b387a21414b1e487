/** Columns of packed tensors are the same however much is read at once: whole, held for the next piece, or each row's piece on its own. */
import { expect, test } from 'vitest';
import type { Checkpoint } from '../../engine/weights/checkpoint.ts';
import { ColumnReader, readTurned } from '../../engine/weights/integers/stored-numbers.ts';

/** A tensor whose element i is i, and the ranges that were read of it. */
function counting(rows: number, width: number): { readonly checkpoint: Checkpoint; readonly reads: number[] } {
  const reads: number[] = [];
  const checkpoint: Checkpoint = {
    names: () => ['a'],
    tensor: () => ({ dtype: 'I32', shape: [rows, width] }),
    stored: async (_, { from, to }) => {
      reads.push(to - from);
      return new Uint8Array(Uint32Array.from({ length: to - from }, (_, i) => from + i).buffer);
    },
    read: async (_, { from, to } = { from: 0, to: rows * width }) => Float32Array.from({ length: to - from }, (_, i) => from + i),
    readIds: () => Promise.reject(new Error('no ids')),
    close: async () => {},
  };
  return { checkpoint, reads };
}

test.each([
  ['a small one is read whole each time', 6, 8, [48, 48]],
  ['one of some MiB is held', 1024, 1040, [1024 * 1040]],
  ['of one above 64 MiB only the pieces are read', 4100, 4128, [...Array<number>(4100).fill(3), ...Array<number>(4100).fill(2)]],
])('%s', async (_, rows, width, expected) => {
  const { checkpoint, reads } = counting(rows, width);
  const reader = new ColumnReader(checkpoint);
  for (const columns of [
    { from: 1, to: 4 },
    { from: 6, to: 8 },
  ]) {
    const found = await reader.words('a', columns);
    const kept = columns.to - columns.from;
    expect(found).toHaveLength(rows * kept);
    expect(found.findIndex((word, i) => word !== Math.floor(i / kept) * width + columns.from + (i % kept))).toBe(-1);
  }
  expect(reads).toEqual(expected);
});

test('columns of floats are read as rows, in part and whole', async () => {
  const { checkpoint } = counting(3, 4);
  expect([...(await readTurned(checkpoint, 'a', { from: 1, to: 3 }))]).toEqual([1, 5, 9, 2, 6, 10]);
  expect([...(await readTurned(checkpoint, 'a', { from: 0, to: 4 }))]).toEqual([0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]);
});
