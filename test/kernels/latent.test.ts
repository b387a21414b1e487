/** Multi-head latent attention: queries and keys of two parts, and a product for each head. (Attention itself: paged-attention.test.ts.) */
import { expect, test } from 'vitest';
import { NO_SLOT, createKVCache, growKVCache, pageBytes } from '../../engine/ops/kv.ts';
import { createHeadTiles, headLinear, latentQueries, latentStore } from '../../engine/ops/latent.ts';
import { packLinear } from '../../engine/ops/pack-linear.ts';
import { ropeFrequencies, ropeTable } from '../../engine/ops/rope.ts';
import { keyIndex } from '../reference/kv.ts';
import * as reference from '../reference/latent.ts';
import { linear } from '../reference/linear.ts';
import { testDevice } from '../support/device.ts';
import { describeKernels, randomTensor, roundToF16 } from '../support/kernel-case.ts';
import type { KernelCase } from '../support/kernel-case.ts';

const PAGE = 16;
const PAGES = 6;

interface Shape {
  readonly rows: number;
  readonly heads: number;
  readonly rank: number;
  readonly rotary: number;
}

const placesOf = (rows: number): number[] => Array.from({ length: rows }, (_, t) => (t * 37) % 500);
const rope = (headDim: number) => ({ theta: 10_000, headDim, scaling: undefined });
const frequenciesOf = (headDim: number): Float32Array => Float32Array.from(ropeFrequencies(rope(headDim)));

function queriesCase({ rows, heads, rank, rotary }: Shape): KernelCase {
  return {
    name: `latent_queries handles ${rows} rows of ${heads} heads of ${rank} and ${rotary}`,
    build(rng) {
      const [latent, turned] = [randomTensor(rng, [rows, heads * rank]), randomTensor(rng, [rows, heads * rotary])];
      const places = placesOf(rows);
      return {
        inputs: { latent, turned, positions: { dtype: 'u32', shape: [rows], values: places } },
        outputs: { q: { dtype: 'f32', shape: [rows, heads * (rank + rotary)] } },
        run(rec, t, device) {
          const cosSin = ropeTable(device, rope(rotary), 500);
          const given = { latent: t['latent']!, rotary: t['turned']!, positions: t['positions']!, q: t['q']! };
          latentQueries(rec, { sizes: { rank, rotary }, ...given, cosSin, heads, rows });
        },
        expected: { q: reference.latentQueries(latent.values, turned.values, { rank, rotary }, places, frequenciesOf(rotary)) },
      };
    },
  };
}

function storeCase({ rows, rank, rotary }: Shape, dtype: 'f32' | 'f16'): KernelCase {
  return {
    name: `latent_store ${dtype} handles ${rows} rows of ${rank} and ${rotary}`,
    // A half has 11 bits.
    tolerance: dtype === 'f16' ? 1e-6 : 1e-7,
    build(rng) {
      const columns = rank + rotary;
      const [x, norm] = [randomTensor(rng, [rows, columns], 3), randomTensor(rng, [rank])];
      // Slots in no order, the second row is padding.
      const slots = Array.from({ length: rows }, (_, t) => (t === 1 ? undefined : (t * 7) % (PAGES * PAGE)));
      const places = placesOf(rows);
      const initial = randomTensor(rng, [PAGES, 1, columns, PAGE]).values;
      const k = Float64Array.from(dtype === 'f16' ? roundToF16(initial) : initial);
      const keys = reference.latentKeys(
        x.values,
        norm.values,
        { rank, rotary },
        { positions: places, frequencies: frequenciesOf(rotary), eps: 1e-6 },
      );
      const layout = { kvHeads: 1, headDim: columns, pageSize: PAGE };
      slots.forEach((slot, t) => {
        for (let d = 0; d < columns && slot !== undefined; d++) k[keyIndex(layout, slot, 0, d)] = keys[t * columns + d]!;
      });
      return {
        inputs: {
          x,
          norm,
          positions: { dtype: 'u32', shape: [rows], values: places },
          slots: { dtype: 'u32', shape: [rows], values: slots.map((slot) => slot ?? NO_SLOT) },
        },
        outputs: { k: { dtype, shape: [PAGES, 1, columns, PAGE], initial } },
        run(rec, t, device) {
          const cosSin = ropeTable(device, rope(rotary), 500);
          const layer = { kvHeads: 1, headDim: columns, valuesInKeys: rank, k: t['k']!, v: t['k']! };
          const kv = { dtype, pages: PAGES, limit: PAGES, pageSize: PAGE, layers: [layer] };
          const given = { x: t['x']!, norm: t['norm']!, positions: t['positions']!, slots: t['slots']! };
          latentStore(rec, { sizes: { rank, rotary }, eps: 1e-6, cosSin, ...given, kv, layer: 0, rows });
        },
        expected: { k },
      };
    },
  };
}

