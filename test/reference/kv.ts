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

/** Where the words of int8 pages lie: four channels of a key, of a value, and the word behind them that a position's head has in each. */
export interface Int8Words {
  key(slot: number, head: number, d4: number): number;
  value(slot: number, head: number, d4: number): number;
  last(slot: number, head: number): number;
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
    last: (slot, head) => base(slot, head) + d4 * pageSize + (slot % pageSize),
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

/** Rows of the rotation of spreadChannels, by size: it is looked up once for each key of many. */
const rotations = new Map<number, readonly Float64Array[]>();

/** [D][D]; with D = 8 P m (P a power of two, m odd) a channel is (half, block < m, index < P, c < 4), and it is H2 x (I - 2/m J) x HP x H4 times signs. */
function rotationOf(size: number): readonly Float64Array[] {
  const known = rotations.get(size);
  if (known) return known;
  const eighth = size / 8;
  const power = eighth & -eighth;
  const blocks = eighth / power;
  const place = (channel: number): readonly [number, number, number, number] => {
    const [half, within] = [Math.floor(channel / (size / 2)), Math.floor((channel % (size / 2)) / 4)];
    return [half, Math.floor(within / power), within % power, channel % 4];
  };
  const rows = Array.from({ length: size }, (_, out) => {
    const [half, block, index, c] = place(out);
    return Float64Array.from({ length: size }, (_, from) => {
      const [fromHalf, fromBlock, fromIndex, fromC] = place(from);
      const hadamard = (-1) ** (ones(half & fromHalf) + ones(index & fromIndex) + ones(c & fromC)) / Math.sqrt(8 * power);
      const mixed = (block === fromBlock ? 1 : 0) - (blocks === 1 ? 0 : 2 / blocks);
      return channelSign(from) * hadamard * mixed;
    });
  });
  rotations.set(size, rows);
  return rows;
}

/**
 * The rotation R of a head's D channels that queries and int8 keys are stored under: q . k = (R q) . (R k), and no single channel of a key decides
 * its scale.
 */
export function spreadChannels(values: readonly number[]): number[] {
  return rotationOf(values.length).map((row) => values.reduce((sum, value, from) => sum + row[from]! * value, 0));
}

/** Two pairs of channels (d and d + D/2, which turn together) that a head's keys keep apart, and the unit in which each pair is counted. */
export type Apart = readonly [{ readonly pair: number; readonly unit: number }, { readonly pair: number; readonly unit: number }];

/** Nothing is kept apart. */
export const NO_PAIRS: Apart = [{ pair: 0, unit: 0 }, { pair: 1, unit: 0 }]; // prettier-ignore

/** The four channels, and the unit of each. */
export function apartChannels(apart: Apart, headDim: number): { readonly channel: number; readonly unit: number }[] {
  return apart.flatMap(({ pair, unit }) => [pair, pair + headDim / 2].map((channel) => ({ channel, unit })));
}

/** A query as attention over int8 pages reads it: its channels spread, then the four that keys keep apart, times their units. */
export function spreadQuery(query: readonly number[], apart: Apart): number[] {
  return [...spreadChannels(query), ...apartChannels(apart, query.length).map(({ channel, unit }) => query[channel]! * unit)];
}

/** The least number of 8 bits of exponent and 4 of mantissa that is no smaller: the scale of a key. */
export function roundScaleUp(value: number): number {
  const word = new Uint32Array(new Float32Array([value]).buffer);
  // Rounding to f32 may have lost something above.
  if (new Float32Array(word.buffer)[0]! < value) word[0]!++;
  word[0] = (word[0]! + 0x7ffff) & 0x7ff80000;
  return new Float32Array(word.buffer)[0]!;
}

/** The word behind a key's channels: its scale in 12 bits, then four counts of five. */
export function packKeyWord(scale: number, counts: readonly number[]): number {
  const scaleBits = new Uint32Array(new Float32Array([scale]).buffer)[0]! >>> 19;
  return counts.reduce((word, count, i) => (word | ((count & 31) << (27 - 5 * i))) >>> 0, scaleBits);
}

/** packKeyWord read back. */
export function unpackKeyWord(word: number): { readonly scale: number; readonly counts: readonly number[] } {
  const scale = new Float32Array(Uint32Array.of((word & 0xfff) << 19).buffer)[0]!;
  return { scale, counts: [0, 1, 2, 3].map((i) => (word << (5 * i)) >> 27) };
}

/** What is left of a key without the counted units of the channels that are kept apart. */
export function withoutCounts(key: readonly number[], apart: Apart, counts: readonly number[]): number[] {
  const rest = [...key];
  apartChannels(apart, key.length).forEach(({ channel, unit }, i) => (rest[channel] = rest[channel]! - counts[i]! * unit));
  return rest;
}

/** A key in its page: whole units of the large channels apart, all the rest spread and in bytes of the scale. */
export function quantizeKey(
  key: readonly number[],
  apart: Apart,
): { readonly bytes: Int8Array; readonly scale: number; readonly counts: number[] } {
  const counts = apartChannels(apart, key.length).map(({ channel, unit }) => (unit === 0 ? 0 : Math.min(15, Math.max(-16, Math.round(key[channel]! / unit) + 0)))); // prettier-ignore
  const rest = spreadChannels(withoutCounts(key, apart, counts));
  const scale = roundScaleUp(largest(rest));
  return { bytes: toBytes(rest, scale), scale, counts };
}

/** q . k of a query and a key as int8 pages hold them. */
export function storedScore(query: readonly number[], { bytes, scale, counts }: ReturnType<typeof quantizeKey>): number {
  const channels = [...Array.from(bytes, (byte) => (byte / 127) * scale), ...counts];
  return query.reduce((sum, value, i) => sum + value * channels[i]!, 0);
}

const largest = (values: readonly number[]): number => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);

