/**
 * Products of many rows with few inputs, fused with the norm before them and the gate after them, in one dispatch where the adapter has a
 * kernel for that.
 */
import type { Caps } from '../gpu/caps.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { isBlockType } from '../weights/storage.ts';
import { ceilDiv } from '../util/math.ts';
import { ACTIVATIONS } from './activation.ts';
import type { Activation } from './activation.ts';
import { rowBlocks } from './linear.ts';
import { reduceVariant } from './reduce.ts';
import { avoids } from './replaceable.ts';
import { hasShuffles } from './weight-place.ts';
import { weightFragments, weightVariant } from './weight.ts';
import type { LinearPart, LinearWeight } from './weight.ts';

export const LINEAR_NORMED = defineKernel({
  file: 'linear/linear_normed.wgsl',
  fragments: (v) => [...weightFragments(v, 4), 'lib/reduce_lanes.wgsl', 'lib/held_rows.wgsl', 'lib/activation.wgsl'],
  consts: ['LANES'],
  bindings: { x: 'read', norm: 'read', weight: 'read', bias: 'read', out: 'write' },
  params: {
    m: 'u32',
    n: 'u32',
    n_weight: 'u32',
    k4: 'u32',
    out_stride: 'u32',
    out_column: 'u32',
    bias_column: 'u32',
    tiles: 'u32',
    gated: 'u32',
    eps: 'f32',
  },
  overrides: { ACTIVATION: 'u32', HAS_BIAS: 'bool', HAS_NORM: 'bool' },
});

/** Least number of rows; fewer have kernels of their own (few-rows.ts). */
const LEAST_ROWS = 3;
/**
 * Quads of a row that an invocation holds. Dawn zeroes each of them first, which takes the driver's compiler quadratic time: 1.3 s for 144.
 */
const HELD = 64;
/** Inputs must be a multiple of this, which a subgroup of 8 covers in whole turns. */
const TURN = 32;
/** Least number of workgroups of a product, for the few cores of a software adapter. More would only norm the rows more often. */
const LEAST_WORKGROUPS = 8;
/** Columns of a tile. */
const TILE_COLUMNS = 64;

export interface ManyRowsArgs {
  /** [T, C] f32. */
  readonly x: Tensor;
  /** [C] f32; absent = x is read as it is. */
  readonly norm: Tensor | undefined;
  readonly eps: number;
  readonly weight: LinearWeight;
  readonly bias?: Tensor | undefined;
  /** Present if the weight is gates and ups. */
  readonly activation?: Activation | undefined;
  readonly out: Tensor;
  readonly rows: number;
}

/**
 * Whether linearNormed has a kernel for this many rows. On lavapipe norm, gates and ups and their product take 0.70 of the processor time
 * of three kernels with 8 rows of 256 by 1,408, and 0.84 with 32 and with 256.
 */
export function takesMany(caps: Caps, { x, weight, rows }: Pick<ManyRowsArgs, 'x' | 'weight' | 'rows'>): boolean {
  const columns = x.shape.at(-1) ?? 0;
  // Squares must be added in the order of rmsNorm's subgroup.
  const alike = hasShuffles(caps) && reduceVariant(caps, columns).variant.subgroups === true;
  // Quantised weights in textures have a kernel of their own for many rows.
  const floats = weight.parts.every(({ dtype }) => !isBlockType(dtype));
  return alike && floats && rows >= LEAST_ROWS && columns % TURN === 0 && columns <= 4 * HELD && !avoids(caps, 'linear_normed');
}

/** Does what normedLinear or, with an activation, gatedLinear does, with the bits of separate kernels. */
export function linearNormed(rec: Recorder, { x, norm, eps, weight, bias, activation, out, rows }: ManyRowsArgs): void {
  const columns = x.shape.at(-1) ?? 0;
  // Without gates nothing reads ACTIVATION: with the usual one there, both cases share a pipeline.
  const overrides = { ACTIVATION: ACTIVATIONS[activation ?? 'silu'], HAS_BIAS: bias ? 1 : 0, HAS_NORM: norm ? 1 : 0 };
  for (const part of weight.parts) {
    const { first, count, padded } = part;
    const { tiles, workgroups, variant } = manyRows(rec.caps, part, rows);
    const params = {
      m: rows,
      n: count,
      n_weight: padded,
      k4: columns / 4,
      out_stride: out.shape.at(-1) ?? 0,
      out_column: first,
      bias_column: first,
      tiles,
      gated: activation === undefined ? 0 : 1,
      eps,
    };
    const bindings = { x, norm: norm ?? x, weight: part.weight, bias: bias ?? x, out };
    rec.dispatch(LINEAR_NORMED, { ...variant, overrides }, bindings, params, workgroups);
  }
}

/** Variant and grid of a kernel that holds its rows, and the number of tiles of TILE_COLUMNS per workgroup. */
export function manyRows(caps: Caps, part: LinearPart, rows: number) {
  const lanes = caps.subgroupMinSize;
  const blocks = rowBlocks(part.dtype, rows, lanes);
  const down = ceilDiv(rows, lanes * blocks);
  const all = ceilDiv(part.count, TILE_COLUMNS);
  const tiles = ceilDiv(all, Math.min(all, ceilDiv(LEAST_WORKGROUPS, down)));
  const { consts, ...stored } = weightVariant(part);
  const variant = { ...stored, consts: { LANES: lanes, ROW_BLOCKS: blocks, HELD, ...consts }, subgroups: true };
  return { tiles, workgroups: [ceilDiv(all, tiles), down], variant };
}
