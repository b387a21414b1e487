/** Values that kernels read from a storage texture, where a load costs a software adapter a fraction of one from a buffer (docs/decisions/products.md). */
import type { Device } from '../gpu/device.ts';
import type { Variant } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { nextPowerOfTwo } from '../util/math.ts';

/** Makes the texture that `texelsOf` copies so many values to. */
export function reserveTexels(device: Pick<Device, 'scratchTexels'>, label: string, values: number, dtype?: 'u32' | 'f32'): Tensor {
  // Few sizes: what a texture outgrew stays.
  return device.scratchTexels(label, nextPowerOfTwo(values / 4), dtype);
}

/** Copies the first rows of x [M, C] f32, C a multiple of 4, to a texture that all who name `label` share, for at least `least` values: four a texel, row by row. */
export function texelsOf(rec: Recorder, label: string, x: Tensor, rows: number, { least = 0, dtype }: Texels = {}): Tensor {
  const columns = x.shape.at(-1) ?? 0;
  const texels = reserveTexels(rec.device, label, Math.max(rows * columns, least), dtype);
  rec.fill(x.reshape([rows, columns]), texels);
  return texels;
}

interface Texels {
  readonly least?: number;
  /** What its texels are (Device.texels); default u32. */
  readonly dtype?: 'u32' | 'f32';
}

/** A texture with the words of a tensor, under another shape of as many. */
export function inTexels(device: Device, tensor: Tensor, shape: readonly number[] = tensor.shape): Tensor {
  const texels = device.texels(tensor.label, shape);
  const rec = device.record(`fill ${tensor.label}`);
  rec.fill(tensor, texels);
  rec.submit();
  return texels;
}

/** What of a variant is decided by where its output `out` lies: in a buffer, or in a texture. */
export function quadVariant(out: Tensor): { readonly texture?: 'out' } {
  return out.texture ? { texture: 'out' } : {};
}

/** The fragment by which such a kernel stores four values. */
export function quadFragment({ texture }: Variant): string {
  return texture === 'out' ? 'lib/quads_texture.wgsl' : 'lib/quads_buffer.wgsl';
}
