/** Every tile in which a GPU multiplies many rows gives the bits of the others, whether it is chosen by measurement or by the number of rows. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { OptionalFeature } from '../../engine/gpu/caps.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { hasMatrices, matrixTile } from '../../engine/ops/linear-matrix.ts';
import type { MatrixTile } from '../../engine/ops/linear-matrix.ts';
import { linear, productKey } from '../../engine/ops/linear.ts';
import { productShapes } from '../../engine/ops/product-shapes.ts';
import { createRng } from '../../engine/util/rng.ts';
import type { WeightType } from '../../engine/weights/storage.ts';
import { linear as reference } from '../reference/linear.ts';
import { anyWeight } from '../support/any-weight.ts';
import { nmse } from '../support/compare.ts';
import { testDevice } from '../support/device.ts';
import { randomTensor } from '../support/kernel-case.ts';
import { unlessPassed } from '../support/known-cases.ts';
import { THOROUGH } from '../support/thorough.ts';

/** Rows beyond one tile of 128, columns beyond one of 128, and chunks of K of which the last is not whole. */
const [ROWS, COLUMNS] = [131, 140];
const TYPES: readonly (readonly [WeightType, number])[] = [['f16', 268], ['Q4_K', 512], ...(THOROUGH ? ([['f32', 268], ['Q8_0', 544], ['Q6_K', 512], ['Q2_K', 512], ['MXFP4', 288]] as const) : [])]; // prettier-ignore

/** In a page, which tests the adapter at hand, only where that is a GPU. */
const DISABLED: readonly OptionalFeature[] = globalThis.process === undefined ? [] : ['software'];

interface Product {
  readonly what: string;
  readonly rows: number;
  readonly values: Float32Array;
}

function operands(dtype: WeightType, k: number) {
  const rng = createRng(k);
  const stored = anyWeight(rng, dtype, COLUMNS, k);
  const { values } = randomTensor(rng, [ROWS, k]);
  return { stored, x: { values, k }, expected: reference(values, Float32Array.from(stored.values), ROWS, COLUMNS, k) };
}

/** Puts operands on a device, which multiplies them as it is told to. */
function prepare(
  device: Device,
  stored: ReturnType<typeof anyWeight>,
  { values, k }: { readonly values: Float32Array; readonly k: number },
) {
  const x = device.upload('x', 'f32', [ROWS, k], values);
  const weight = stored.pack(device);
  const out = device.tensor('out', 'f32', [ROWS, COLUMNS]);
  const multiplied = async (how: Omit<Parameters<typeof linear>[1], 'x' | 'weight' | 'out'>): Promise<Float32Array> => {
    device.write(out, new Float32Array(out.size).fill(NaN));
    const rec = device.record('product');
    linear(rec, { x, weight, out, ...how });
    const result = rec.readback(out);
    rec.submit();
    return new Float32Array(await result.data());
  };
  return { multiplied };
}

function expectAlike(products: readonly Product[], expected: ArrayLike<number>, tolerance: number): void {
  const first = products[0]!.values;
  for (const { what, rows, values } of products)
    expect(bitsOf(values.subarray(0, rows * COLUMNS)), what).toEqual(bitsOf(first.subarray(0, rows * COLUMNS)));
  expect(nmse(first, expected)).toBeLessThan(tolerance);
}

const bitsOf = (values: Float32Array): Uint32Array => new Uint32Array(values.buffer, values.byteOffset, values.length);

describe('tiles of a GPU', () => {
  let device: Device;
  beforeAll(async () => {
    device = await testDevice();
  });
  afterAll(() => device.close());

  test.for(TYPES)('%s, from workgroup memory', async ([dtype, k], { skip }) => {
    device.pretend(DISABLED);
    if (device.caps.family === 'cpu') return skip('a software adapter has other kernels');
    const { stored, x, expected } = operands(dtype, k);
    await unlessPassed(
      device,
      { expected: [expected] },
      async (on) => {
        const { multiplied } = prepare(on, stored, x);
        const products: Product[] = [];
        for (const rows of [ROWS, 100, 50, 29, 13])
          for (const { name } of productShapes(rows, k / 4)) {
            on.tuned.set(productKey(dtype, rows, k, COLUMNS), name);
            products.push({ what: `${rows} rows, ${name}`, rows, values: await multiplied({ rows }) });
          }
        return products;
      },
      (products) => expectAlike(products, expected, 1e-10),
    );
    expect(device.errors).toEqual([]);
  });

  test.for(TYPES)('%s, by matrices', async ([dtype, k], { skip }) => {
    device.pretend(DISABLED);
    const { caps } = device;
    if (!hasMatrices(caps) || dtype === 'f32') return skip('no subgroup matrices here');
    const { stored, x, expected } = operands(dtype, k);
    const tiles: MatrixTile[] = [[1, 1], [1, 1e6], [ROWS, 1e6]].map(([m, n]) => matrixTile(caps, m!, n!)); // prettier-ignore
    tiles.push({ ...tiles[1]!, step: 4 });
    await unlessPassed(
      device,
      { expected: [expected] },
      async (on) => {
        const { multiplied } = prepare(on, stored, x);
        const products: Product[] = [];
        for (const tile of tiles)
          products.push({ what: JSON.stringify(tile), rows: ROWS, values: await multiplied({ promptFrom: 0, tile }) });
        return products;
      },
      (products) => expectAlike(products, expected, 3e-7),
    );
    expect(device.errors).toEqual([]);
  });
});
