/** Random weight matrices of any storage: the values a device has of them, and how they get there. */
import type { Device } from '../../engine/gpu/device.ts';
import { packLinear } from '../../engine/ops/pack-linear.ts';
import { placeOf } from '../../engine/ops/weight-place.ts';
import type { LinearWeight } from '../../engine/ops/weight.ts';
import type { Rng } from '../../engine/util/rng.ts';
import { isBlockType } from '../../engine/weights/storage.ts';
import type { WeightType } from '../../engine/weights/storage.ts';
import { randomTensor, roundToF16 } from './kernel-case.ts';
import { packStored } from './pack-stored.ts';
import { randomBlocks } from './random-blocks.ts';

export interface AnyWeight {
  /** [N, K]. */
  readonly values: ArrayLike<number>;
  pack(device: Device): LinearWeight;
}

export function anyWeight(rng: Rng, dtype: WeightType, outFeatures: number, inFeatures: number): AnyWeight {
  if (isBlockType(dtype)) {
    const { bytes, values } = randomBlocks(rng, dtype, outFeatures * inFeatures);
    return { values, pack: (device) => packStored(device, 'weight', bytes, outFeatures, inFeatures, dtype) };
  }
  const { values } = randomTensor(rng, [outFeatures, inFeatures], 1 / Math.sqrt(inFeatures));
  return {
    values: dtype === 'f16' ? roundToF16(values) : values,
    pack: (device) => packLinear(device, 'weight', values, outFeatures, inFeatures, dtype, placeOf(device.caps, dtype, Infinity)),
  };
}