function productCase(rows: number, heads: number, width: number, columns: number, room = rows): KernelCase {
  return {
    name: `expert_linear of ${heads} heads: ${rows} rows of ${width}, ${columns} columns${room > rows ? `, in room for ${room}` : ''}`,
    // Sums of f32 in another order.
    tolerance: 1e-11,
    build(rng) {
      const [x, weight] = [randomTensor(rng, [rows, heads * width]), randomTensor(rng, [heads * columns, width])];
      const expected = Array.from({ length: rows * heads }, (_, i) => [
        ...linear(x.values.subarray(i * width, (i + 1) * width), weight.values.subarray((i % heads) * columns * width), 1, columns, width),
      ]);
      return {
        inputs: { x },
        outputs: { out: { dtype: 'f32', shape: [rows, heads * columns] } },
        run(rec, t, device) {
          const tiles = createHeadTiles((...given) => device.upload(...given), heads, room);
          const packed = packLinear(device, 'weight', weight.values, heads * columns, width, 'f32');
          headLinear(rec, { x: t['x']!, weight: packed, tiles, out: t['out']!, rows });
        },
        expected: { out: expected.flat() },
      };
    },
  };
}

const shapes: Shape[] = [
  { rows: 1, heads: 1, rank: 8, rotary: 8 },
  { rows: 3, heads: 5, rank: 32, rotary: 8 },
  { rows: 65, heads: 4, rank: 256, rotary: 32 },
  { rows: 2, heads: 16, rank: 512, rotary: 64 },
];

describeKernels('latent attention', [
  ...shapes.map(queriesCase),
  ...shapes.flatMap((shape) => [storeCase(shape, 'f32'), storeCase(shape, 'f16')]),
  ...[1, 2, 3, 4, 5, 63].map((rows) => productCase(rows, 5, 12, 20)),
  productCase(9, 16, 128, 65, 40),
]);

test('values in keys take no pages, grow once, and are not stored in bytes', async () => {
  const layers = [{ kvHeads: 1, headDim: 40, valuesInKeys: 32 }];
  expect(pageBytes({ layers, pageSize: PAGE, dtype: 'f16' })).toEqual({ all: 2 * PAGE * 40, largest: 2 * PAGE * 40 });
  const device = await testDevice();
  const kv = createKVCache(device, { layers, pageSize: PAGE, dtype: 'f16' }, 7, 2);
  const [layer] = kv.layers;
  expect(layer!.v).toBe(layer!.k);
  device.write(layer!.k, new Uint16Array(layer!.k.size).fill(7));
  const { buffers } = device.stats;
  expect(growKVCache(device, kv, 3)).toBe(true);
  expect(layer!.v).toBe(layer!.k);
  const grown = await device.read(layer!.k);
  expect([...new Set(grown.subarray(0, 2 * PAGE * 40))]).toEqual([7]);
  // Staging for the read.
  expect(device.stats.buffers - buffers).toBeLessThanOrEqual(1);
  expect(() => createKVCache(device, { layers, pageSize: PAGE, dtype: 'int8' }, 7)).toThrow(/cannot be stored in bytes/);
  device.close();
});