const toBytes = (values: readonly number[], scale: number): Int8Array =>
  Int8Array.from(values, (value) => (scale === 0 ? 0 : Math.floor((127 * value) / scale + 0.5)));

/** A value's channels as signed bytes of the largest magnitude, which is the scale. */
export function quantizeValue(values: readonly number[]): { readonly bytes: Int8Array; readonly scale: number } {
  const scale = Math.fround(largest(values));
  return { bytes: toBytes(values, scale), scale };
}

/** Numbers as int8 pages hold them: words, what their bytes stand for (in the layout of keys or values), and a key's counts by slot and head. */
export interface Int8Pages {
  readonly words: Uint32Array;
  readonly values: Float32Array;
  readonly counts: ReadonlyMap<string, readonly number[]>;
}

/** Pages `values` of keys (spread already; `count` gives what is apart) or values. */
export function int8Pages(layout: KVLayout, side: 'key' | 'value', values: ArrayLike<number>, count = (): number => 0): Int8Pages {
  const { kvHeads, headDim, pageSize } = layout;
  const words = int8Words(layout);
  const index = side === 'key' ? keyIndex : valueIndex;
  const slots = values.length / (kvHeads * headDim);
  const packed = new Uint32Array((slots / pageSize) * words.count);
  const bytes = new Int8Array(packed.buffer);
  const read = new Float32Array(values.length);
  const counts = new Map<string, readonly number[]>();
  for (let slot = 0; slot < slots; slot++) {
    for (let head = 0; head < kvHeads; head++) {
      const at = Array.from({ length: headDim }, (_, d) => index(layout, slot, head, d));
      const given = at.map((i) => values[i]!);
      const scale = side === 'key' ? roundScaleUp(largest(given)) : Math.fround(largest(given));
      toBytes(given, scale).forEach((byte, d) => {
        bytes[words[side](slot, head, d >> 2) * 4 + (d & 3)] = byte;
        read[at[d]!] = (byte / 127) * scale;
      });
      const apart = [count(), count(), count(), count()];
      counts.set(`${slot} ${head}`, apart);
      if (side === 'key') packed[words.last(slot, head)] = packKeyWord(scale, apart);
      else new Float32Array(packed.buffer)[words.last(slot, head)] = scale;
    }
  }
  return { words: packed, values: read, counts };
}
