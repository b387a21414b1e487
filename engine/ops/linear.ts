import { assert } from '../errors.ts';
import type { Caps } from '../gpu/caps.ts';
import type { Device } from '../gpu/device.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Variant } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { toF16 } from '../util/f16.ts';
import { alignUp, ceilDiv } from '../util/math.ts';
import { BLOCK, packBlocks, quantizedLinear } from './quantized-linear.ts';
import type { QuantizedType } from './quantized-linear.ts';
import { ACTIVATIONS } from './activation.ts';
import type { Activation } from './activation.ts';

/** Storage of a weight matrix: q8 and q4 multiply int8 activations (quantized-linear.ts). f16 is read through unpack2x16float, so it works on adapters without the shader-f16 feature. */
export type WeightType = 'f32' | 'f16' | QuantizedType;

/**
 * A weight matrix [N, K] in the layout the kernels read: `[ceil(K/4)][N padded to 8]` of 4 values along K. Matrices above the
 * adapter's storage-binding limit are split by rows of N into parts.
 */
export interface LinearWeight {
  readonly dtype: WeightType;
  readonly inFeatures: number;
  readonly outFeatures: number;
  readonly parts: readonly LinearPart[];
}

export interface LinearPart {
  readonly weight: Tensor;
  /** Block scales of quantised weights. */
  readonly scales?: Tensor;
  /** First output feature, count, and count padded to 8. */
  readonly first: number;
  readonly count: number;
  readonly padded: number;
}

const COLUMN_STEP = 8;
/** Parts start at multiples of 64 columns, so that a view of the bias starts at a multiple of 256 bytes. */
const PART_STEP = 64;

/**
 * Uploads a row-major [outFeatures, inFeatures] matrix in kernel layout.
 * `data` is a checkpoint's Linear.weight (y = x W^T).
 */
export function packLinear(
  device: Device,
  label: string,
  data: Float32Array,
  outFeatures: number,
  inFeatures: number,
  dtype: WeightType = 'f32',
): LinearWeight {
  assert(data.length === outFeatures * inFeatures, `${label}: ${data.length} weights for [${outFeatures}, ${inFeatures}]`);
  const k4 = ceilDiv(inFeatures, 4);
  const quantized = dtype === 'q8' || dtype === 'q4';
  const bytesPerColumn = quantized ? alignUp(inFeatures, BLOCK) : k4 * 4 * (dtype === 'f16' ? 2 : 4);
  const maxColumns = Math.floor(device.caps.maxBindingBytes / bytesPerColumn / PART_STEP) * PART_STEP;
  const parts: LinearPart[] = [];
  for (let first = 0; first < outFeatures; first += maxColumns) {
    const count = Math.min(maxColumns, outFeatures - first);
    const padded = alignUp(count, COLUMN_STEP);
    if (quantized) {
      const { words, scales } = packBlocks(data, inFeatures, first, count, padded, dtype);
      const blocks = ceilDiv(inFeatures, BLOCK);
      const weight = device.upload(label, 'u32', [blocks, padded, words.length / (blocks * padded)], words);
      parts.push({ weight, scales: device.upload(`${label} scales`, 'f32', [blocks, padded], scales), first, count, padded });
      continue;
    }
    const packed = interleave(data, inFeatures, first, count, padded);
    const weight = device.upload(label, dtype, [k4, padded, 4], dtype === 'f16' ? toF16(packed) : packed);
    parts.push({ weight, first, count, padded });
  }
  return { dtype, inFeatures, outFeatures, parts };
}

/** [N][K] rows first..first+count -> [K/4][padded][4], zeros in the padding. */
function interleave(data: Float32Array, k: number, first: number, count: number, padded: number): Float32Array {
  const out = new Float32Array(ceilDiv(k, 4) * padded * 4);
  for (let n = 0; n < count; n++) {
    const from = (first + n) * k;
    for (let i = 0; i < k; i++) out[((i >> 2) * padded + n) * 4 + (i & 3)] = data[from + i]!;
  }
  return out;
}

const SPEC = {
  bindings: { x: 'read', weight: 'read', bias: 'read', residual: 'read', out: 'write' },
  params: { m: 'u32', n: 'u32', n_weight: 'u32', k4: 'u32', out_stride: 'u32', out_column: 'u32' },
} as const;

/** The fragment that widens four stored weights. */
export function weightFragment(variant: Variant): string {
  return `lib/weight_${variant.storage ?? 'f32'}.wgsl`;
}

export const LINEAR_TILE = defineKernel({
  ...SPEC,
  file: 'linear/linear_tile.wgsl',
  fragments: (v) => [weightFragment(v), 'lib/activation.wgsl', 'lib/linear_store.wgsl'],
  consts: ['TILE_M', 'TILE_N'],
  overrides: { WG: 'u32', ACTIVATION: 'u32', HAS_BIAS: 'bool', HAS_RESIDUAL: 'bool' },
});

export const LINEAR_BROADCAST = defineKernel({
  ...SPEC,
  file: 'linear/linear_broadcast.wgsl',
  fragments: (v) => [weightFragment(v), 'lib/activation.wgsl', 'lib/linear_store.wgsl'],
  consts: ['LANES', 'TILE_N', 'BLOCKS'],
  overrides: { ACTIVATION: 'u32', HAS_BIAS: 'bool', HAS_RESIDUAL: 'bool' },
});

