/**
 * Products of prompt rows by subgroup matrices (docs/numerics.md). Their bits differ from the other kernels'. So which rows take them must
 * depend on what the rows are, never on how many there are.
 */
import type { Caps } from '../gpu/caps.ts';
import type { Device } from '../gpu/device.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { BindingsOf, ParamsOf } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { BLOCK } from '../weights/block-format.ts';
import { alignUp, ceilDiv } from '../util/math.ts';
import { productRows } from './product-shapes.ts';
import { reduceFragment, reduceVariant } from './reduce.ts';
import { avoids } from './replaceable.ts';
import { weightFragments, weightVariant } from './weight.ts';
import type { LinearWeight, StoredAs } from './weight.ts';

export const HALF_ROWS = defineKernel({
  file: 'linear/half_rows.wgsl',
  fragments: (v) => ['lib/grid.wgsl', reduceFragment(v)],
  bindings: { x: 'read', halves: 'write', scales: 'write' },
  params: { rows: 'u32', first_row: 'u32', k4: 'u32', row_quads: 'u32' },
  overrides: { WG: 'u32' },
});

export const LINEAR_MATRIX = defineKernel({
  file: 'linear/linear_matrix.wgsl',
  fragments: (v) => [...weightFragments(v), 'lib/activation.wgsl', 'lib/linear_store.wgsl'],
  enables: ['f16', 'chromium_experimental_subgroup_matrix'],
  consts: ['SIZE', 'SIDE_M', 'SIDE_N', 'STEP', 'LANES'],
  bindings: { halves: 'read', scales: 'read', weight: 'read', bias: 'read', residual: 'read', out: 'write' },
  params: {
    m: 'u32',
    n: 'u32',
    n_weight: 'u32',
    k4: 'u32',
    out_stride: 'u32',
    out_column: 'u32',
    bias_column: 'u32',
    first_row: 'u32',
    row_quads: 'u32',
  },
  overrides: { ACTIVATION: 'u32', HAS_BIAS: 'bool', HAS_RESIDUAL: 'bool' },
});

/**
 * The tile of a workgroup: 2 x 2 subgroups compute sideM x sideN matrices each, `step` quads of K at a time. No tile takes more than 16 KiB
 * of workgroup memory.
 */
export interface MatrixTile {
  readonly sideM: number;
  readonly sideN: number;
  readonly step: 4 | 8;
}

/** Tiles as [rows, columns], largest first. */
const TILES: Readonly<Record<Caps['family'], readonly (readonly [number, number])[]>> = { cpu: [[32, 32]], generic: [[128, 64], [64, 64], [64, 32]] }; // prettier-ignore
/** Workgroups that keep a large card busy. */
const ENOUGH = 128;

/**
 * The tile for `m` rows by `n` columns; a row has the same bits in each. The largest that keeps the card busy, because a tile unpacks each
 * weight once for all of its rows; else the smallest. Of `m` only productRows(m) counts, so that the warm-up meets every tile.
 */
export function matrixTile({ family, matrixSize }: Caps, m: number, n: number): MatrixTile {
  const tiles = TILES[family];
  const most = Math.max(productRows(m), 64);
  const fits = ([rows, columns]: readonly [number, number]): boolean => rows <= most && (most / rows) * ceilDiv(n, columns) >= ENOUGH;
  const [rows, columns] = tiles.find(fits) ?? tiles.at(-1)!;
  return { sideM: rows / 2 / matrixSize, sideN: columns / 2 / matrixSize, step: 8 };
}

/** Subgroups of a workgroup. */
const SUBGROUPS = 4;
/** The most values of x that are converted to halves at a time: 16 MiB. */
const MOST_HALVES = 2 ** 23;

/** Whether products of prompt rows may take subgroup matrices. The kernel counts subgroups, so all must have one size. */
export function hasMatrices(caps: Caps): boolean {
  const { matrixSize, subgroupMinSize: lanes, subgroupMaxSize: most, maxInvocations } = caps;
  const fits = matrixSize > 0 && lanes === most && SUBGROUPS * lanes <= maxInvocations;
  return fits && !avoids(caps, 'half_rows') && !avoids(caps, 'linear_matrix');
}

