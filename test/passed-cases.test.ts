/** Which changes make a kernel case run again (test/support/passed-cases.ts). */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Device } from '../engine/gpu/device.ts';
import { add } from '../engine/ops/elementwise.ts';
import { linear } from '../engine/ops/linear.ts';
import { createRng } from '../engine/util/rng.ts';
import { anyWeight } from './support/any-weight.ts';
import { testDevice } from './support/device.ts';
import { randomTensor } from './support/kernel-case.ts';
import type { CaseData } from './support/kernel-case.ts';
import { digestOf } from './support/passed-cases.ts';

let device: Device;
beforeAll(async () => {
  device = await testDevice();
});
afterAll(() => device.close());

/** A product of packed weights, to which something is added. */
function product({ seed = 1, columns = 64, rows = 2 } = {}): CaseData {
  const rng = createRng(seed);
  const weight = anyWeight(rng, 'Q4_0', 32, columns);
  return {
    inputs: { x: randomTensor(rng, [rows, columns]), y: randomTensor(rng, [rows, 32]) },
    outputs: { out: { dtype: 'f32', shape: [rows, 32] } },
    run(rec, t, on) {
      const packed = weight.pack(on);
      const sums = on.tensor('sums', 'f32', [rows, 32]);
      linear(rec, { x: t['x']!, weight: packed, out: sums });
      add(rec, { a: sums, b: t['y']!, out: t['out']! });
    },
    expected: { out: new Float32Array(32 * rows) },
  };
}

test('the same case has the same digest, asks the adapter nothing, and leaves the device as it was', async () => {
  const { buffers, dispatches, submits, pipelines } = device.stats;
  const digest = await digestOf(device, product());
  expect(await digestOf(device, product())).toBe(digest);
  expect(device.stats).toMatchObject({ buffers, dispatches, submits, pipelines });
  expect(Object.hasOwn(device, 'record')).toBe(false);
  const tensor = device.upload('three', 'f32', [3], Float32Array.of(1, 2, 3));
  expect(await device.read(tensor)).toEqual(Float32Array.of(1, 2, 3));
});

test('another input, weight, shape, grid, order, expectation, tolerance or adapter is another case', async () => {
  const one = product();
  const swapped: CaseData = {
    ...one,
    run: (rec, t, on) => one.run(rec, { ...t, out: t['y']!, y: t['out']! }, on),
  };
  const others = [
    digestOf(device, one),
    digestOf(device, product({ seed: 2 })),
    digestOf(device, product({ columns: 96 })),
    digestOf(device, product({ rows: 3 })),
    digestOf(device, swapped),
    digestOf(device, { ...one, inputs: { ...one.inputs, y: randomTensor(createRng(5), [2, 32]) } }),
    digestOf(device, { ...one, expected: { out: new Float32Array(64).fill(1) } }),
    digestOf(device, { ...one, outputs: { out: { dtype: 'f32', shape: [2, 32], initial: new Float32Array(64) } } }),
    digestOf(device, one, 1e-6),
  ];
  const digests = await Promise.all(others);
  device.pretend(['software']);
  digests.push(await digestOf(device, one));
  device.pretend([]);
  expect(new Set(digests).size).toBe(digests.length);
});

test('another text of a kernel is another case', async () => {
  const shaders = await device.platform.shaders();
  const changed = new Map([...shaders].map(([path, text]) => [path, path.includes('linear') ? `${text}\n// Something else.` : text]));
  expect(await digestOf(device, product(), 0, changed)).not.toBe(await digestOf(device, product()));
});

test('a case that reads before it ends has no digest', async () => {
  const reads: CaseData = { ...product(), run: (rec, t) => void rec.readback(t['x']!) };
  await expect(digestOf(device, reads)).rejects.toThrow(/reads on its way/);
});
