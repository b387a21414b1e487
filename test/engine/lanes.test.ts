/** How large subgroups are: as adapters of several vendors report them, and where a kernel says it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Caps } from '../../engine/gpu/caps.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { lanesOf } from '../../engine/ops/lanes.ts';
import { RMS_NORM } from '../../engine/ops/norm.ts';
import { reduceVariant } from '../../engine/ops/reduce.ts';
import { createRng } from '../../engine/util/rng.ts';
import { rmsNorm } from '../reference/norm.ts';
import { expectClose } from '../support/compare.ts';
import { testDevice } from '../support/device.ts';

let device: Device;
beforeAll(async () => {
  device = await testDevice();
});
afterAll(() => device.close());

describe('a workgroup of attention is one subgroup', () => {
  const gpu = (least: number, most: number, control: boolean): Caps => {
    const { caps } = device;
    return { ...caps, family: 'generic', subgroups: true, subgroupMinSize: least, subgroupMaxSize: most, subgroupSizeControl: control };
  };

  test('where all are alike, nothing is said', () => {
    expect(lanesOf(gpu(32, 32, true))).toEqual({ lanes: 32, variant: { subgroups: true } });
    expect(lanesOf(gpu(8, 8, false))).toEqual({ lanes: 8, variant: { subgroups: true } });
  });

  test('where they differ, the kernel says 32: half of a wave of 64 would idle', () => {
    expect(lanesOf(gpu(32, 64, true))).toEqual({ lanes: 32, variant: { subgroups: true, subgroupSize: 32 } });
    expect(lanesOf(gpu(8, 32, true))).toEqual({ lanes: 32, variant: { subgroups: true, subgroupSize: 32 } });
    expect(lanesOf(gpu(4, 16, true))).toEqual({ lanes: 16, variant: { subgroups: true, subgroupSize: 16 } });
    expect(reduceVariant(gpu(32, 64, true), 4096)).toEqual({
      wg: 256,
      variant: { subgroups: true, subgroupSize: 32, consts: { SUBGROUP: 32 } },
    });
  });

  test('through workgroup memory where they differ and nothing can be said, where they are wider, and where that failed', () => {
    const plain = { lanes: 32, variant: {} };
    expect(lanesOf(gpu(32, 64, false))).toEqual(plain);
    expect(lanesOf(gpu(64, 64, false))).toEqual(plain);
    expect(lanesOf({ ...gpu(32, 32, true), avoid: new Set(['lanes_subgroup']) })).toEqual(plain);
    expect(reduceVariant({ ...gpu(32, 32, true), avoid: new Set(['reduce_subgroup']) }, 64)).toEqual({ wg: 64, variant: {} });
  });
});

test('a kernel that says the size of its subgroups computes the same', async (context) => {
  const { subgroupMinSize: size, subgroupSizeControl } = device.caps;
  // Such as browsers, which do not offer it.
  if (!subgroupSizeControl) context.skip('this adapter lacks subgroup-size-control');
  const rng = createRng(1);
  const [rows, columns] = [3, 200];
  const [x, weight] = [rows * columns, columns].map((count) => Float32Array.from({ length: count }, () => rng.normal())) as [
    Float32Array,
    Float32Array,
  ];
  const tensors = { x: device.upload('x', 'f32', [rows, columns], x), weight: device.upload('weight', 'f32', [columns], weight) };
  const out = device.tensor('out', 'f32', [rows, columns]);
  const variant = { subgroups: true, subgroupSize: size, consts: { SUBGROUP: size }, overrides: { WG: size, HAS_RESIDUAL: 0 } };
  const rec = device.record('norm');
  rec.dispatch(RMS_NORM, variant, { ...tensors, residual: tensors.x, out }, { rows, columns, eps: 1e-5, scale: 1 }, [rows]);
  rec.submit();
  expectClose('norm', await device.read(out), rmsNorm(x, weight, rows, columns, 1e-5), 1e-9);
  expect(device.errors).toEqual([]);
});
