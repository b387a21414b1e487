/** Every way in which a GPU may multiply gives a row the same bits, whichever is chosen for as many rows as there are. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import type { OptionalFeature } from '../../engine/gpu/caps.ts';
import type { Recorder } from '../../engine/gpu/recorder.ts';
import { linear, productKey } from '../../engine/ops/linear.ts';
import { productShapes } from '../../engine/ops/product-shapes.ts';
import { createRng } from '../../engine/util/rng.ts';
import type { WeightType } from '../../engine/weights/storage.ts';
import { anyWeight } from '../support/any-weight.ts';
import { testDevice } from '../support/device.ts';
import { randomTensor } from '../support/kernel-case.ts';
import { unlessPassed } from '../support/known-cases.ts';
import { THOROUGH } from '../support/thorough.ts';

/** Columns beyond whole workgroups of every way. */
const N = 72;
const MOST = 65;

interface Case {
  readonly dtype: WeightType;
  readonly k: number;
  readonly rows: readonly number[];
}

/** K of few chunks, of many that are all whole, of many with a short last one, and of loads of one quad. */
const ALL: readonly Case[] = (['f32', 'f16', 'Q8_0', 'Q4_K', 'Q6_K'] as const).flatMap((dtype) =>
  [256, 4096, 4864].map((k) => ({ dtype, k, rows: [1, 2, 3, 4, 8, 9, 16, 20, 64, 65] })),
);
const SOME: readonly Case[] = [
  { dtype: 'f16', k: 896, rows: [1, 8, 65] },
  { dtype: 'f16', k: 1044, rows: [1, 20] },
  { dtype: 'Q4_K', k: 4864, rows: [1, 2] },
];
/** In a page, which tests the adapter at hand, only where that is a GPU. */
const DISABLED: readonly OptionalFeature[] = globalThis.process === undefined ? [] : ['software'];

describe('ways of a GPU to multiply', () => {
  let device: Device;
  beforeAll(async () => {
    device = await testDevice();
  });
  afterAll(() => device.close());

  test.for(THOROUGH ? [...SOME, ...ALL] : SOME)('$dtype, K of $k, $rows rows', async ({ dtype, k, rows }, { skip }) => {
    device.pretend(DISABLED);
    if (device.caps.family === 'cpu') return skip('a software adapter has other ways');
    await unlessPassed(
      device,
      { expected: [] },
      (on) => products(on, { dtype, k, rows }),
      ({ all, others }) => {
        for (const { count, shape, bits } of others) expect(bits, `${count} rows by ${shape}`).toEqual(all.subarray(0, count * N));
      },
    );
    expect(device.errors).toEqual([]);
  });
});

/** Bits of the products of MOST rows, and of fewer in every way, of which each takes kernels of its own. */
async function products(device: Device, { dtype, k, rows }: Case) {
  const rng = createRng(k);
  const weight = anyWeight(rng, dtype, N, k).pack(device);
  const x = device.upload('x', 'f32', [MOST, k], randomTensor(rng, [MOST, k]).values);
  const seen = new Set<string>();
  const multiplied = async (count: number, shape?: string): Promise<Uint32Array> => {
    const key = productKey(dtype, count, k, N);
    if (shape !== undefined) device.tuned.set(key, shape);
    const out = device.tensor('out', 'f32', [count, N]);
    const record = (rec: Recorder): void => linear(rec, { x: x.rows(0, count), weight, out });
    seen.add([...device.compile(record)].join());
    const rec = device.record('product');
    record(rec);
    rec.submit();
    device.tuned.delete(key);
    return new Uint32Array(((await device.read(out)) as Float32Array).buffer);
  };
  const all = await multiplied(MOST);
  const others: { count: number; shape: string; bits: Uint32Array }[] = [];
  for (const count of rows) {
    seen.clear();
    const shapes = productShapes(count, k / 4);
    for (const { name } of shapes) others.push({ count, shape: name, bits: await multiplied(count, name) });
    expect(seen.size).toBe(shapes.length);
  }
  return { all, others };
}
