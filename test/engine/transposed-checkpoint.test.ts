/** A checkpoint whose matrices are stored the other way round: any run of elements is that of the transposed matrix. */
import { expect, test } from 'vitest';
import { transposedCheckpoint } from '../../engine/models/transposed-checkpoint.ts';
import type { Checkpoint } from '../../engine/weights/checkpoint.ts';

const [ROWS, COLUMNS] = [37, 70];
const VALUES = Float32Array.from({ length: ROWS * COLUMNS }, (_, i) => i);
const TURNED = Float32Array.from(VALUES, (_, i) => (i % ROWS) * COLUMNS + Math.floor(i / ROWS));

/** A checkpoint of two equal matrices, and how often they were read. */
function stored(): { readonly checkpoint: Checkpoint; readonly reads: string[] } {
  const reads: string[] = [];
  const checkpoint: Checkpoint = {
    names: () => ['turned', 'plain'],
    tensor: () => ({ dtype: 'F32', shape: [ROWS, COLUMNS] }),
    read: async (name, elements) => (reads.push(name), VALUES.slice(elements?.from, elements?.to)),
    stored: async () => new Uint8Array(4),
    readIds: () => Promise.reject(new Error('no ids')),
    close: async () => {},
  };
  return { checkpoint, reads };
}

test('has the shape and the values of the transposed matrix, whole and in runs, and reads it once', async () => {
  const { checkpoint, reads } = stored();
  const turned = transposedCheckpoint(checkpoint, (name) => name === 'turned');
  expect(turned.tensor('turned')!.shape).toEqual([COLUMNS, ROWS]);
  expect(await turned.read('turned')).toEqual(TURNED);
  for (const elements of [
    { from: 0, to: 5 },
    { from: 36, to: 75 },
    { from: 1000, to: ROWS * COLUMNS },
  ]) {
    const values = await turned.read('turned', elements);
    expect(values).toEqual(TURNED.slice(elements.from, elements.to));
    values.fill(0);
  }
  expect(await turned.read('turned')).toEqual(TURNED);
  expect(reads).toEqual(['turned']);
  expect(turned.stored!('turned', { from: 0, to: 1 })).toBeUndefined();
});

test('leaves other tensors as they are', async () => {
  const { checkpoint } = stored();
  const turned = transposedCheckpoint(checkpoint, (name) => name === 'turned');
  expect(turned.tensor('plain')!.shape).toEqual([ROWS, COLUMNS]);
  expect(await turned.read('plain', { from: 3, to: 9 })).toEqual(VALUES.slice(3, 9));
  expect(await turned.stored!('plain', { from: 0, to: 1 })).toHaveLength(4);
});
