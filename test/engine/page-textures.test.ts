/** Pages in textures: what is stored in them, and what attention makes of it, bit for bit as with pages in buffers, whose cases compare with plain loops. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import type { TypedArray } from '../../engine/gpu/tensor.ts';
import { NO_SLOT, createKVCache, growKVCache, ropeKVStore } from '../../engine/ops/kv.ts';
import type { KVCache } from '../../engine/ops/kv.ts';
import { attentionTileRows, pagedAttention } from '../../engine/ops/paged-attention.ts';
import type { AttentionScores } from '../../engine/ops/paged-attention.ts';
import { ropeTable } from '../../engine/ops/rope.ts';
import { pagePlace } from '../../engine/ops/weight-place.ts';
import { ceilDiv } from '../../engine/util/math.ts';
import { createRng } from '../../engine/util/rng.ts';
import { testDevice } from '../support/device.ts';
import { randomTensor } from '../support/kernel-case.ts';
import { quadPlaces, readPages, writePages } from '../support/pages.ts';

const PAGE = 16;

interface Shape {
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly scores?: AttentionScores;
  readonly hasSinks?: boolean;
}

const SHAPES: readonly Shape[] = [
  { heads: 4, kvHeads: 2, headDim: 64 },
  { heads: 7, kvHeads: 1, headDim: 64, hasSinks: true },
  { heads: 6, kvHeads: 3, headDim: 16, scores: { window: 30, softCap: 1.5 } },
  { heads: 2, kvHeads: 2, headDim: 80, scores: { growth: { rate: 0.4, span: 9 } } },
  { heads: 4, kvHeads: 4, headDim: 96 },
  { heads: 4, kvHeads: 2, headDim: 128 },
  { heads: 4, kvHeads: 1, headDim: 256, scores: { window: 300 } },
];

/** Positions of one sequence: beyond one part of attention. */
const LENGTH = 270;
/** Of which the last are prompts' and decodes' rows. */
const ROWS = 19;

/** Stores a sequence and attends to it in tiles, row by row and in parts; `before` is what the pages hold at first. */
async function run(device: Device, { heads, kvHeads, headDim, scores, hasSinks }: Shape) {
  const rng = createRng(headDim);
  const words = (shape: readonly number[], value: (i: number) => number) =>
    device.upload(
      'words',
      'u32',
      shape,
      Uint32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => value(i)),
    );
  const pages = ceilDiv(LENGTH, PAGE) + 1;
  const kv = createKVCache(device, { layers: [{ kvHeads, headDim }], pageSize: PAGE, dtype: 'f16' }, pages);
  const { k, v } = kv.layers[0]!;
  for (const tensor of [k, v]) writePages(device, tensor, new Uint32Array(tensor.byteLength / 4).fill(0x3c003c00));
  const width = (heads + 2 * kvHeads) * headDim;
  const qkv = device.upload('qkv', 'f32', [LENGTH, width], randomTensor(rng, [LENGTH, width]).values);
  // Pages in no order, the first position is padding.
  const page = (i: number): number => (i * 5 + 3) % pages;
  const slots = words([LENGTH], (s) => (s === 0 ? NO_SLOT : page(Math.floor(s / PAGE)) * PAGE + (s % PAGE)));
  const q = device.tensor('q', 'f32', [LENGTH, heads * headDim]);
  const sinks = hasSinks ? device.upload('sinks', 'f32', [heads], randomTensor(rng, [heads], 4).values) : undefined;
  const rec = device.record('store and attend');
  const cosSin = ropeTable(device, { theta: 10000, headDim, scaling: undefined }, LENGTH);
  ropeKVStore(rec, { qkv, cosSin, positions: words([LENGTH], (s) => s), slots, q, kv, layer: 0, heads, rows: LENGTH });
  const blockTable = words([1, pages], page);
  const positions = words([LENGTH], (s) => s);
  const first = LENGTH - ROWS;
  const ways = [
    { tileRows: attentionTileRows(device.caps, heads, { kvHeads, headDim }), parts: 0 },
    { tileRows: 1, parts: 0 },
    { tileRows: 1, parts: 2 },
  ];
  const outs = ways.map(({ tileRows, parts }) => {
    const tileCount = ceilDiv(ROWS, tileRows);
    const from = (tile: number): number => first + tile * tileRows;
    const tiles = words([tileCount, 4], (i) => [from(i >> 2), Math.min(tileRows, LENGTH - from(i >> 2)), 0, from(i >> 2)][i & 3]!);
    const out = device.tensor('out', 'f32', [LENGTH, heads * headDim]);
    const split = parts > 0 ? { partials: device.tensor('partials', 'f32', [LENGTH * heads * parts, headDim + 4]), positions, parts, rows: LENGTH } : undefined; // prettier-ignore
    pagedAttention(rec, { q, kv, layer: 0, blockTable, tiles, firstTile: 0, tileCount, tileRows, out, heads, scores, sinks, split });
    return out;
  });
  rec.submit();
  const attended = await Promise.all(outs.map(async (out) => (await device.read(out)).subarray(first * heads * headDim)));
  return { kv, attended, q: await device.read(q), k: await readPages(device, k), v: await readPages(device, v) };
}

