/** Linear layers with int8 or int4 weights and int8 activations. Called by linear() when the weight is quantised. */
import { defineKernel } from '../gpu/kernel.ts';
import type { Variant } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { ceilDiv } from '../util/math.ts';

export type QuantizedType = 'q8' | 'q4';

/** Weights that share a scale, along K. */
export const BLOCK = 32;

const WG = 64;

export const QUANTIZE_ROWS = defineKernel({
  file: 'linear/quantize_rows.wgsl',
  fragments: () => ['lib/grid.wgsl'],
  bindings: { x: 'read', q: 'write', scales: 'write' },
  params: { rows: 'u32', columns: 'u32', blocks: 'u32' },
  overrides: { WG: 'u32' },
});

const SPEC = {
  bindings: { x: 'read', x_scales: 'read', weight: 'read', weight_scales: 'read', bias: 'read', residual: 'read', out: 'write' },
  params: { m: 'u32', n: 'u32', n_weight: 'u32', blocks: 'u32', out_stride: 'u32', out_column: 'u32' },
} as const;

const fragments = (v: Variant): string[] => [`lib/block_${v.storage ?? 'q8'}.wgsl`, 'lib/activation.wgsl', 'lib/linear_store.wgsl'];

export const LINEAR_BLOCK_TILE = defineKernel({
  ...SPEC,
  file: 'linear/linear_block_tile.wgsl',
  fragments,
  consts: ['TILE_M', 'TILE_N'],
  overrides: { WG: 'u32', ACTIVATION: 'u32', HAS_BIAS: 'bool', HAS_RESIDUAL: 'bool' },
});

export const LINEAR_BLOCK_BROADCAST = defineKernel({
  ...SPEC,
  file: 'linear/linear_block_broadcast.wgsl',
  fragments,
  consts: ['LANES', 'TILE_N'],
  overrides: { ACTIVATION: 'u32', HAS_BIAS: 'bool', HAS_RESIDUAL: 'bool' },
});

export interface PackedBlocks {
  /** [blocks][columns] of 8 (q8) or 4 (q4) words. */
  readonly words: Uint32Array;
  /** [blocks][columns] f32. */
  readonly scales: Float32Array;
}

/**
 * Quantises rows [first, first + count) of a [N, K] matrix symmetrically in blocks of 32 along K: q8 w = q * max|w| / 127, q4 w = (q - 8) * s with
 * s = (the value of largest magnitude) / -8, as GGUF's Q4_0, so that the extreme is exact. Columns are padded to `padded` with zero scales.
 */
export function packBlocks(data: Float32Array, k: number, first: number, count: number, padded: number, type: QuantizedType): PackedBlocks {
  const blocks = ceilDiv(k, BLOCK);
  const wordsPerBlock = type === 'q8' ? 8 : 4;
  const words = new Uint32Array(blocks * padded * wordsPerBlock);
  const scales = new Float32Array(blocks * padded);
  const q = new Int32Array(BLOCK);
  for (let n = 0; n < count; n++) {
    for (let b = 0; b < blocks; b++) {
      const from = (first + n) * k + b * BLOCK;
      const size = Math.min(BLOCK, k - b * BLOCK);
      const at = b * padded + n;
      scales[at] = quantizeBlock(data, from, size, type, q);
      for (let i = 0; i < BLOCK; i++) {
        const word = type === 'q8' ? i >> 2 : i >> 3;
        const shift = type === 'q8' ? (i & 3) * 8 : (i & 3) * 8 + ((i >> 2) & 1) * 4;
        words[at * wordsPerBlock + word]! |= (q[i]! & (type === 'q8' ? 0xff : 0xf)) << shift;
      }
    }
  }
  return { words, scales };
}

/** Fills `q` with the stored integers of one block and returns its scale. */
export function quantizeBlock(data: ArrayLike<number>, from: number, size: number, type: QuantizedType, q: Int32Array): number {
  let extreme = 0;
  for (let i = 0; i < size; i++) if (Math.abs(data[from + i]!) > Math.abs(extreme)) extreme = data[from + i]!;
  const scale = type === 'q8' ? Math.abs(extreme) / 127 : extreme / -8;
  const inverse = scale === 0 ? 0 : 1 / scale;
  const zero = type === 'q8' ? 0 : 8;
  q.fill(zero);
  for (let i = 0; i < size; i++) {
    const value = Math.round(data[from + i]! * inverse) + zero;
    q[i] = type === 'q8' ? value : Math.min(15, Math.max(0, value));
  }
  return scale;
}

export interface QuantizedPart {
  readonly weight: Tensor;
  readonly scales: Tensor;
  readonly count: number;
  readonly padded: number;
}

export interface QuantizedArgs {
  readonly x: Tensor;
  readonly m: number;
  readonly columns: number;
  readonly type: QuantizedType;
  readonly part: QuantizedPart;
  readonly bias: Tensor | undefined;
  readonly residual: Tensor | undefined;
  readonly out: Tensor;
  readonly outStride: number;
  readonly outColumn: number;
  readonly fused: Readonly<Record<'ACTIVATION' | 'HAS_BIAS' | 'HAS_RESIDUAL', number>>;
}

/** Quantises the rows of x and multiplies them by one part of the weight. */
export function quantizedLinear(
  rec: Recorder,
  { x, m, columns, type, part, bias, residual, out, outStride, outColumn, fused }: QuantizedArgs,
): void {
  const { caps, device } = rec;
  const blocks = ceilDiv(columns, BLOCK);
  // Made at the largest size ever asked for, at warm-up, and shared by all layers.
  const q = device.scratch('quantised rows', 'u32', m * blocks * 8);
  const scales = device.scratch('row scales', 'f32', m * blocks * 2);
  const quantizeParams = { rows: m, columns, blocks };
  rec.dispatch(QUANTIZE_ROWS, { overrides: { WG } }, { x, q, scales }, quantizeParams, [ceilDiv(m * blocks, WG)]);
  const { weight, scales: weight_scales, count, padded } = part;
  const bindings = { x: q, x_scales: scales, weight, weight_scales, bias: bias ?? weight_scales, residual: residual ?? weight_scales, out };
  const params = { m, n: count, n_weight: padded, blocks, out_stride: outStride, out_column: outColumn };
  const lanes = caps.subgroupMinSize;
  if (m > 1 && caps.family === 'cpu' && caps.subgroups && lanes === caps.subgroupMaxSize && (lanes === 8 || lanes === 4)) {
    const variant = { storage: type, consts: { LANES: lanes, TILE_N: 4 }, overrides: fused, subgroups: true };
    rec.dispatch(LINEAR_BLOCK_BROADCAST, variant, bindings, params, [ceilDiv(count, lanes * 4), ceilDiv(m, lanes)]);
    return;
  }
  const [wg, tileN] = caps.family === 'cpu' ? [8, 4] : [64, 1];
  const tileM = m === 1 ? 1 : 4;
  const variant = { storage: type, consts: { TILE_M: tileM, TILE_N: tileN }, overrides: { ...fused, WG: wg } };
  rec.dispatch(LINEAR_BLOCK_TILE, variant, bindings, params, [ceilDiv(count, wg * tileN), ceilDiv(m, tileM)]);
}
