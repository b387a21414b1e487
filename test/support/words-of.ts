/** The words of a tensor, wherever it lies. */
import type { Device } from '../../engine/gpu/device.ts';
import { TEXEL_BYTES } from '../../engine/gpu/tensor.ts';
import type { Tensor } from '../../engine/gpu/tensor.ts';

/** Reads a tensor of words back; what a texture's last row has more is left out. */
export async function wordsOf(device: Device, tensor: Tensor): Promise<Uint32Array> {
  const { texture } = tensor;
  if (!texture) return new Uint32Array((await device.read(tensor)).buffer);
  const { width, height } = texture;
  const bytesPerRow = Math.ceil((width * TEXEL_BYTES) / 256) * 256;
  const buffer = device.gpu.createBuffer({ size: bytesPerRow * height, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
  const encoder = device.gpu.createCommandEncoder();
  encoder.copyTextureToBuffer({ texture }, { buffer, bytesPerRow }, [width, height]);
  device.gpu.queue.submit([encoder.finish()]);
  await device.waits.until(buffer.mapAsync(GPUMapMode.READ));
  const words = new Uint32Array(buffer.getMappedRange().slice(0, tensor.byteLength));
  buffer.destroy();
  return words;
}
