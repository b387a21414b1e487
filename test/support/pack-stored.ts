/** Weights in blocks on a device, laid out by the host: what the device makes of a file is compared with them, and kernels are tried on them. */
import type { Device } from '../../engine/gpu/device.ts';
import { emptyLinear } from '../../engine/ops/pack-linear.ts';
import type { LinearWeight } from '../../engine/ops/weight.ts';
import { BLOCK_FORMATS } from '../../engine/weights/block-types.ts';
import type { BlockType } from '../../engine/weights/block-types.ts';
import { packBlocks } from '../reference/pack-blocks.ts';

/** Uploads rows of `inFeatures` values in `bytes` of blocks as they are stored. */
export function packStored(
  device: Device,
  label: string,
  bytes: Uint8Array,
  outFeatures: number,
  inFeatures: number,
  dtype: BlockType,
): LinearWeight {
  const format = BLOCK_FORMATS[dtype];
  const rowBytes = (inFeatures / format.values) * format.bytes;
  const weight = emptyLinear(device, label, outFeatures, inFeatures, dtype);
  for (const { weight: tensor, first, count, padded } of weight.parts) {
    device.write(tensor, packBlocks(format, bytes.subarray(first * rowBytes, (first + count) * rowBytes), count, inFeatures, padded));
  }
  return weight;
}
