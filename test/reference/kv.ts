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

/** Where the words of int8 pages lie: four channels of a key, of a value, and the scale (f32 bits) that a position's head has in each. */
export interface Int8Words {
  key(slot: number, head: number, d4: number): number;
  value(slot: number, head: number, d4: number): number;
  scale(slot: number, head: number): number;
  /** Of one page. */
  readonly count: number;
}

/** Pages of [K][D/4 + 1][pageSize] words. */
export function int8Words({ kvHeads, headDim, pageSize }: KVLayout): Int8Words {
  const d4 = headDim / 4;
  const base = (slot: number, head: number): number => (Math.floor(slot / pageSize) * kvHeads + head) * (d4 + 1) * pageSize;
  return {
    key: (slot, head, i) => base(slot, head) + i * pageSize + (slot % pageSize),
    value: (slot, head, i) => base(slot, head) + (slot % pageSize) * d4 + i,
    scale: (slot, head) => base(slot, head) + d4 * pageSize + (slot % pageSize),
    count: kvHeads * (d4 + 1) * pageSize,
  };
}

/** Bits of a whole number. */
const ones = (value: number): number => [...value.toString(2)].filter((bit) => bit === '1').length;

/** Sign of a channel before it is spread: fixed, and like no row of a Hadamard matrix. */
function channelSign(channel: number): number {
  const hashed = Math.imul(channel, 0x9e3779b1);
  return Math.imul(hashed ^ (hashed >>> 15), 0x85ebca6b) < 0 ? -1 : 1;
}

/**
 * The rotation R of a head's D channels that queries and int8 keys are stored under: q . k = (R q) . (R k), and no single channel of a key decides
 * its scale. With D = 8 P m (P a power of two, m odd) a channel is (half, block < m, index < P, c < 4) and R = H2 x (I - 2/m J) x HP x H4 times signs.
 */
export function spreadChannels(values: readonly number[]): number[] {
  const size = values.length;
  const eighth = size / 8;
  const power = eighth & -eighth;
  const blocks = eighth / power;
  const place = (channel: number): readonly [number, number, number, number] => {
    const [half, within] = [Math.floor(channel / (size / 2)), Math.floor((channel % (size / 2)) / 4)];
    return [half, Math.floor(within / power), within % power, channel % 4];
  };
  return values.map((_, out) => {
    const [half, block, index, c] = place(out);
    return values.reduce((sum, value, from) => {
      const [fromHalf, fromBlock, fromIndex, fromC] = place(from);
      const hadamard = (-1) ** (ones(half & fromHalf) + ones(index & fromIndex) + ones(c & fromC)) / Math.sqrt(8 * power);
      const mixed = (block === fromBlock ? 1 : 0) - (blocks === 1 ? 0 : 2 / blocks);
      return sum + channelSign(from) * hadamard * mixed * value;
    }, 0);
  });
}

/** The channels of a head as signed bytes of its largest magnitude, which is the scale. */
export function quantizeHead(values: readonly number[]): { readonly bytes: Int8Array; readonly scale: number } {
  const scale = Math.fround(values.reduce((most, value) => Math.max(most, Math.abs(value)), 0));
  return { bytes: Int8Array.from(values, (value) => (scale === 0 ? 0 : Math.floor((127 * value) / scale + 0.5))), scale };
}

/** Pages `values` of keys or values as int8 words, and what these stand for, in the layout of `values`. */
export function int8Pages(
  layout: KVLayout,
  side: 'key' | 'value',
  values: ArrayLike<number>,
): { readonly words: Uint32Array; readonly values: Float32Array } {
  const { kvHeads, headDim, pageSize } = layout;
  const words = int8Words(layout);
  const index = side === 'key' ? keyIndex : valueIndex;
  const slots = values.length / (kvHeads * headDim);
  const packed = new Uint32Array((slots / pageSize) * words.count);
  const bytes = new Int8Array(packed.buffer);
  const read = new Float32Array(values.length);
  for (let slot = 0; slot < slots; slot++) {
    for (let head = 0; head < kvHeads; head++) {
      const at = Array.from({ length: headDim }, (_, d) => index(layout, slot, head, d));
      const quantized = quantizeHead(at.map((i) => values[i]!));
      at.forEach((i, d) => {
        bytes[words[side](slot, head, d >> 2) * 4 + (d & 3)] = quantized.bytes[d]!;
        read[i] = (quantized.bytes[d]! / 127) * quantized.scale;
      });
      new Float32Array(packed.buffer)[words.scale(slot, head)] = quantized.scale;
    }
  }
  return { words: packed, values: read };
}
