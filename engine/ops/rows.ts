import { assert } from '../errors.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { ceilDiv } from '../util/math.ts';
import { quadFragment, quadVariant } from './texels.ts';
import { rowShape } from './row-spans.ts';
import type { Rows } from './row-spans.ts';

const WG = 64;

export const EXPAND_ROWS = defineKernel({
  file: 'elementwise/expand_rows.wgsl',
  fragments: () => ['lib/grid.wgsl'],
  bindings: { x: 'read', index: 'read', out: 'write' },
  params: { rows: 'u32', columns: 'u32', x_stride: 'u32', out_stride: 'u32', out_column: 'u32' },
  overrides: { WG: 'u32' },
});

export interface ExpandRowsArgs {
  /** [T, C] f32. */
  readonly x: Tensor;
  /** [L] u32. */
  readonly index: Tensor;
  /** [L, >= C] f32. */
  readonly out: Tensor;
  readonly rows: number;
  /** Columns to copy; default all of x. */
  readonly columns?: number;
  readonly outColumn?: number;
}

/** out[l] = x[index[l]]. */
export function expandRows(rec: Recorder, { x, index, out, rows, columns, outColumn = 0 }: ExpandRowsArgs): void {
  const xStride = x.shape.at(-1) ?? 0;
  const count = columns ?? xStride;
  const outStride = out.shape.at(-1) ?? 0;
  assert(
    count <= xStride && outColumn + count <= outStride,
    `expand_rows: ${count} columns of ${x.label} at column ${outColumn} of ${out.label}`,
  );
  const params = { rows, columns: count, x_stride: xStride, out_stride: outStride, out_column: outColumn };
  rec.dispatch(EXPAND_ROWS, { overrides: { WG } }, { x, index, out }, params, [ceilDiv(rows * count, WG)]);
}

export const AVERAGE_LEAKY = defineKernel({
  file: 'elementwise/average_leaky.wgsl',
  fragments: (v) => [quadFragment(v), 'lib/grid.wgsl'],
  bindings: { parts: 'read', out: 'write' },
  params: { count4: 'u32', part_stride4: 'u32', slope: 'f32' },
  overrides: { WG: 'u32', PARTS: 'u32' },
});

export interface AverageLeakyArgs {
  /** [parts, L, C] f32, C a multiple of 4. */
  readonly parts: Tensor;
  /** [L, C] f32: a buffer, or a texture from `convInput`. */
  readonly out: Tensor;
  readonly rows: number;
  readonly slope: number;
}

/** out = leaky(mean of the parts, slope). */
export function averageLeaky(rec: Recorder, { parts, out, rows, slope }: AverageLeakyArgs): void {
  const [count = 1, length = 0, channels = 0] = parts.shape;
  assert(
    channels % 4 === 0 && out.shape.at(-1) === channels,
    `average_leaky: ${parts.label} has ${channels} channels, ${out.label} ${out.shape.at(-1)}`,
  );
  const params = { count4: (rows * channels) / 4, part_stride4: (length * channels) / 4, slope };
  rec.dispatch(AVERAGE_LEAKY, { ...quadVariant(out), overrides: { WG, PARTS: count } }, { parts, out }, params, [
    ceilDiv(params.count4, WG),
  ]);
}

export const MIRROR_ADD = defineKernel({
  file: 'elementwise/mirror_add.wgsl',
  fragments: () => ['lib/grid.wgsl', 'lib/row_spans.wgsl'],
  bindings: { x: 'read', y: 'read', spans: 'read', out: 'write' },
  params: { rows_unit: 'u32', rows: 'u32', c4: 'u32', pad: 'u32' },
  overrides: { WG: 'u32', SPANS: 'bool' },
});

export interface MirrorAddArgs {
  /** [rows - pad, C] f32, C a multiple of 4. */
  readonly x: Tensor;
  /** [rows, C] f32. */
  readonly y: Tensor;
  /** [rows, C] f32. */
  readonly out: Tensor;
  readonly rows: Rows;
  /** Rows put before x by mirroring it (torch.nn.ReflectionPad1d). */
  readonly pad: number;
}

/** out = mirrored(x) + y. */
export function mirrorAdd(rec: Recorder, { x, y, out, rows, pad }: MirrorAddArgs): void {
  const channels = out.shape.at(-1) ?? 0;
  const same = x.shape.at(-1) === channels && y.shape.at(-1) === channels;
  assert(channels % 4 === 0 && same, `mirror_add: ${x.label}, ${y.label} and ${out.label} must have equal columns, a multiple of 4`);
  const shape = rowShape(rows);
  const params = { rows_unit: shape.unit, rows: shape.rows, c4: channels / 4, pad };
  const variant = { overrides: { WG, SPANS: shape.table ? 1 : 0 } };
  const groups = [ceilDiv((shape.longest * channels) / 4, WG), 1, shape.count];
  rec.dispatch(MIRROR_ADD, variant, { x, y, spans: shape.table ?? x, out }, params, groups);
}