/** The rows of a product. Rows from `promptFrom` on belong to prompts and may take subgroup matrices; absent = none. */
export interface PromptRows {
  readonly rows: number;
  readonly promptFrom?: number | undefined;
}

/** Whether some rows of a product take matrices: then it cannot be fused with a norm or a gate. */
export function takesMatrices(caps: Caps, { parts }: LinearWeight, { rows, promptFrom = rows }: PromptRows): boolean {
  return promptFrom < rows && parts.some((part) => multipliesMatrices(caps, part));
}

/** Whether products with a part of a weight may take matrices. Weights in f32 do not: as halves they would lose bits. */
export function multipliesMatrices(caps: Caps, { dtype }: StoredAs): boolean {
  return dtype !== 'f32' && hasMatrices(caps);
}

/** Scratch tensors of these products: x in f16, and the scale of each row. */
export function reserveHalves(device: Pick<Device, 'scratch'>): { readonly halves: Tensor; readonly scales: Tensor } {
  return { halves: device.scratch('halves', 'f16', MOST_HALVES), scales: device.scratch('scales of halves', 'f32', MOST_HALVES / BLOCK) };
}

export interface HalfRowsArgs {
  /** [M, K] f32, K a multiple of 4. */
  readonly x: Tensor;
  /** f16, rows of K rounded up to whole blocks. */
  readonly halves: Tensor;
  /** [rows] f32. */
  readonly scales: Tensor;
  readonly firstRow: number;
  readonly rows: number;
}

/** halves[i] = x[firstRow + i] times a power of two, in f16; scales[i] = its inverse. */
export function halfRows(rec: Recorder, { x, halves, scales, firstRow, rows }: HalfRowsArgs): void {
  const columns = x.shape.at(-1) ?? 0;
  const { wg, variant } = reduceVariant(rec.caps, columns);
  const params = { rows, first_row: firstRow, k4: columns / 4, row_quads: alignUp(columns, BLOCK) / 4 };
  rec.dispatch(HALF_ROWS, { ...variant, overrides: { WG: wg } }, { x, halves, scales }, params, [rows]);
}

type Bindings = Omit<BindingsOf<typeof LINEAR_MATRIX.spec>, 'halves' | 'scales'> & { readonly x: Tensor };
type Params = Omit<ParamsOf<typeof LINEAR_MATRIX.spec>, 'first_row' | 'row_quads'>;

/** Multiplies rows `from` to m - 1 by a part of a weight, in several dispatches where they are more than MOST_HALVES. */
export function multiplyMatrices(
  rec: Recorder,
  stored: StoredAs,
  overrides: Readonly<Record<keyof typeof LINEAR_MATRIX.spec.overrides, number>>,
  { x, ...bindings }: Bindings,
  params: Params,
  from: number,
  { sideM: SIDE_M, sideN: SIDE_N, step: STEP } = matrixTile(rec.caps, params.m - from, params.n),
): void {
  const { caps, device } = rec;
  const { m, n, k4 } = params;
  const [SIZE, LANES] = [caps.matrixSize, caps.subgroupMinSize];
  const [tileRows, tileColumns] = [2 * SIZE * SIDE_M, 2 * SIZE * SIDE_N];
  const columns = alignUp(4 * k4, BLOCK);
  const { consts, ...rest } = weightVariant(stored, BLOCK / 4);
  const variant = { ...rest, consts: { SIZE, SIDE_M, SIDE_N, STEP, LANES, ...consts }, overrides, subgroups: true };
  const made = reserveHalves(device);
  const held = Math.floor(MOST_HALVES / columns);
  // Whole tiles, unless not even one fits.
  const most = held - (held % tileRows) || held;
  for (let first = from; first < m; first += most) {
    const rows = Math.min(most, m - first);
    halfRows(rec, { x, ...made, firstRow: first, rows });
    const piece = { ...params, m: first + rows, first_row: first, row_quads: columns / 4 };
    // Rows in x of the grid: consecutive workgroups then share weights, of which there are more than of x.
    rec.dispatch(LINEAR_MATRIX, variant, { ...bindings, ...made }, piece, [ceilDiv(rows, tileRows), ceilDiv(n, tileColumns)]);
  }
}
