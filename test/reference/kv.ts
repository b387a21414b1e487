/** Pages of keys and values as plain index arithmetic. */
import { rotate } from './rope.ts';

export interface KVLayout {
  readonly kvHeads: number;
  readonly headDim: number;
  readonly pageSize: number;
}

/** Index of channel d of a key in [P, K, D/4, pageSize, 4]. */
export function keyIndex({ kvHeads, headDim, pageSize }: KVLayout, slot: number, head: number, d: number): number {
  const [page, offset] = [Math.floor(slot / pageSize), slot % pageSize];
  return (((page * kvHeads + head) * (headDim / 4) + Math.floor(d / 4)) * pageSize + offset) * 4 + (d % 4);
}

/** Index of channel d of a value in [P, K, pageSize, D]. */
export function valueIndex({ kvHeads, headDim, pageSize }: KVLayout, slot: number, head: number, d: number): number {
  const [page, offset] = [Math.floor(slot / pageSize), slot % pageSize];
  return ((page * kvHeads + head) * pageSize + offset) * headDim + d;
}

export interface StoreInput extends KVLayout {
  /** [T, H + 2 K, D]. */
  readonly qkv: ArrayLike<number>;
  readonly heads: number;
  readonly positions: readonly number[];
  /** Slot of a row, or undefined for padding. */
  readonly slots: readonly (number | undefined)[];
  readonly frequencies: ArrayLike<number>;
}

/** Rotated queries, and pages after storing (`k` and `v` are changed). */
export function ropeKVStore(input: StoreInput, k: Float64Array | Float32Array, v: Float64Array | Float32Array): Float64Array {
  const { qkv, heads, kvHeads, headDim, positions, slots, frequencies } = input;
  const q = new Float64Array(positions.length * heads * headDim);
  for (let t = 0; t < positions.length; t++) {
    const row = t * (heads + 2 * kvHeads);
    for (let h = 0; h < heads; h++) q.set(rotate(qkv, (row + h) * headDim, frequencies, positions[t]!), (t * heads + h) * headDim);
    const slot = slots[t];
    if (slot === undefined) continue;
    for (let h = 0; h < kvHeads; h++) {
      const key = rotate(qkv, (row + heads + h) * headDim, frequencies, positions[t]!);
      for (let d = 0; d < headDim; d++) {
        k[keyIndex(input, slot, h, d)] = key[d]!;
        v[valueIndex(input, slot, h, d)] = qkv[(row + heads + kvHeads + h) * headDim + d]!;
      }
    }
  }
  return q;
}
