/** Which changes make a kernel case run again (test/support/passed-cases.ts). */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Device } from '../engine/gpu/device.ts';
import { add } from '../engine/ops/elementwise.ts';
import { linear } from '../engine/ops/linear.ts';
import { createRng } from '../engine/util/rng.ts';
import { anyWeight } from './support/any-weight.ts';
import { testDevice } from './support/device.ts';
import { randomTensor } from './support/kernel-case.ts';
import { digestOfCase } from './support/passed-cases.ts';

let device: Device;
beforeAll(async () => {
  device = await testDevice();
});
afterAll(() => device.close());

const ROWS = 32;

type Ask = (on: Device) => Promise<unknown>;

/** Asks for a product of packed weights, to which something is added. `before` is recorded first. */
function product({ seed = 1, columns = 64, rows = 2, added = 7, swapped = false, before = (_: Device): void => undefined } = {}): Ask {
  return async (on) => {
    const rng = createRng(seed);
    const upload = (name: string, shape: readonly number[], from = rng) => on.upload(name, 'f32', shape, randomTensor(from, shape).values);
    before(on);
    const weight = anyWeight(rng, 'Q4_0', ROWS, columns).pack(on);
    const [x, y] = [upload('x', [rows, columns]), upload('y', [rows, ROWS], createRng(added))];
    const [sums, out] = [on.tensor('sums', 'f32', [rows, ROWS]), on.tensor('out', 'f32', [rows, ROWS])];
    const rec = on.record('product');
    linear(rec, { x, weight, out: sums });
    add(rec, swapped ? { a: y, b: sums, out } : { a: sums, b: y, out });
    rec.submit();
    return on.read(out);
  };
}

test('the same case has the same digest, asks the adapter nothing, and leaves the device as it was', async () => {
  const { buffers, dispatches, submits, pipelines } = device.stats;
  const digest = await digestOfCase(device, product(), { expected: [] });
  expect(await digestOfCase(device, product(), { expected: [] })).toBe(digest);
  expect(device.stats).toMatchObject({ buffers, dispatches, submits, pipelines });
  const tensor = device.upload('three', 'f32', [3], Float32Array.of(1, 2, 3));
  expect(await device.read(tensor)).toEqual(Float32Array.of(1, 2, 3));
});

test('another input, weight, shape, grid, order, expectation or adapter is another case', async () => {
  const one = product();
  const others = [
    digestOfCase(device, one, { expected: [] }),
    digestOfCase(device, product({ seed: 2 }), { expected: [] }),
    digestOfCase(device, product({ columns: 96 }), { expected: [] }),
    digestOfCase(device, product({ rows: 3 }), { expected: [] }),
    digestOfCase(device, product({ swapped: true }), { expected: [] }),
    digestOfCase(device, product({ added: 5 }), { expected: [] }),
    digestOfCase(device, one, { expected: [Float64Array.of(1)] }),
    digestOfCase(device, one, { expected: [Float64Array.of(2)] }),
  ];
  const digests = await Promise.all(others);
  device.pretend(['software']);
  digests.push(await digestOfCase(device, one, { expected: [] }));
  device.pretend([]);
  expect(new Set(digests).size).toBe(digests.length);
});

test('what was written before counts as far as it is read', async () => {
  const digest = await digestOfCase(device, product(), { expected: [] });
  const beside = (on: Device): void => void on.upload('beside', 'f32', [4], Float32Array.of(1, 2, 3, 4));
  expect(await digestOfCase(device, product({ before: beside }), { expected: [] })).toBe(digest);

  const copied = (value: number) => async (on: Device) => {
    const [from, to] = [on.upload('from', 'f32', [4], Float32Array.of(value, 0, 0, 0)), on.tensor('to', 'f32', [8])];
    const rec = on.record('copies');
    rec.copy(from, to);
    rec.copy(from, to, 16, 0, 16);
    rec.submit();
    return on.read(to);
  };
  expect(await digestOfCase(device, copied(1), { expected: [] })).not.toBe(await digestOfCase(device, copied(2), { expected: [] }));
  expect(await digestOfCase(device, copied(1), { expected: [] })).toBe(await digestOfCase(device, copied(1), { expected: [] }));
});

test('one text changed is another case for those who run it', async () => {
  const shaders = await device.platform.shaders();
  const change = (part: string): ReadonlyMap<string, string> =>
    new Map([...shaders].map(([path, text]) => [path, path.includes(part) ? `${text}\n// Something else.` : text]));
  const digest = await digestOfCase(device, product(), { expected: [] });
  expect(await digestOfCase(device, product(), { expected: [] }, change('linear'))).not.toBe(digest);
  expect(await digestOfCase(device, product(), { expected: [] }, change('rms_norm'))).toBe(digest);
});

test('what the device cannot do without computing has no digest', async () => {
  const timed = (on: Device): Promise<unknown> => Promise.resolve(on.gpu.createQuerySet({ type: 'timestamp', count: 2 }));
  await expect(digestOfCase(device, timed, { expected: [] })).rejects.toThrow(TypeError);
});