/** Words of pages in a texture as a buffer has them. */
function asInBuffer(side: 'key' | 'value', kv: KVCache, shape: Shape, texels: TypedArray): Uint32Array {
  const words = new Uint32Array(texels.length);
  for (let slot = 0; slot < kv.pages * PAGE; slot++) {
    for (let head = 0; head < shape.kvHeads; head++) {
      for (let quad = 0; quad < shape.headDim / 4; quad++) {
        const { buffer, texture } = quadPlaces(side, { ...shape, pageSize: PAGE }, { slot, head, quad });
        words.set(texels.subarray(2 * texture, 2 * texture + 2), 2 * buffer);
      }
    }
  }
  return words;
}

describe('pages in textures', () => {
  let device: Device;
  beforeAll(async () => {
    device = await testDevice();
  });
  afterAll(() => device.close());

  test.each(SHAPES)('$heads over $kvHeads heads of $headDim have the bits of pages in buffers', async (shape) => {
    device.pretend([]);
    // Only adapters whose subgroups are registers of eight have them there.
    const inTexture = pagePlace(device.caps, 'f16', shape.headDim, 1) === 'texture';
    const there = await run(device, shape);
    expect(there.kv.layers[0]!.k.texture !== undefined).toBe(inTexture);
    if (!inTexture) return;
    device.pretend(['textures']);
    const buffers = await run(device, shape);
    expect(buffers.kv.layers[0]!.k.texture).toBeUndefined();
    expect(there.attended.every((values) => values.some((value) => value !== 0))).toBe(true);
    expect(there.attended).toEqual(buffers.attended);
    expect(there.q).toEqual(buffers.q);
    for (const [side, name] of [['key', 'k'], ['value', 'v']] as const) {
      const halves = buffers[name];
      expect(asInBuffer(side, there.kv, shape, there[name])).toEqual(new Uint32Array(halves.buffer, halves.byteOffset, halves.byteLength / 4));
    } // prettier-ignore
    expect(device.errors).toEqual([]);
  });

  test('lie in buffers where they are not halves, a head is no whole texels, or there may be more than a texture holds', () => {
    device.pretend([]);
    const { caps } = device;
    for (const [dtype, headDim, bytes] of [['f32', 64, 1], ['int8', 64, 1], ['f16', 24, 1], ['f16', 64, caps.maxTexels * 16 + 1]] as const) {
      expect(pagePlace(caps, dtype, headDim, bytes)).toBe('buffer');
    } // prettier-ignore
    expect(pagePlace({ ...caps, family: 'generic' }, 'f16', 64, 1)).toBe('buffer');
    expect(pagePlace({ ...caps, avoid: new Set(['pages_texture']) }, 'f16', 64, 1)).toBe('buffer');
  });

  test.each([16, 64])('more pages hold what the first ones held, heads of %i', async (headDim) => {
    device.pretend([]);
    // Pages of less than a row of texels, and of more.
    const kv = createKVCache(device, { layers: [{ kvHeads: 2, headDim }], pageSize: PAGE, dtype: 'f16' }, 60, 3);
    const layer = kv.layers[0]!;
    const words = Uint32Array.from({ length: layer.k.byteLength / 4 }, (_, i) => 7 * i);
    for (const side of ['k', 'v'] as const) writePages(device, layer[side], words);
    for (const needed of [4, 50]) {
      expect(growKVCache(device, kv, needed)).toBe(true);
      for (const side of ['k', 'v'] as const) {
        const values = await readPages(device, layer[side]);
        const read = new Uint32Array(values.buffer, values.byteOffset, values.byteLength / 4);
        expect(read.slice(0, words.length)).toEqual(words);
        expect(read.slice(words.length).every((value) => value === 0)).toBe(true);
      }
    }
    expect(device.errors).toEqual([]);
  });
});
