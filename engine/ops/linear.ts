import { assert } from '../errors.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { BindingsOf, ParamsOf, Variant } from '../gpu/kernel.ts';
import type { Device } from '../gpu/device.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import type { Trial, TrialDevice } from '../gpu/tunable.ts';
import { BLOCK } from '../weights/block-format.ts';
import type { BlockFormat } from '../weights/block-format.ts';
import { BLOCK_FORMATS } from '../weights/block-types.ts';
import { isBlockType } from '../weights/storage.ts';
import type { WeightType } from '../weights/storage.ts';
import { ceilDiv } from '../util/math.ts';
import { createRng } from '../util/rng.ts';
import { ACTIVATIONS } from './activation.ts';
import type { Activation } from './activation.ts';
import { CPU_TILE, fewRowsFragments, foldConst, foldFragment, forGPU, simdRows, splitRows, takesRows, tileOn } from './few-rows.ts';
import { multipliesMatrices, multiplyMatrices } from './linear-matrix.ts';
import type { MatrixTile } from './linear-matrix.ts';
import { productRows, productShapes } from './product-shapes.ts';
import type { ProductShape } from './product-shapes.ts';
import { avoids } from './replaceable.ts';
import { reserveTexels, texelsOf } from './texels.ts';
import { TEXEL_STEP, hasShuffles, isQuad, takesTexels } from './weight-place.ts';
import { floatFragment, weightFragments, weightVariant } from './weight.ts';
import type { LinearWeight, StoredAs } from './weight.ts';

const SPEC = {
  bindings: { x: 'read', weight: 'read', bias: 'read', residual: 'read', out: 'write' },
  params: { m: 'u32', n: 'u32', n_weight: 'u32', k4: 'u32', out_stride: 'u32', out_column: 'u32', bias_column: 'u32' },
  overrides: { ACTIVATION: 'u32', HAS_BIAS: 'bool', HAS_RESIDUAL: 'bool' },
} as const;

export const LINEAR_TILE = defineKernel({
  ...SPEC,
  file: 'linear/linear_tile.wgsl',
  fragments: (v) => [...weightFragments(v), 'lib/activation.wgsl', 'lib/linear_store.wgsl'],
  consts: ['TILE_M', 'TILE_N'],
  overrides: { WG: 'u32', ...SPEC.overrides },
});

export const LINEAR_SPLIT = defineKernel({
  ...SPEC,
  file: 'linear/linear_split.wgsl',
  fragments: (v) => [...fewRowsFragments(v), 'lib/activation.wgsl', 'lib/linear_store.wgsl'],
  consts: ['LANES', 'TILE_N'],
});

export const LINEAR_BROADCAST = defineKernel({
  ...SPEC,
  file: 'linear/linear_broadcast.wgsl',
  fragments: (v) => [...weightFragments(v, 4), 'lib/activation.wgsl', 'lib/linear_store.wgsl'],
  consts: ['LANES', 'TILE_N', 'ROW_BLOCKS'],
});

export const LINEAR_TEXELS = defineKernel({
  ...SPEC,
  bindings: { ...SPEC.bindings, x: 'f32 texels' },
  file: 'linear/linear_texels.wgsl',
  fragments: (v) => [...weightFragments(v, 4), foldFragment(v), 'lib/activation.wgsl', 'lib/linear_store.wgsl'],
  consts: ['LANES', 'TILE_N', 'ROW_BLOCKS'],
});

export const LINEAR_ROWS = defineKernel({
  ...SPEC,
  file: 'linear/linear_rows.wgsl',
  fragments: (v) => [...fewRowsFragments(v), 'lib/activation.wgsl', 'lib/linear_store.wgsl'],
  consts: ['LANES', 'TILE_N', 'ROWS'],
});

export const LINEAR_QUAD = defineKernel({
  ...SPEC,
  file: 'linear/linear_quad.wgsl',
  fragments: (v) => [...quadFragments(v), 'lib/quad.wgsl', 'lib/activation.wgsl', 'lib/linear_store.wgsl'],
  consts: ['ROWS'],
});

