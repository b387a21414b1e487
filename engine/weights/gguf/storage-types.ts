/**
 * The storage types of GGUF, dequantised bit for bit as in PyPI `gguf` (gguf/quants.py): each product and each sum is rounded to f32. A
 * block is `values` numbers in `bytes` bytes.
 */
import { fromBF16, fromF16 } from '../../util/f16.ts';
import { widenBlocks } from '../block-format.ts';
import { BLOCK_FORMATS } from '../block-types.ts';
import type { BlockType } from '../block-types.ts';
import { NVFP4_BYTES, widenUnscaled } from './nvfp4.ts';

/** A storage type. */
export interface StorageType {
  readonly name: string;
  readonly values: number;
  readonly bytes: number;
  /** Dequantises whole blocks into `out`. */
  readonly widen: (bytes: Uint8Array, out: Float32Array) => void;
  /** The block type; absent = numbers that are stored one by one. */
  readonly blocks?: BlockType;
}

function inBlocks(blocks: BlockType): StorageType {
  const format = BLOCK_FORMATS[blocks];
  const { name, values, bytes } = format;
  return { name, values, bytes, blocks, widen: (stored, out) => widenBlocks(format, stored, out) };
}

/** Storage types by their id in a file (ggml_type in ggml.h). */
export const STORAGE_TYPES: ReadonlyMap<number, StorageType> = new Map([
  [0, { name: 'F32', values: 1, bytes: 4, widen: (bytes, out) => out.set(new Float32Array(bytes.buffer, bytes.byteOffset, out.length)) }],
  [1, { name: 'F16', values: 1, bytes: 2, widen: (bytes, out) => out.set(fromF16(halves(bytes))) }],
  [2, inBlocks('Q4_0')],
  [3, inBlocks('Q4_1')],
  [6, inBlocks('Q5_0')],
  [7, inBlocks('Q5_1')],
  [8, inBlocks('Q8_0')],
  [10, inBlocks('Q2_K')],
  [11, inBlocks('Q3_K')],
  [12, inBlocks('Q4_K')],
  [13, inBlocks('Q5_K')],
  [14, inBlocks('Q6_K')],
  [16, inBlocks('IQ2_XXS')],
  [17, inBlocks('IQ2_XS')],
  [18, inBlocks('IQ3_XXS')],
  [19, inBlocks('IQ1_S')],
  [20, inBlocks('IQ4_NL')],
  [21, inBlocks('IQ3_S')],
  [22, inBlocks('IQ2_S')],
  [23, inBlocks('IQ4_XS')],
  [29, inBlocks('IQ1_M')],
  [30, { name: 'BF16', values: 1, bytes: 2, widen: (bytes, out) => out.set(fromBF16(halves(bytes))) }],
  [34, inBlocks('TQ1_0')],
  [35, inBlocks('TQ2_0')],
  [39, inBlocks('MXFP4')],
  [40, { name: 'NVFP4', values: 64, bytes: NVFP4_BYTES, blocks: 'NVFP4', widen: widenUnscaled }],
]);

/** Types that files may have but that are not read, by id. */
export const OTHER_TYPES: ReadonlyMap<number, string> = new Map([
  [9, 'Q8_1'], [15, 'Q8_K'], [24, 'I8'], [25, 'I16'], [26, 'I32'], [27, 'I64'], [28, 'F64'], [41, 'Q1_0'], [42, 'Q2_0'],
]); // prettier-ignore

function halves(bytes: Uint8Array): Uint16Array {
  return new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.length / 2);
}
