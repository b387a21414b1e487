/** Puts weight matrices on the device, in the layouts of the linear kernels. */
import { assert } from '../errors.ts';
import type { Device } from '../gpu/device.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { BLOCK, rowWords } from '../weights/block-format.ts';
import { BLOCK_FORMATS } from '../weights/block-types.ts';
import type { BlockType } from '../weights/block-types.ts';
import { toF16 } from '../util/f16.ts';
import { alignUp, ceilDiv } from '../util/math.ts';
import { isBlockType } from '../weights/storage.ts';
import type { FloatType } from '../weights/storage.ts';
import { inTexels } from './texels.ts';
import { GROUP, mostBytes, placeOf } from './weight-place.ts';
import type { WordPlace } from './weight-place.ts';
import type { LinearPart, LinearWeight } from './weight.ts';

/** Columns that kernels read together. */
const COLUMN_STEP = 8;
/** Parts end at multiples of this many columns, so that a workgroup of most adapters is full. */
const PART_STEP = 64;

/**
 * Uploads a row-major [outFeatures, inFeatures] matrix in kernel layout. `data` is a checkpoint's Linear.weight (y = x W^T). Of floats only
 * f16 may lie in a texture, but for convolutions (`convPlace`) and recurrent weights (`lstmPlace`).
 */
export function packLinear(
  device: Device,
  label: string,
  data: Float32Array,
  outFeatures: number,
  inFeatures: number,
  dtype: FloatType = 'f32',
  place: WordPlace = 'buffer',
): LinearWeight {
  assert(data.length === outFeatures * inFeatures, `${label}: ${data.length} weights for [${outFeatures}, ${inFeatures}]`);
  const k4 = ceilDiv(inFeatures, 4);
  const parts = cut(device, outFeatures, wordsOfRow(dtype, inFeatures) * 4, place).map(({ first, count, padded }): LinearPart => {
    const packed = interleave(data, inFeatures, first, count, padded, place === 'texture' ? GROUP : padded);
    const tensor = device.upload(label, dtype, [k4, padded, 4], dtype === 'f16' ? toF16(packed) : packed);
    return {
      dtype,
      place,
      weight: place === 'texture' ? toTexture(device, tensor, [wordsOfRow(dtype, inFeatures), padded]) : tensor,
      first,
      count,
      padded,
    };
  });
  return { inFeatures, outFeatures, parts };
}

function toTexture(device: Device, tensor: Tensor, shape: readonly number[]): Tensor {
  const texels = inTexels(device, tensor, shape);
  device.destroy(tensor);
  return texels;
}

/**
 * Allocates a matrix [outFeatures, inFeatures] of zeros, floats or quantised blocks, for WeightFill to fill on the device. `place` defaults
 * to placeOf's choice.
 */
export function emptyLinear(
  device: Device,
  label: string,
  outFeatures: number,
  inFeatures: number,
  dtype: FloatType | BlockType,
  place = placeOf(device.caps, dtype, outFeatures * wordsOfRow(dtype, inFeatures) * 4),
): LinearWeight {
  const words = wordsOfRow(dtype, inFeatures);
  const parts = cut(device, outFeatures, words * 4, place).map(({ first, count, padded }): LinearPart => {
    const inWords = [words, padded];
    const shape = isBlockType(dtype) ? inWords : [ceilDiv(inFeatures, 4), padded, 4];
    const weight = place === 'texture' ? device.texels(label, inWords) : device.tensor(label, isBlockType(dtype) ? 'u32' : dtype, shape);
    return { dtype, place, weight, first, count, padded };
  });
  return { inFeatures, outFeatures, parts };
}

/** Combines matrices that read the same input into one, stacked by output features. */
export function stackLinear(weights: readonly LinearWeight[]): LinearWeight {
  const [{ inFeatures }] = weights as [LinearWeight];
  const parts: LinearPart[] = [];
  let outFeatures = 0;
  for (const weight of weights) {
    const above = outFeatures;
    parts.push(...weight.parts.map((part) => ({ ...part, first: above + part.first })));
    outFeatures += weight.outFeatures;
  }
  return { inFeatures, outFeatures, parts };
}

function wordsOfRow(dtype: FloatType | BlockType, inFeatures: number): number {
  return isBlockType(dtype) ? rowWords(BLOCK_FORMATS[dtype], inFeatures / BLOCK).all : ceilDiv(inFeatures, 4) * (dtype === 'f16' ? 2 : 4);
}

/** Cuts the columns of a product into parts that the adapter can bind. */
function cut(
  { caps }: Device,
  columns: number,
  bytesPerColumn: number,
  place: WordPlace = 'buffer',
): Pick<LinearPart, 'first' | 'count' | 'padded'>[] {
  const most = Math.floor(mostBytes(caps, place) / bytesPerColumn / PART_STEP) * PART_STEP;
  return Array.from({ length: ceilDiv(columns, most) }, (_, i) => {
    const count = Math.min(most, columns - i * most);
    return { first: i * most, count, padded: alignUp(count, place === 'texture' ? GROUP : COLUMN_STEP) };
  });
}

/** [N][K] rows first..first+count -> [padded / beside][K/4][beside][4], zeros in the padding. */
function interleave(data: Float32Array, k: number, first: number, count: number, padded: number, beside: number): Float32Array {
  const k4 = ceilDiv(k, 4);
  const out = new Float32Array(k4 * padded * 4);
  for (let n = 0; n < count; n++) {
    const from = (first + n) * k;
    const group = Math.floor(n / beside) * k4;
    for (let i = 0; i < k; i++) out[((group + (i >> 2)) * beside + (n % beside)) * 4 + (i & 3)] = data[from + i]!;
  }
  return out;
}
