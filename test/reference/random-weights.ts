/** Random weights as files would store them: the generator's draws one after the other, cut into bytes. */
import { toF16 } from '../../engine/util/f16.ts';
import { createRng } from '../../engine/util/rng.ts';
import { BLOCK_FORMATS } from '../../engine/weights/block-types.ts';
import type { BlockFormat } from '../../engine/weights/block-format.ts';
import type { RandomBlocks, RandomFloats, StoredFloat } from '../../engine/weights/checkpoint.ts';

/** The first bytes that a seed gives: each draw is four, the lowest first. */
function drawnBytes(seed: number, count: number): Uint8Array {
  const rng = createRng(seed);
  const draws = Uint32Array.from({ length: Math.ceil(count / 4) }, () => rng.uniform() * 2 ** 32);
  return new Uint8Array(draws.buffer, 0, count);
}

/** The first values of a tensor, each 2 c - 255 times a power of two for a byte c. */
export function randomValues({ seed, exponent }: RandomFloats, count: number): Float32Array {
  return Float32Array.from(drawnBytes(seed, count), (c) => (2 * c - 255) * 2 ** exponent);
}

/** The same as a file has them. */
export function storedValues(values: Float32Array, source: StoredFloat): Uint8Array {
  if (source === 'F32') return new Uint8Array(values.slice().buffer);
  const halves = source === 'F16' ? toF16(values) : Uint16Array.from(new Uint32Array(values.slice().buffer), (bits) => bits >>> 16);
  return new Uint8Array(halves.buffer);
}

/** The first blocks of a tensor: whole draws for each, with scale and offset put in, whose sign is bit 15 of a draw of another seed. */
export function randomStored({ seed, type, scale, offset }: RandomBlocks, count: number): Uint8Array {
  const { bytes, places, scales }: BlockFormat = BLOCK_FORMATS[type];
  const drawn = Math.ceil(bytes / 4) * 4;
  const all = drawnBytes(seed, count * drawn);
  const signs = new Uint32Array(drawnBytes((seed ^ 0x5bd1e995) >>> 0, count * 4).slice().buffer);
  const out = new Uint8Array(count * bytes);
  const view = new DataView(out.buffer);
  for (let block = 0, at = 0; block < count; block++, at += bytes) {
    out.set(all.subarray(block * drawn, block * drawn + bytes), at);
    const sign = signs[block]! & 0x8000;
    if (scales === 'exponent') view.setUint8(at + places.scale, scale);
    else if (scales === 'row' || scales === 'e4m3') view.setUint32(at + places.scale, scale, true);
    else if (places.isSpread)
      for (let i = 0; i < 4; i++) {
        const upper = at + places.scale + 2 * i + 1;
        view.setUint8(upper, (view.getUint8(upper) & 15) | ((((scale ^ sign) >> (4 * i)) & 15) << 4));
      }
    else
      for (const [place, bits] of [
        [places.scale, scale],
        [places.offset, offset],
      ] as const)
        if (place !== undefined) view.setUint16(at + place, bits ^ sign, true);
  }
  return out;
}
