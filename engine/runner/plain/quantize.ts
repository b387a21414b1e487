/** Floats as blocks, byte for byte as PyPI `gguf` stores them (gguf/quants.py). */
import { f32ToF16Bits } from '../../util/f16.ts';
import { BLOCK } from '../../weights/block-format.ts';
import { BLOCK_FORMATS } from '../../weights/block-types.ts';
import type { QuantizedType } from '../../weights/storage.ts';

/** Rows whose length is a multiple of 32, quantised symmetrically in blocks of 32: the largest value of a block decides its scale. */
export function quantizeRows(data: Float32Array, type: QuantizedType): Uint8Array {
  const { bytes } = BLOCK_FORMATS[type];
  const out = new Uint8Array((data.length / BLOCK) * bytes);
  const view = new DataView(out.buffer);
  for (let from = 0, at = 0; from < data.length; from += BLOCK, at += bytes) {
    let extreme = 0;
    for (let i = from; i < from + BLOCK; i++) if (Math.abs(data[i]!) > Math.abs(extreme)) extreme = data[i]!;
    const scale = Math.fround(type === 'Q8_0' ? Math.abs(extreme) / 127 : extreme / -8);
    const inverse = scale === 0 ? 0 : Math.fround(1 / scale);
    view.setUint16(at, f32ToF16Bits(scale), true);
    if (type === 'Q8_0') storeBytes(data, from, inverse, out, at + 2);
    else storeNibbles(data, from, inverse, out, at + 2);
  }
  return out;
}

/** Rounded to the nearest, halves away from zero. */
function storeBytes(data: Float32Array, from: number, inverse: number, out: Uint8Array, at: number): void {
  for (let i = 0; i < BLOCK; i++) {
    const value = Math.fround(data[from + i]! * inverse);
    out[at + i] = Math.sign(value) * Math.floor(Math.abs(value) + 0.5);
  }
}

function storeNibbles(data: Float32Array, from: number, inverse: number, out: Uint8Array, at: number): void {
  for (let i = 0; i < 16; i++) out[at + i] = nibble(data[from + i]!, inverse) | (nibble(data[from + 16 + i]!, inverse) << 4);
}

function nibble(value: number, inverse: number): number {
  return Math.min(15, Math.max(0, Math.trunc(Math.fround(Math.fround(value * inverse) + 8.5))));
}