export const LINEAR_BLOCK = defineKernel({
  ...SPEC,
  file: 'linear/linear_block.wgsl',
  fragments: (v) => [...weightFragments(v), 'lib/chunks.wgsl', 'lib/activation.wgsl', 'lib/linear_store.wgsl'],
  consts: ['TILE_M', 'TILE_N', 'SIDE'],
});

/** The fragments of LINEAR_QUAD's sums. */
function quadFragments(v: Variant): readonly string[] {
  const isFloat = !isBlockType((v.storage ?? 'f32') as WeightType);
  return isFloat ? [floatFragment(v, 4), 'lib/quad_floats.wgsl'] : [...weightFragments(v), 'lib/quad_blocks.wgsl'];
}

/** With at least this many rows a product takes so long that a few repetitions measure it. */
const LONG_ROWS = 128;
/** With at least this many columns, a product of one row by quantised weights takes 12 columns per invocation instead of 8. */
export const WIDE = 3072;
/** Columns per workgroup of LINEAR_QUAD: `many` with 16 rows of float weights, else `few`. */
const QUAD_COLUMNS = { few: 16, many: 32 } as const;
/** First row counts of the ranges of many rows, largest first: within a range all row counts take the same kernels, on any adapter. */
export const MANY_ROWS = [129, 65] as const;
/** Blocks of rows per workgroup of LINEAR_TEXELS: with three, and quantised weights, registers spill. */
const TEXEL_BLOCKS = { floats: 3, blocks: 2 } as const;
/** Texels of x that LINEAR_TEXELS reads in one dispatch (1 MiB), or TEXEL_STEP rows where those are more. */
const TEXELS = 2 ** 16;

/**
 * Blocks of rows per workgroup of LINEAR_BROADCAST: two where that leaves the last workgroup full, or where there are so many that it does
 * not matter.
 */
export function rowBlocks(dtype: WeightType, rows: number, lanes: number): 1 | 2 {
  const blocks = ceilDiv(rows, lanes);
  return !isBlockType(dtype) && (blocks % 2 === 0 || blocks > 8) ? 2 : 1;
}

/**
 * Columns per invocation in products of one row: the more there are, the more of them share a load of x. Twelve suit matrices so wide that
 * every core still gets some, and types with few bit planes; others spill registers.
 */
function rowColumns({ dtype, place }: StoredAs, columns: number): 8 | 12 {
  if (!isBlockType(dtype) || place === 'texture' || columns < WIDE) return 8;
  const { high, group, table }: BlockFormat = BLOCK_FORMATS[dtype];
  return high <= 1 && group === BLOCK && !table ? 12 : 8;
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
  /** The first row of prompts: from there on rows take subgroup matrices where the adapter has them (linear-matrix.ts); default none. */
  readonly promptFrom?: number | undefined;
  /** The tile of subgroup matrices, for tests and the self-test; default: matrixTile. */
  readonly tile?: MatrixTile | undefined;
  /**
   * Whether several rows of float weights, too, read x from a texture: faster on lavapipe, but one more pipeline to compile at every start.
   */
  readonly texels?: boolean;
}

/** out = act(x W^T + bias) + residual. The sum over K runs in the same order for every M, so rows do not depend on the batch. */
export function linear(
  rec: Recorder,
  { x, weight, bias, residual, out, activation = 'none', rows, outColumn = 0, promptFrom = Infinity, tile, texels = false }: LinearArgs,
): void {
  const m = rows ?? x.shape[0] ?? 0;
  if (m === 0) return;
  const k = x.shape.at(-1) ?? 0;
  assert(k % 4 === 0 && k >= weight.inFeatures && k - weight.inFeatures < 4, `linear: x has ${k} columns, weight ${weight.inFeatures}`);
  const outStride = out.shape.at(-1) ?? 0;
  assert(outColumn + weight.outFeatures <= outStride, `linear: ${weight.outFeatures} outputs at column ${outColumn} of ${outStride}`);
  const overrides = { ACTIVATION: ACTIVATIONS[activation], HAS_BIAS: bias ? 1 : 0, HAS_RESIDUAL: residual ? 1 : 0 };
  for (const part of weight.parts) {
    const { first, count, padded } = part;
    const bindings = { x, weight: part.weight, bias: bias ?? x, residual: residual ?? x, out };
    const params = { m, n: count, n_weight: padded, k4: k / 4, out_stride: outStride, out_column: outColumn + first, bias_column: first };
    const apart = multipliesMatrices(rec.caps, part) ? Math.min(promptFrom, m) : m;
    if (apart > 0) multiply(rec, part, overrides, bindings, { ...params, m: apart }, texels);
    if (apart < m) multiplyMatrices(rec, part, overrides, bindings, params, apart, tile);
  }
}

