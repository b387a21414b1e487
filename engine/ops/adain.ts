import { assert } from '../errors.ts';
import type { Device } from '../gpu/device.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { alignUp, ceilDiv } from '../util/math.ts';
import { quadFragment, quadVariant } from './texels.ts';
import { rowShape, styleAt } from './row-spans.ts';
import type { Rows, SequenceStyles } from './row-spans.ts';

export const INSTANCE_STATS = defineKernel({
  file: 'norm/instance_stats.wgsl',
  fragments: () => ['lib/row_spans.wgsl'],
  bindings: { x: 'read', spans: 'read', partial: 'write' },
  params: { rows_unit: 'u32', rows: 'u32', c4: 'u32', x_stride4: 'u32', chunk: 'u32' },
  overrides: { WG: 'u32', SPANS: 'bool' },
});

export const INSTANCE_AFFINE = defineKernel({
  file: 'norm/instance_affine.wgsl',
  fragments: () => ['lib/row_spans.wgsl'],
  bindings: { partial: 'read', style: 'read', spans: 'read', affine: 'write' },
  params: { rows_unit: 'u32', rows: 'u32', c4: 'u32', chunk: 'u32', style_first4: 'u32', style_stride4: 'u32', eps: 'f32' },
  overrides: { WG: 'u32', SPANS: 'bool' },
});

export const ADAIN = defineKernel({
  file: 'norm/adain.wgsl',
  fragments: (v) => [quadFragment(v), 'lib/sine.wgsl', 'lib/row_spans.wgsl'],
  bindings: { x: 'read', affine: 'read', alpha: 'read', spans: 'read', out: 'write' },
  params: { rows_unit: 'u32', rows: 'u32', c4: 'u32', x_stride4: 'u32' },
  overrides: { WG: 'u32', WG_ROWS: 'u32', ROWS: 'u32', SNAKE: 'bool', SPANS: 'bool' },
});

/** Rows whose statistics one invocation computes: enough workgroups for a sentence, few enough to combine in one step. */
const CHUNK = 64;
const EPS = 1e-5;
/** Channel groups x rows of a workgroup, and rows that an invocation processes. */
const CPU_TILE = { WG: 8, WG_ROWS: 1, ROWS: 16 } as const;
const GPU_TILE = { WG: 8, WG_ROWS: 8, ROWS: 4 } as const;

/** Scratch tensors of `adain`; one set serves every call. */
export interface AdainScratch {
  readonly partial: Tensor;
  readonly affine: Tensor;
}

/** Allocates scratch for calls with at most `sequences` sequences, `maxElements` values (rows x channels) and `maxChannels` channels. */
export function adainScratch(device: Device, maxElements: number, maxChannels: number, sequences = 1): AdainScratch {
  const channels = alignUp(maxChannels, 4);
  const values = ceilDiv(maxElements, CHUNK) + sequences * channels;
  return {
    partial: device.tensor('adain partial', 'f32', [2 * values]),
    affine: device.tensor('adain affine', 'f32', [sequences, 3, channels]),
  };
}

export interface AdainArgs {
  /** [L, >= C] f32, C a multiple of 4. */
  readonly x: Tensor;
  /** [L, C] f32: a buffer, or a texture from `convInput`. */
  readonly out: Tensor;
  /** By sequence: scale [C], then shift [C], from value `styleFirst` (a multiple of 4) on. */
  readonly style: SequenceStyles;
  readonly styleFirst: number;
  readonly channels: number;
  readonly rows: Rows;
  readonly scratch: AdainScratch;
  /** [2, C] f32 (alpha, 1 / alpha) for Snake; absent = leaky ReLU with slope 0.2. */
  readonly alpha?: Tensor | undefined;
}

/**
 * Adaptive instance norm over time (Huang & Belongie 2017) and the activation that follows it: out = f(scale * (x - mean) / std + shift).
 * Statistics are those of the rows of one sequence, of each channel.
 */
export function adain(rec: Recorder, { x, out, style, styleFirst, channels, rows, scratch, alpha }: AdainArgs): void {
  const xStride = x.shape.at(-1) ?? 0;
  const c = alignUp(channels, 4);
  assert(
    xStride % 4 === 0 && xStride >= c && out.shape.at(-1) === c,
    `adain: ${x.label} has ${xStride} columns, ${out.label} ${out.shape.at(-1)}`,
  );
  const where = styleAt(style, styleFirst);
  assert(where.first % 4 === 0, `adain: the style starts at value ${where.first}, expected a multiple of 4`);
  const c4 = c / 4;
  const shape = rowShape(rows);
  const { longest, count, table } = shape;
  const chunks = Math.floor(shape.end / CHUNK) + count;
  const { partial, affine } = scratch;
  assert(partial.size >= chunks * c * 2 && affine.size >= count * 3 * c, `adain: scratch is too small for ${shape.end} x ${channels}`);
  const spans = table ?? x;
  const SPANS = table ? 1 : 0;
  const wg = rec.caps.family === 'cpu' ? 8 : 32;
  const overrides = { WG: wg, SPANS };
  const known = { rows_unit: shape.unit, rows: shape.rows, c4 };
  const stats = { ...known, x_stride4: xStride / 4, chunk: CHUNK };
  rec.dispatch(INSTANCE_STATS, { overrides }, { x, spans, partial }, stats, [ceilDiv(longest, CHUNK), ceilDiv(c4, wg), count]);
  const combine = { ...known, chunk: CHUNK, style_first4: where.first / 4, style_stride4: where.stride / 4, eps: EPS };
  rec.dispatch(INSTANCE_AFFINE, { overrides }, { partial, style: style.tensor, spans, affine }, combine, [ceilDiv(c4, wg), 1, count]);
  const tile = rec.caps.family === 'cpu' ? CPU_TILE : GPU_TILE;
  const variant = { ...quadVariant(out), overrides: { ...tile, SNAKE: alpha ? 1 : 0, SPANS } };
  const groups = [ceilDiv(longest, tile.WG_ROWS * tile.ROWS), ceilDiv(c4, tile.WG), count];
  rec.dispatch(ADAIN, variant, { x, affine, alpha: alpha ?? affine, spans, out }, { ...known, x_stride4: xStride / 4 }, groups);
}
