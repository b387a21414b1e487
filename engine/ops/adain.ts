import { assert } from '../errors.ts';
import type { Device } from '../gpu/device.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { alignUp, ceilDiv } from '../util/math.ts';

export const INSTANCE_STATS = defineKernel({
  file: 'norm/instance_stats.wgsl',
  bindings: { x: 'read', partial: 'write' },
  params: { rows: 'u32', c4: 'u32', x_stride4: 'u32', chunk: 'u32' },
  overrides: { WG: 'u32' },
});

export const INSTANCE_AFFINE = defineKernel({
  file: 'norm/instance_affine.wgsl',
  bindings: { partial: 'read', style: 'read', affine: 'write' },
  params: { rows: 'u32', c4: 'u32', chunk: 'u32', chunks: 'u32', style_first4: 'u32', eps: 'f32' },
  overrides: { WG: 'u32' },
});

export const ADAIN = defineKernel({
  file: 'norm/adain.wgsl',
  fragments: () => ['lib/sine.wgsl'],
  bindings: { x: 'read', affine: 'read', alpha: 'read', out: 'write' },
  params: { rows: 'u32', c4: 'u32', x_stride4: 'u32' },
  overrides: { WG: 'u32', WG_ROWS: 'u32', ROWS: 'u32', SNAKE: 'bool' },
});

/** Rows whose statistics one invocation takes: enough workgroups for a sentence, few enough to combine in one go. */
const CHUNK = 64;
const EPS = 1e-5;
/** Channel groups x rows of a workgroup, and rows an invocation walks through. */
const CPU_TILE = { WG: 8, WG_ROWS: 1, ROWS: 16 } as const;
const GPU_TILE = { WG: 8, WG_ROWS: 8, ROWS: 4 } as const;

/** Intermediate results of `adain`; one set serves every call. */
export interface AdainScratch {
  readonly partial: Tensor;
  readonly affine: Tensor;
}

/** Scratch for at most `rows` x `channels`, whichever way they are split: pass the largest product and the largest channel count. */
export function adainScratch(device: Device, maxElements: number, maxChannels: number): AdainScratch {
  const chunks = ceilDiv(maxElements, CHUNK) + alignUp(maxChannels, 4);
  return {
    partial: device.tensor('adain partial', 'f32', [2 * chunks]),
    affine: device.tensor('adain affine', 'f32', [3, alignUp(maxChannels, 4)]),
  };
}

export interface AdainArgs {
  /** [L, >= C] f32, C a multiple of 4. */
  readonly x: Tensor;
  /** [L, C] f32. */
  readonly out: Tensor;
  /** Holds scale [C], shift [C] from value `styleFirst` (a multiple of 4) on. */
  readonly style: Tensor;
  readonly styleFirst: number;
  readonly channels: number;
  readonly rows: number;
  readonly scratch: AdainScratch;
  /** [2, C] f32 (alpha, 1 / alpha) for Snake; absent = leaky ReLU with slope 0.2. */
  readonly alpha?: Tensor | undefined;
}

/**
 * Adaptive instance norm over time (Huang & Belongie 2017) and the activation that follows it: out = f(scale * (x - mean) / std + shift).
 * Statistics are those of the first `rows` rows of each channel.
 */
export function adain(rec: Recorder, { x, out, style, styleFirst, channels, rows, scratch, alpha }: AdainArgs): void {
  const xStride = x.shape.at(-1) ?? 0;
  const c = alignUp(channels, 4);
  assert(
    xStride % 4 === 0 && xStride >= c && out.shape.at(-1) === c,
    `adain: ${x.label} has ${xStride} columns, ${out.label} ${out.shape.at(-1)}`,
  );
  assert(styleFirst % 4 === 0, `adain: the style starts at value ${styleFirst}, expected a multiple of 4`);
  const c4 = c / 4;
  const chunks = ceilDiv(rows, CHUNK);
  const { partial, affine } = scratch;
  assert(partial.size >= chunks * c * 2 && affine.size >= 3 * c, `adain: scratch is too small for ${rows} x ${channels}`);
  const wg = rec.caps.family === 'cpu' ? 8 : 32;
  const overrides = { WG: wg };
  const stats = { rows, c4, x_stride4: xStride / 4, chunk: CHUNK };
  rec.dispatch(INSTANCE_STATS, { overrides }, { x, partial }, stats, [chunks, ceilDiv(c4, wg)]);
  const combine = { rows, c4, chunk: CHUNK, chunks, style_first4: styleFirst / 4, eps: EPS };
  rec.dispatch(INSTANCE_AFFINE, { overrides }, { partial, style, affine }, combine, [ceilDiv(c4, wg)]);
  const shape = rec.caps.family === 'cpu' ? CPU_TILE : GPU_TILE;
  const variant = { overrides: { ...shape, SNAKE: alpha ? 1 : 0 } };
  const groups = [ceilDiv(rows, shape.WG_ROWS * shape.ROWS), ceilDiv(c4, shape.WG)];
  rec.dispatch(ADAIN, variant, { x, affine, alpha: alpha ?? affine, out }, { rows, c4, x_stride4: xStride / 4 }, groups);
}
