/** Products of prompts by subgroup matrices (docs/numerics.md): other bits than vector kernels give, so rows take them by what they are and not by how many there are. */
import type { Caps } from '../gpu/caps.ts';
import type { Device } from '../gpu/device.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { BindingsOf, ParamsOf } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { BLOCK } from '../weights/block-format.ts';
import { alignUp, ceilDiv } from '../util/math.ts';
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
  consts: ['SIZE', 'SIDE', 'LANES'],
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

/** Rows and columns of a workgroup's tile. */
const TILE = { cpu: 32, generic: 64 } as const;
/** Subgroups of a workgroup. */
const SUBGROUPS = 4;
/** Values of x that there are as halves at once: 16 MiB. */
const HELD = 2 ** 23;

/** Whether products of prompts take matrices: where all subgroups are alike, as the kernel counts them. */
export function hasMatrices(caps: Caps): boolean {
  const { matrixSize, subgroupMinSize: lanes, subgroupMaxSize: most, maxInvocations } = caps;
  const fits = matrixSize > 0 && lanes === most && SUBGROUPS * lanes <= maxInvocations;
  return fits && !avoids(caps, 'half_rows') && !avoids(caps, 'linear_matrix');
}

/** Rows of a product, of which those from `promptFrom` on are of prompts that take matrices; absent = none. */
export interface PromptRows {
  readonly rows: number;
  readonly promptFrom?: number | undefined;
}

/** Whether some rows of a product take matrices: then it has no kernel for what stands before and behind it. */
export function takesMatrices(caps: Caps, { parts }: LinearWeight, { rows, promptFrom = rows }: PromptRows): boolean {
  return promptFrom < rows && parts.some((part) => multipliesMatrices(caps, part));
}

/** Whether a part of a weight has a kernel with matrices: in f32 it would lose bits. */
export function multipliesMatrices(caps: Caps, { dtype }: StoredAs): boolean {
  return dtype !== 'f32' && hasMatrices(caps);
}

/** Makes what these products take beside their tensors. */
export function reserveHalves(device: Pick<Device, 'scratch'>): { readonly halves: Tensor; readonly scales: Tensor } {
  return { halves: device.scratch('halves', 'f16', HELD), scales: device.scratch('scales of halves', 'f32', HELD / BLOCK) };
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

/** halves, scales = rows of x from `firstRow` on, in half precision, each times a power of two. */
export function halfRows(rec: Recorder, { x, halves, scales, firstRow, rows }: HalfRowsArgs): void {
  const columns = x.shape.at(-1) ?? 0;
  const { wg, variant } = reduceVariant(rec.caps, columns);
  const params = { rows, first_row: firstRow, k4: columns / 4, row_quads: alignUp(columns, BLOCK) / 4 };
  rec.dispatch(HALF_ROWS, { ...variant, overrides: { WG: wg } }, { x, halves, scales }, params, [rows]);
}

type Bindings = Omit<BindingsOf<typeof LINEAR_MATRIX.spec>, 'halves' | 'scales'> & { readonly x: Tensor };
type Params = Omit<ParamsOf<typeof LINEAR_MATRIX.spec>, 'first_row' | 'row_quads'>;

/** Multiplies rows `from` to m - 1 by a part of a weight, a piece of x after the other where it is large. */
export function multiplyMatrices(
  rec: Recorder,
  stored: StoredAs,
  overrides: Readonly<Record<'ACTIVATION' | 'HAS_BIAS' | 'HAS_RESIDUAL', number>>,
  { x, ...bindings }: Bindings,
  params: Params,
  from: number,
): void {
  const { caps, device } = rec;
  const { m, n, k4 } = params;
  const [SIZE, LANES, tile] = [caps.matrixSize, caps.subgroupMinSize, TILE[caps.family]];
  const columns = alignUp(4 * k4, BLOCK);
  const { consts, ...rest } = weightVariant(stored, BLOCK / 4);
  const variant = { ...rest, consts: { SIZE, SIDE: tile / 2 / SIZE, LANES, ...consts }, overrides, subgroups: true };
  const made = reserveHalves(device);
  const most = Math.floor(HELD / columns / tile) * tile;
  for (let first = from; first < m; first += most) {
    const rows = Math.min(most, m - first);
    halfRows(rec, { x, ...made, firstRow: first, rows });
    const piece = { ...params, m: first + rows, first_row: first, row_quads: columns / 4 };
    rec.dispatch(LINEAR_MATRIX, variant, { ...bindings, ...made }, piece, [ceilDiv(n, tile), ceilDiv(rows, tile)]);
  }
}
