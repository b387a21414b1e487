/** Pages of keys and values as a test reads and writes them, wherever they lie. */
import type { Device } from '../../engine/gpu/device.ts';
import type { Tensor, TypedArray } from '../../engine/gpu/tensor.ts';
import type { KVLayout } from '../reference/kv.ts';

/** All words of pages. */
export async function readPages(device: Device, pages: Tensor): Promise<TypedArray> {
  if (!pages.texture) return device.read(pages);
  const words = device.tensor(pages.label, 'u32', pages.shape);
  const rec = device.record('read pages');
  rec.spill(pages, words);
  rec.submit();
  const values = await device.read(words);
  device.destroy(words);
  return values;
}

/** Writes words to all of the pages. */
export function writePages(device: Device, pages: Tensor, words: Uint32Array): void {
  if (!pages.texture) return device.write(pages, words);
  const from = device.upload(pages.label, 'u32', [words.length], words);
  const rec = device.record('write pages');
  rec.fill(from, pages);
  rec.submit();
}

/** Where a buffer has the four channels from 4 `quad` on of a key or value, and where a texture has them, both counted in fours. */
export function quadPlaces(
  side: 'key' | 'value',
  { kvHeads, headDim, pageSize }: KVLayout,
  at: { readonly slot: number; readonly head: number; readonly quad: number },
): { readonly buffer: number; readonly texture: number } {
  const [page, offset] = [Math.floor(at.slot / pageSize), at.slot % pageSize];
  const quads = headDim / 4;
  const first = (page * kvHeads + at.head) * quads * pageSize;
  const pair = side === 'key' ? Math.floor(at.quad / 2) : at.quad % (quads / 2);
  const second = side === 'key' ? at.quad % 2 : Math.floor(at.quad / (quads / 2));
  return side === 'key'
    ? { buffer: first + at.quad * pageSize + offset, texture: first + 2 * (pair * pageSize + offset) + second }
    : { buffer: first + offset * quads + at.quad, texture: first + 2 * ((offset * quads) / 2 + pair) + second };
}