export const LINEAR_QUAD = defineKernel({
  ...SPEC,
  file: 'linear/linear_quad.wgsl',
  fragments: (v) => [weightFragment(v), 'lib/quad.wgsl', 'lib/activation.wgsl', 'lib/linear_store.wgsl'],
  consts: ['ROWS'],
  overrides: { ACTIVATION: 'u32', HAS_BIAS: 'bool', HAS_RESIDUAL: 'bool' },
});

/** True on software adapters with SIMD registers of 4 (SwiftShader), which have kernels of their own: they run the tiles of the others 6-9x slower. */
export function isQuad({ family, subgroups, subgroupMinSize, subgroupMaxSize }: Caps): boolean {
  return family === 'cpu' && subgroups && subgroupMinSize === 4 && subgroupMaxSize === 4;
}

/**
 * Shapes measured on lavapipe, 1024 x 1024 (test/bench/SPEED.md): one row 1x4 of 8 lanes; more rows 8x4 (38 GFLOP/s) or 16x4 (10 to 17 % more) by broadcast or, without
 * subgroups, 4x4 (14 GFLOP/s). On a GPU one 64-wide workgroup a tile.
 */
const CPU = { wg: 8, tileN: 4, tileM: 4 } as const;
/** Columns of a workgroup of LINEAR_QUAD. */
const QUAD_COLUMNS = 16;
const GPU = { wg: 64, tileN: 2, tileM: 4 } as const;

/** Blocks of rows a workgroup of LINEAR_BROADCAST takes: two, where the last one does not stay half empty for it. */
function rowBlocks(rows: number, lanes: number): 1 | 2 {
  const blocks = ceilDiv(rows, lanes);
  return blocks % 2 === 0 || blocks > 8 ? 2 : 1;
}

export interface LinearArgs {
  /** [M, K] f32, K a multiple of 4 (pad the workspace's columns with zeros otherwise). */
  readonly x: Tensor;
  readonly weight: LinearWeight;
  /** [N] f32. */
  readonly bias?: Tensor | undefined;
  /** [M, N] f32, added after the activation; a tensor other than `out`. */
  readonly residual?: Tensor | undefined;
  /** [M, N] f32, or wider with `outColumn`. */
  readonly out: Tensor;
  readonly activation?: Activation;
  /** Rows to compute; default all of x. */
  readonly rows?: number;
  /** First column of `out` that is written (and of `residual` that is read); default 0. */
  readonly outColumn?: number;
}

/** out = act(x W^T + bias) + residual. The sum over K runs in the same order for every M, so rows do not depend on the batch. */
export function linear(rec: Recorder, { x, weight, bias, residual, out, activation = 'none', rows, outColumn = 0 }: LinearArgs): void {
  const m = rows ?? x.shape[0] ?? 0;
  const k = x.shape.at(-1) ?? 0;
  assert(k % 4 === 0 && k >= weight.inFeatures && k - weight.inFeatures < 4, `linear: x has ${k} columns, weight ${weight.inFeatures}`);
  const outStride = out.shape.at(-1) ?? 0;
  assert(outColumn + weight.outFeatures <= outStride, `linear: ${weight.outFeatures} outputs at column ${outColumn} of ${outStride}`);
  const { caps } = rec;
  const lanes = caps.subgroupMinSize;
  const broadcast = m > 1 && caps.family === 'cpu' && caps.subgroups && lanes === caps.subgroupMaxSize && lanes === 8;
  const shape = caps.family === 'cpu' ? CPU : GPU;
  const tileM = m === 1 ? 1 : shape.tileM;
  const fused = { ACTIVATION: ACTIVATIONS[activation], HAS_BIAS: bias ? 1 : 0, HAS_RESIDUAL: residual ? 1 : 0 };
  for (const part of weight.parts) {
    const column = outColumn + part.first;
    const partBias = bias && part.first > 0 ? bias.reshape([bias.size]).rows(part.first, bias.size) : bias;
    if (weight.dtype === 'q8' || weight.dtype === 'q4') {
      const quantizedPart = { ...part, scales: part.scales! };
      const columns = { columns: k, outStride, outColumn: column };
      quantizedLinear(rec, { x, m, type: weight.dtype, part: quantizedPart, bias: partBias, residual, out, fused, ...columns });
      continue;
    }
    const bindings = { x, weight: part.weight, bias: partBias ?? x, residual: residual ?? x, out };
    const params = { m, n: part.count, n_weight: part.padded, k4: k / 4, out_stride: outStride, out_column: column };
    if (isQuad(caps)) {
      const rows = m === 1 ? 1 : m > 4 ? 16 : 4;
      const variant = { storage: weight.dtype, consts: { ROWS: rows }, overrides: fused, subgroups: true };
      rec.dispatch(LINEAR_QUAD, variant, bindings, params, [ceilDiv(part.count, QUAD_COLUMNS), ceilDiv(m, rows)]);
    } else if (broadcast) {
      const blocks = rowBlocks(m, lanes);
      const variant = {
        storage: weight.dtype,
        consts: { LANES: lanes, TILE_N: CPU.tileN, BLOCKS: blocks },
        overrides: fused,
        subgroups: true,
      };
      const groups = [ceilDiv(part.count, lanes * CPU.tileN), ceilDiv(m, lanes * blocks)];
      rec.dispatch(LINEAR_BROADCAST, variant, bindings, params, groups);
    } else {
      const variant = { storage: weight.dtype, consts: { TILE_M: tileM, TILE_N: shape.tileN }, overrides: { ...fused, WG: shape.wg } };
      const groups = [ceilDiv(part.count, shape.wg * shape.tileN), ceilDiv(m, tileM)];
      rec.dispatch(LINEAR_TILE, variant, bindings, params, groups);
    }
  }
}
