/** Values in storage textures: on a software adapter a texture load costs a fraction of a buffer load (docs/decisions/products.md). */
import type { Device } from '../gpu/device.ts';
import type { Variant } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { nextPowerOfTwo } from '../util/math.ts';

/** Allocates the texture that `texelsOf` copies up to `values` values to. */
export function reserveTexels(device: Pick<Device, 'scratchTexels'>, label: string, values: number, dtype?: 'u32' | 'f32'): Tensor {
  // Sizes are few: outgrown textures are kept.
  return device.scratchTexels(label, nextPowerOfTwo(values / 4), dtype);
}

/**
 * Copies the first rows of x [M, C] f32, C a multiple of 4, to the texture shared by all users of `label`, which is allocated for at least
 * `least` values: four per texel, row by row.
 */
export function texelsOf(rec: Recorder, label: string, x: Tensor, rows: number, { least = 0, dtype }: Texels = {}): Tensor {
  const columns = x.shape.at(-1) ?? 0;
  const texels = reserveTexels(rec.device, label, Math.max(rows * columns, least), dtype);
  rec.fill(x.reshape([rows, columns]), texels);
  return texels;
}

interface Texels {
  readonly least?: number;
  /** Type of the texels (Device.texels); default u32. */
  readonly dtype?: 'u32' | 'f32';
}

/** A texture with a tensor's words, in another shape of the same size. */
export function inTexels(device: Device, tensor: Tensor, shape: readonly number[] = tensor.shape): Tensor {
  const texels = device.texels(tensor.label, shape);
  const rec = device.record(`fill ${tensor.label}`);
  rec.fill(tensor, texels);
  rec.submit();
  return texels;
}

/** The part of a kernel variant that depends on whether its output is a texture. */
export function quadVariant(out: Tensor): { readonly texture?: 'out' } {
  return out.texture ? { texture: 'out' } : {};
}

/** WGSL fragment by which such a kernel stores four values. */
export function quadFragment({ texture }: Variant): string {
  return texture === 'out' ? 'lib/quads_texture.wgsl' : 'lib/quads_buffer.wgsl';
}
