/** Weights in blocks on a device, laid out by the host: what the device makes of a file is compared with them, and kernels are tried on them. */
import type { Device } from '../../engine/gpu/device.ts';
import { emptyLinear } from '../../engine/ops/pack-linear.ts';
import { GROUP, placeOf } from '../../engine/ops/weight-place.ts';
import type { LinearWeight } from '../../engine/ops/weight.ts';
import { BLOCK, rowWords } from '../../engine/weights/block-format.ts';
import { BLOCK_FORMATS } from '../../engine/weights/block-types.ts';
import type { BlockType } from '../../engine/weights/block-types.ts';
import { packBlocks } from '../reference/pack-blocks.ts';

/** Uploads rows of `inFeatures` values in `bytes` of blocks as they are stored, by default to where the adapter has large weights. */
export function packStored(
  device: Device,
  label: string,
  bytes: Uint8Array,
  outFeatures: number,
  inFeatures: number,
  dtype: BlockType,
  place = placeOf(device.caps, dtype, Infinity),
): LinearWeight {
  const format = BLOCK_FORMATS[dtype];
  const rowBytes = (inFeatures / format.values) * format.bytes;
  const weight = emptyLinear(device, label, outFeatures, inFeatures, dtype, place);
  const { all: words } = rowWords(format, inFeatures / BLOCK);
  for (const { weight: tensor, place, first, count, padded } of weight.parts) {
    const rows = packBlocks(format, bytes.subarray(first * rowBytes, (first + count) * rowBytes), count, inFeatures, padded);
    if (place === 'buffer') {
      device.write(tensor, rows);
      continue;
    }
    const grouped = device.upload('grouped', 'u32', [rows.length], inGroups(rows, words, padded));
    const rec = device.record('fill');
    rec.fill(grouped, tensor);
    rec.submit();
    device.destroy(grouped);
  }
  return weight;
}

/** [words][padded] -> [padded / GROUP][words][GROUP], as words lie in a texture. */
function inGroups(rows: Uint32Array, words: number, padded: number): Uint32Array {
  return rows.map((_, i) => {
    const group = Math.floor(i / (words * GROUP));
    return rows[(Math.floor(i / GROUP) % words) * padded + group * GROUP + (i % GROUP)]!;
  });
}