type Overrides = Readonly<Record<keyof typeof SPEC.overrides, number>>;
type Bindings = BindingsOf<typeof LINEAR_TILE.spec>;
type Params = ParamsOf<typeof LINEAR_TILE.spec>;

/** Chooses the kernel for a part of the weight. */
function multiply(rec: Recorder, stored: StoredAs, overrides: Overrides, bindings: Bindings, params: Params, texels: boolean): void {
  const { caps } = rec;
  const { m, n, k4 } = params;
  const lanes = caps.subgroupMinSize;
  const variant = (own: Readonly<Record<string, number>>, quads = 1) => {
    const { consts, ...rest } = weightVariant(stored, quads);
    return { ...rest, consts: { ...own, ...consts }, overrides };
  };
  const inBinding = stored.place === 'buffer' || isBlockType(stored.dtype);
  if (isQuad(caps) && inBinding && !avoids(caps, 'linear_quad')) {
    const rows = m === 1 ? 1 : m > 4 ? 16 : 4;
    const columns = rows === 16 && !isBlockType(stored.dtype) ? QUAD_COLUMNS.many : QUAD_COLUMNS.few;
    rec.dispatch(LINEAR_QUAD, { ...variant({ ROWS: rows }), subgroups: true }, bindings, params, [ceilDiv(n, columns), ceilDiv(m, rows)]);
  } else if (takesRows(caps, m, k4)) {
    const few = simdRows(caps, stored, m, k4, m === 1 ? rowColumns(stored, n) : CPU_TILE.tileN);
    rec.dispatch(LINEAR_ROWS, { ...few.variant, overrides }, bindings, params, [ceilDiv(n, few.columns), 1]);
  } else if (m > 1 && (texels || isBlockType(stored.dtype)) && takesTexels(caps, k4)) {
    multiplyTexels(rec, stored, overrides, bindings, params);
  } else if (hasShuffles(caps) && m > 1 && !avoids(caps, 'linear_broadcast')) {
    const blocks = rowBlocks(stored.dtype, m, lanes);
    const chosen = variant({ LANES: lanes, TILE_N: CPU_TILE.tileN, ROW_BLOCKS: blocks });
    rec.dispatch(LINEAR_BROADCAST, { ...chosen, subgroups: true }, bindings, params, [
      ceilDiv(n, lanes * CPU_TILE.tileN),
      ceilDiv(m, lanes * blocks),
    ]);
  } else if (!forGPU(caps)) {
    const { wg, tileN } = tileOn(caps);
    const tileM = m === 1 ? 1 : CPU_TILE.tileM;
    const chosen = variant({ TILE_M: tileM, TILE_N: tileN });
    rec.dispatch(LINEAR_TILE, { ...chosen, overrides: { ...overrides, WG: wg } }, bindings, params, [
      ceilDiv(n, wg * tileN),
      ceilDiv(m, tileM),
    ]);
  } else {
    multiplyOnGPU(rec, stored, overrides, bindings, params);
  }
}

/** Allocates the texture that products of many rows copy x to; it grows with longer rows. */
export function reserveFactors(device: Device): void {
  if (takesTexels(device.caps, 1)) reserveTexels(device, FACTORS, 4 * TEXELS, 'f32');
}

/** Label of the texture with copies of x. */
const FACTORS = 'factors in texels';

