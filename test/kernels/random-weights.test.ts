/** Random weights made on the device: byte for byte the generator's, wherever a piece of a tensor begins. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import { randomBlocks, randomFloats } from '../../engine/ops/random-weights.ts';
import { widenBlocks } from '../../engine/weights/block-format.ts';
import { BLOCK_FORMATS } from '../../engine/weights/block-types.ts';
import type { BlockType } from '../../engine/weights/block-types.ts';
import type { StoredFloat } from '../../engine/weights/checkpoint.ts';
import { blocksOf, floatsOf, randomBlocks as madeOf, randomFloats as floatsFor } from '../../engine/weights/random/random-values.ts';
import { randomStored, randomValues, storedValues } from '../reference/random-weights.ts';
import { FLAVOURS } from '../support/kernel-case.ts';
import { testDevice } from '../support/device.ts';

const TYPES = Object.keys(BLOCK_FORMATS) as BlockType[];
const SEED = 0xdecafbad;

/** The bytes of a tensor that was recorded into, and whether the word behind them was left alone. */
async function made(device: Device, bytes: number, record: (raw: ReturnType<Device['tensor']>) => void): Promise<Uint8Array> {
  const words = Math.ceil(bytes / 4);
  const raw = device.upload('raw', 'u32', [words + 1], new Uint32Array(words + 1).fill(0xabababab));
  record(raw);
  const found = (await device.read(raw)) as Uint32Array;
  expect(found[words]).toBe(0xabababab);
  device.destroy(raw);
  return new Uint8Array(found.buffer, found.byteOffset, bytes);
}

describe.each(FLAVOURS)('$title', ({ disable }) => {
  let device: Device;
  beforeAll(async () => {
    device = await testDevice();
  });
  afterAll(() => {
    expect(device.errors).toEqual([]);
    device.close();
  });

  test.each(['F32', 'F16', 'BF16'] as const satisfies readonly StoredFloat[])('random_floats makes %s', async (source) => {
    device.pretend(disable);
    const random = floatsFor(SEED, 64);
    for (const [from, count] of [[0, 1], [0, 3], [5, 64], [64, 65], [62, 257]] as const) {
      const expected = storedValues(randomValues(random, from + count).slice(from), source);
      const found = await made(device, expected.length, (raw) => {
        const rec = device.record('random');
        randomFloats(rec, { raw, random, values: { from, to: from + count }, source });
        rec.submit();
      });
      expect(found).toEqual(expected);
    } // prettier-ignore
  });

  test.each(TYPES)('random_blocks makes %s', async (type) => {
    device.pretend(disable);
    const random = madeOf(SEED, type, 512);
    const { bytes } = BLOCK_FORMATS[type];
    for (const [from, count] of [[0, 1], [0, 3], [3, 63], [5, 65]] as const) {
      const expected = randomStored(random, from + count).slice(from * bytes);
      const found = await made(device, expected.length, (raw) => {
        const rec = device.record('random');
        randomBlocks(rec, { raw, random, blocks: { from, to: from + count } });
        rec.submit();
      });
      expect(found).toEqual(expected);
    } // prettier-ignore
  });
});

test('the host makes any piece of the same', () => {
  const floats = floatsFor(SEED, 4096);
  expect(floatsOf(floats, { from: 3, to: 40 })).toEqual(randomValues(floats, 40).slice(3));
  for (const type of TYPES) {
    const random = madeOf(SEED, type, 4096);
    expect(blocksOf(random, { from: 2, to: 7 })).toEqual(randomStored(random, 7).slice(2 * BLOCK_FORMATS[type].bytes));
  }
});

/** Mean and root of the mean square. */
function momentsOf(values: Float32Array): readonly [number, number] {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return [mean, Math.sqrt(values.reduce((sum, value) => sum + value * value, 0) / values.length)];
}

// 64 K values: the root mean square is known to a few percent, powers of two are up to the root of two off, and so is a scale of f16's smallest numbers.
test.each([64, 4096, 14_336])('values of rows of %i have the size that keeps activations', (width) => {
  for (const type of [undefined, ...TYPES]) {
    const values = new Float32Array(2 ** 16);
    if (type === undefined) values.set(floatsOf(floatsFor(SEED, width), { from: 0, to: values.length }));
    else
      widenBlocks(
        BLOCK_FORMATS[type],
        blocksOf(madeOf(SEED, type, width), { from: 0, to: values.length / BLOCK_FORMATS[type].values }),
        values,
      );
    const [mean, rms] = momentsOf(values);
    const size = rms * Math.sqrt(width);
    expect(size, type).toBeGreaterThan(0.65);
    expect(size, type).toBeLessThan(1.5);
    expect(Math.abs(mean) / rms, type).toBeLessThan(0.1);
  }
});
