/** Weights reach the device in pieces, whatever they become there. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import { WeightLoader } from '../../engine/models/weight-loader.ts';
import { stackLinear } from '../../engine/ops/pack-linear.ts';
import type { LinearWeight } from '../../engine/ops/weight.ts';
import { fromBF16 } from '../../engine/util/f16.ts';
import { createRng } from '../../engine/util/rng.ts';
import { missingTensor } from '../../engine/weights/checkpoint.ts';
import type { Checkpoint } from '../../engine/weights/checkpoint.ts';
import { quantizeRows } from '../reference/quantize.ts';
import { testDevice } from '../support/device.ts';
import { packStored } from '../support/pack-stored.ts';
import { wordsOf } from '../support/words-of.ts';

const WIDTH = 1024;
/** A chunk holds 4,096 rows. */
const ROWS = { a: 4100, b: 40 } as const;
const CHUNK = 16 * 2 ** 20;

let device: Device;
beforeAll(async () => {
  device = await testDevice();
});
afterAll(() => {
  expect(device.errors).toEqual([]);
  device.close();
});

const rng = createRng(3);
/** bf16 of both signs from 2^-7 to 2^8. */
const bits = {
  a: Uint16Array.from({ length: ROWS.a * WIDTH }, () => (rng.integer(2) << 15) | (0x3c00 + rng.integer(0x780))),
  b: Uint16Array.from({ length: ROWS.b * WIDTH }, () => (rng.integer(2) << 15) | (0x3c00 + rng.integer(0x780))),
};
type Name = keyof typeof bits;

/** Tensors a and b in BF16, or in another type that the device cannot read; `asked` gets the f32 bytes of every piece. */
function checkpointOf(dtype: string, asked: number[]): Checkpoint {
  const piece = (name: string, { from, to } = { from: 0, to: bits[name as Name].length }): Uint16Array => {
    asked.push(4 * (to - from));
    return bits[name as Name].slice(from, to);
  };
  return {
    names: () => Object.keys(bits),
    tensor: (name) => ({ dtype, shape: [ROWS[name as Name], WIDTH] }),
    read: async (name, elements) => fromBF16(piece(name, elements)),
    ...(dtype === 'BF16' && { stored: async (name, elements) => new Uint8Array(piece(name, elements).buffer) }),
    readIds: async (name) => Promise.reject(missingTensor(name)),
    close: async () => undefined,
  };
}

/** Words on the device. */
async function allWords({ parts }: LinearWeight): Promise<Uint32Array[]> {
  return Promise.all(parts.map(async ({ weight }) => wordsOf(device, weight)));
}

test.each([
  ['BF16', []],
  ['F8 with scales', []],
  ['BF16 for buffers', ['textures']],
] as const)('matrices in %s are quantised without ever lying on the host', async (type, disable) => {
  device.pretend(disable);
  const [dtype] = type.split(' ') as [string];
  const asked: number[] = [];
  const loader = new WeightLoader(device, checkpointOf(dtype, asked), { float: 'f16', keepBlocks: true, quantization: 'q4_0' });
  const names = ['a', 'b'] as const;
  const loaded = await loader.mergedLinear('both', names.map((name) => ({ name, outFeatures: ROWS[name] })), WIDTH); // prettier-ignore
  await loader.finish();
  expect(asked.reduce((sum, bytes) => sum + bytes, 0)).toBe(4 * (bits.a.length + bits.b.length));
  expect(Math.max(...asked)).toBeLessThanOrEqual(CHUNK);
  const values = names.map((name) => fromBF16(bits[name]));
  const both = new Float32Array(values[0]!.length + values[1]!.length);
  both.set(values[0]!);
  both.set(values[1]!, values[0]!.length);
  const blocks = quantizeRows(both, 'Q4_0');
  const expected = stackLinear([packStored(device, 'expected', blocks, ROWS.a + ROWS.b, WIDTH, 'Q4_0')]);
  const [found, wanted] = [await allWords(loaded), await allWords(expected)];
  expect(found.map((words, i) => Buffer.compare(Buffer.from(words.buffer), Buffer.from(wanted[i]!.buffer)))).toEqual([0]);
  for (const { weight } of [...loaded.parts, ...expected.parts]) device.destroy(weight);
});
