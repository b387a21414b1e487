/** Every tile in which a GPU multiplies many rows gives the bits of the others, whether it is chosen by measurement or by the number of rows. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { OptionalFeature } from '../../engine/gpu/caps.ts';
import type { Device } from '../../engine/gpu/device.ts';
import type { Recorder } from '../../engine/gpu/recorder.ts';
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
import { THOROUGH } from '../support/thorough.ts';

/** Rows beyond one tile of 128, columns beyond one of 128, and chunks of K of which the last is not whole. */
const [ROWS, COLUMNS] = [131, 140];
const TYPES: readonly (readonly [WeightType, number])[] = [['f16', 268], ['Q4_K', 512], ...(THOROUGH ? ([['f32', 268], ['Q8_0', 544], ['Q6_K', 512], ['Q2_K', 512], ['MXFP4', 288]] as const) : [])]; // prettier-ignore

/** In a page, which tests the adapter at hand, only where that is a GPU. */
const DISABLED: readonly OptionalFeature[] = globalThis.process === undefined ? [] : ['software'];

async function product(device: Device, record: (rec: Recorder) => void, out: Parameters<Recorder['readback']>[0]): Promise<Float32Array> {
  device.write(out, new Float32Array(out.size).fill(NaN));
  const rec = device.record('product');
  record(rec);
  const result = rec.readback(out);
  rec.submit();
  return new Float32Array(await result.data());
}

const bitsOf = (values: Float32Array): Uint32Array => new Uint32Array(values.buffer, values.byteOffset, values.length);

describe('tiles of a GPU', () => {
  let device: Device;
  beforeAll(async () => {
    device = await testDevice();
  });
  afterAll(() => device.close());

  function prepare(dtype: WeightType, k: number) {
    const rng = createRng(k);
    const weight = anyWeight(rng, dtype, COLUMNS, k);
    const x = randomTensor(rng, [ROWS, k]);
    return {
      x: device.upload('x', 'f32', [ROWS, k], x.values),
      weight: weight.pack(device),
      out: device.tensor('out', 'f32', [ROWS, COLUMNS]),
      expected: reference(x.values, Float32Array.from(weight.values), ROWS, COLUMNS, k),
    };
  }

  test.for(TYPES)('%s, from workgroup memory', async ([dtype, k], { skip }) => {
    device.pretend(DISABLED);
    if (device.caps.family === 'cpu') return skip('a software adapter has other kernels');
    const { x, weight, out, expected } = prepare(dtype, k);
    let first: Float32Array | undefined;
    for (const rows of [ROWS, 100, 50, 29, 13]) {
      for (const { name } of productShapes(rows, k / 4)) {
        device.tuned.set(productKey(dtype, rows, k, COLUMNS), name);
        const made = await product(device, (rec) => linear(rec, { x, weight, out, rows }), out);
        first ??= made;
        expect(bitsOf(made.subarray(0, rows * COLUMNS)), `${rows} rows, ${name}`).toEqual(bitsOf(first.subarray(0, rows * COLUMNS)));
      }
    }
    expect(nmse(first!, expected)).toBeLessThan(1e-10);
    expect(device.errors).toEqual([]);
  });

  test.for(TYPES)('%s, by matrices', async ([dtype, k], { skip }) => {
    device.pretend(DISABLED);
    const { caps } = device;
    if (!hasMatrices(caps) || dtype === 'f32') return skip('no subgroup matrices here');
    const { x, weight, out, expected } = prepare(dtype, k);
    const tiles: MatrixTile[] = [[1, 1], [1, 1e6], [ROWS, 1e6]].map(([m, n]) => matrixTile(caps, m!, n!)); // prettier-ignore
    tiles.push({ ...tiles[1]!, step: 4 });
    let first: Float32Array | undefined;
    for (const tile of tiles) {
      const made = await product(device, (rec) => linear(rec, { x, weight, out, promptFrom: 0, tile }), out);
      first ??= made;
      expect(bitsOf(made), JSON.stringify(tile)).toEqual(bitsOf(first));
    }
    expect(nmse(first!, expected)).toBeLessThan(3e-7);
    expect(device.errors).toEqual([]);
  });
});
