/** Rows of a matrix that are read as other matrices, however they are read. */
import { expect, test } from 'vitest';
import { gatheredCheckpoint } from '../../engine/models/gathered-checkpoint.ts';
import type { Checkpoint } from '../../engine/weights/checkpoint.ts';

const [ROWS, WIDTH, BLOCK_BYTES] = [9, 4, 3];
const VALUES = Float32Array.from({ length: ROWS * WIDTH }, (_, i) => i);
const BLOCKS = Uint8Array.from({ length: ROWS * BLOCK_BYTES }, (_, i) => i);

/** A matrix of nine rows, `whole`, and one that nothing is gathered from. */
function stored(bytesOf: (name: string) => boolean = () => true): Checkpoint {
  const bytes = new Uint8Array(VALUES.buffer);
  return {
    names: () => ['other', 'whole'],
    tensor: (name) => (name === 'whole' || name === 'other' ? { dtype: 'F32', shape: [ROWS, WIDTH] } : undefined),
    read: async (_, { from, to } = { from: 0, to: VALUES.length }) => VALUES.slice(from, to),
    stored: (name, { from, to }) => (bytesOf(name) ? Promise.resolve(bytes.slice(4 * from, 4 * to)) : undefined),
    blocks: async (_, { from, to }) => BLOCKS.slice(from * BLOCK_BYTES, to * BLOCK_BYTES),
    readIds: () => Promise.reject(new Error('no ids')),
    close: () => Promise.resolve(),
  };
}

const RUNS = [
  { from: 6, to: 9 },
  { from: 0, to: 1 },
  { from: 3, to: 5 },
];
const ORDER = [6, 7, 8, 0, 3, 4];
const GATHERED = new Map([['some', { source: 'whole', runs: RUNS }]]);

test('the gathered matrix is there instead of the one that it comes from', () => {
  const checkpoint = gatheredCheckpoint(stored(), GATHERED);
  expect(checkpoint.names()).toEqual(['other', 'some']);
  expect(checkpoint.tensor('some')).toEqual({ dtype: 'F32', shape: [ORDER.length, WIDTH] });
  expect(checkpoint.tensor('other')!.shape).toEqual([ROWS, WIDTH]);
});

test('any part of it has the rows in order: values, bytes and blocks', async () => {
  const checkpoint = gatheredCheckpoint(stored(), GATHERED);
  const all = ORDER.flatMap((row) => [...VALUES.subarray(row * WIDTH, (row + 1) * WIDTH)]);
  expect([...(await checkpoint.read('some'))]).toEqual(all);
  for (let from = 0; from <= all.length; from++) {
    for (let to = from; to <= all.length; to++) {
      expect([...(await checkpoint.read('some', { from, to }))]).toEqual(all.slice(from, to));
      const bytes = (await checkpoint.stored!('some', { from, to }))!;
      expect([...new Float32Array(bytes.buffer)]).toEqual(all.slice(from, to));
    }
  }
  const blocks = ORDER.flatMap((row) => [...BLOCKS.subarray(row * BLOCK_BYTES, (row + 1) * BLOCK_BYTES)]);
  for (let from = 0; from <= ORDER.length; from++) {
    for (let to = from; to <= ORDER.length; to++) {
      const part = blocks.slice(from * BLOCK_BYTES, to * BLOCK_BYTES);
      expect([...(await checkpoint.blocks!('some', { from, to }))]).toEqual(part);
    }
  }
});

test('where the matrix has no bytes as they are stored, what is gathered has none', () => {
  const checkpoint = gatheredCheckpoint(
    stored((name) => name === 'other'),
    GATHERED,
  );
  expect(checkpoint.stored!('some', { from: 0, to: 8 })).toBeUndefined();
  expect(checkpoint.stored!('other', { from: 0, to: 8 })).toBeDefined();
});
