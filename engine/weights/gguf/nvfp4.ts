/**
 * NVFP4 of GGUF: blocks of 64 values in 36 bytes, and a scale of the whole tensor, or of each expert, in a tensor beside it (llama.cpp's
 * converter, from ModelOpt's weight_scale_2). The engine's blocks begin with that scale.
 */
import { widenBlocks } from '../block-format.ts';
import { BLOCK_FORMATS } from '../block-types.ts';

const FORMAT = BLOCK_FORMATS.NVFP4;

/** Bytes of a block in a file. */
export const NVFP4_BYTES = FORMAT.bytes - 4;

/** The engine's blocks of a file's, with the scale of each. */
export function scaledBlocks(stored: Uint8Array, scaleOf: (block: number) => number): Uint8Array {
  const blocks = stored.length / NVFP4_BYTES;
  const out = new Uint8Array(blocks * FORMAT.bytes);
  const view = new DataView(out.buffer);
  for (let block = 0; block < blocks; block++) {
    view.setFloat32(block * FORMAT.bytes, scaleOf(block), true);
    out.set(stored.subarray(block * NVFP4_BYTES, (block + 1) * NVFP4_BYTES), block * FORMAT.bytes + 4);
  }
  return out;
}

/** Dequantises blocks without the scale of their tensor. */
export function widenUnscaled(stored: Uint8Array, out: Float32Array): void {
  widenBlocks(
    FORMAT,
    scaledBlocks(stored, () => 1),
    out,
  );
}

/** The name of the tensor with the scale of a tensor, and that of one with a scale of its input, which is for computing in 4 bits. */
export function scaleNames(name: string): { readonly scale: string; readonly input: string } {
  const base = name.replace(/\.weight$/, '');
  return { scale: `${base}.scale`, input: `${base}.input_scale` };
}