/** Records LINEAR_TEXELS, in several dispatches where x is larger than the texture. */
function multiplyTexels(rec: Recorder, stored: StoredAs, overrides: Overrides, bindings: Bindings, params: Params): void {
  const { m, n, k4, out_stride, out_column } = params;
  const lanes = rec.caps.subgroupMinSize;
  const blocks = isBlockType(stored.dtype) ? (m <= lanes ? 1 : TEXEL_BLOCKS.blocks) : TEXEL_BLOCKS.floats;
  const { consts, ...rest } = weightVariant(stored);
  const own = { LANES: lanes, TILE_N: CPU_TILE.tileN, ROW_BLOCKS: blocks, ...foldConst(rec.caps, stored, k4) };
  const variant = { ...rest, consts: { ...own, ...consts }, overrides, subgroups: true };
  const most = Math.max(1, Math.floor(TEXELS / k4 / TEXEL_STEP)) * TEXEL_STEP;
  for (let first = 0; first < m; first += most) {
    const rows = Math.min(most, m - first);
    const x = texelsOf(rec, FACTORS, bindings.x.rows(first, first + rows), rows, { least: 4 * TEXELS, dtype: 'f32' });
    const grid = [ceilDiv(n, lanes * CPU_TILE.tileN), ceilDiv(rows, lanes * blocks)];
    rec.dispatch(LINEAR_TEXELS, variant, { ...bindings, x }, { ...params, m: rows, out_column: out_column + first * out_stride }, grid);
  }
}

/** The key under which the choice among productShapes is kept; products with equal keys share it. */
export function productKey(dtype: WeightType, rows: number, k: number, n: number): string {
  return `product ${dtype}, ${productRows(rows)} x ${k} x ${n}`;
}

/** Multiplies with the shape that was measured to be the fastest for products of this key, or with the default. */
function multiplyOnGPU(rec: Recorder, stored: StoredAs, overrides: Overrides, bindings: Bindings, params: Params): void {
  const { m, n, k4 } = params;
  const shapes = productShapes(m, k4);
  const key = productKey(stored.dtype, m, 4 * k4, n);
  const dispatch = (on: Recorder, name: string | undefined, given: Bindings, sizes: Params): void =>
    dispatchShape(on, shapes.find((shape) => shape.name === name) ?? shapes[0], stored, overrides, given, sizes);
  if (rec.mode === 'dry') {
    const rows = productRows(m);
    const make = (device: TrialDevice, weights: readonly Tensor[]): Trial<Recorder> => {
      const { out, ...read } = trialTensors(device, rows, 4 * k4, params.out_stride, overrides.HAS_RESIDUAL === 1);
      const record = (trial: Recorder, name: string, turn: number): void =>
        dispatch(trial, name, { ...bindings, ...read, out, weight: weights[turn % weights.length]! }, { ...params, m: rows });
      return { record, out, tensors: [...new Set([read.x, read.residual, out])] };
    };
    const repeats = rows >= LONG_ROWS ? 4 : 16;
    rec.device.tuning?.offer({ key, candidates: shapes.map(({ name }) => name), weight: bindings.weight, make, repeats });
  }
  dispatch(rec, rec.caps.tuned.get(key), bindings, params);
}

/** Random x and residual, and an output, for a measurement. Without a residual x is bound in its place. */
function trialTensors(device: TrialDevice, rows: number, k: number, outStride: number, hasResidual: boolean) {
  const noise = (columns: number): Tensor => {
    const rng = createRng(columns);
    const values = Float32Array.from({ length: rows * columns }, () => rng.uniform() - 0.5);
    return device.upload('trial', 'f32', [rows, columns], values);
  };
  const x = noise(k);
  return { x, residual: hasResidual ? noise(outStride) : x, out: device.tensor('trial out', 'f32', [rows, outStride]) };
}

function dispatchShape(
  rec: Recorder,
  shape: ProductShape,
  stored: StoredAs,
  overrides: Overrides,
  bindings: Bindings,
  params: Params,
): void {
  const { m, n, k4 } = params;
  if (shape.kind === 'split') {
    const few = splitRows(shape, stored, m, k4);
    rec.dispatch(LINEAR_SPLIT, { ...few.variant, overrides }, bindings, params, [ceilDiv(n, few.columns), 1]);
  } else {
    const { tileM: TILE_M, tileN: TILE_N, side: SIDE } = shape;
    const { consts, ...rest } = weightVariant(stored);
    const variant = { ...rest, consts: { TILE_M, TILE_N, SIDE, ...consts }, overrides };
    // Rows in x of the grid: consecutive workgroups then share weights, of which there are more than of x.
    rec.dispatch(LINEAR_BLOCK, variant, bindings, params, [ceilDiv(m, TILE_M * SIDE), ceilDiv(n, TILE_N * SIDE)]);
  }
}
