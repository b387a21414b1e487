import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import { cacheInTexels, denseAttention, denseStore, denseTileRows } from '../../engine/ops/dense-attention.ts';
import { inTexels } from '../../engine/ops/texels.ts';
import { ceilDiv } from '../../engine/util/math.ts';
import { createRng } from '../../engine/util/rng.ts';
import * as reference from '../reference/dense-attention.ts';
import { testDevice } from '../support/device.ts';
import { describeKernels, randomTensor } from '../support/kernel-case.ts';
import type { KernelCase } from '../support/kernel-case.ts';

/** Self attention over a merged projection, as encoders do. */
function encoderCase(queries: number, keys: number, heads: number, headDim: number, scale = headDim ** -0.5): KernelCase {
  const width = heads * headDim;
  return {
    name: `dense_attention handles ${queries} queries, ${keys} keys, ${heads} heads of ${headDim} channels, scale ${scale.toFixed(3)}`,
    build(rng) {
      const rows = Math.max(queries, keys);
      const qkv = randomTensor(rng, [rows, 3 * width]);
      return {
        inputs: { qkv },
        outputs: { out: { dtype: 'f32', shape: [queries, width] } },
        run(rec, t) {
          const tensor = t['qkv']!;
          const [q, k, v] = [{ tensor }, { tensor, column: width }, { tensor, column: 2 * width }];
          denseAttention(rec, { q, k, v, out: t['out']!, heads, headDim, over: { queries, keys }, scale });
        },
        expected: {
          out: reference.denseAttention({
            q: qkv.values, k: qkv.values, v: qkv.values, heads, headDim, tiles: [[0, keys, 0, queries]], scale,
            strides: { q: 3 * width, k: 3 * width, v: 3 * width }, columns: { q: 0, k: width, v: 2 * width },
          }), // prettier-ignore
        },
      };
    },
  };
}

/** Rows of several sequences, each with its own part of a cache [S, 2 C]; rows after the parts are NaN and must not be read. `texels`: in a texture, where it may lie there. */
function cachedCase(tiles: readonly reference.AttentionTile[], heads: number, headDim: number, texels = false): KernelCase {
  const width = heads * headDim;
  return {
    name: `dense_attention takes tiles ${tiles.map(([key, keys, row, rows]) => `${row}+${rows} x ${key}+${keys}`).join(', ')}, ${heads} heads of ${headDim}${texels ? ', in a texture' : ''}`,
    build(rng) {
      const keys = Math.max(...tiles.map(([first, count]) => first + count));
      const rows = Math.max(...tiles.map(([, , first, count]) => first + count));
      const q = randomTensor(rng, [rows, width]);
      const cache = randomTensor(rng, [keys + 3, 2 * width]);
      cache.values.fill(NaN, keys * 2 * width);
      const scale = headDim ** -0.5;
      return {
        inputs: { q, cache, tiles: { dtype: 'u32', shape: [tiles.length, 4], values: tiles.flat() } },
        outputs: { out: { dtype: 'f32', shape: [rows, width] } },
        run(rec, t, device) {
          const cache = t['cache']!;
          const tensor = texels && cacheInTexels(rec.caps, [keys + 3, 2 * width], 64) ? inTexels(device, cache) : cache;
          const over = { tiles: t['tiles']!, count: tiles.length, rows: Math.max(...tiles.map((tile) => tile[3])) };
          denseAttention(rec, {
            q: { tensor: t['q']! },
            k: { tensor },
            v: { tensor, column: width },
            out: t['out']!,
            heads,
            headDim,
            over,
          });
        },
        expected: {
          out: reference.denseAttention({
            q: q.values, k: cache.values, v: cache.values, heads, headDim, tiles, scale,
            strides: { q: width, k: 2 * width, v: 2 * width }, columns: { q: 0, k: 0, v: width },
          }), // prettier-ignore
        },
      };
    },
  };
}

const storeCase: KernelCase = {
  name: 'dense_store writes the keys and values of 3 rows and nothing else',
  tolerance: 0,
  build(rng) {
    const x = randomTensor(rng, [3, 36]);
    const cache = randomTensor(rng, [10, 24]);
    const slots = [7, 0, 9];
    return {
      inputs: { x, slots: { dtype: 'u32', shape: [3], values: slots } },
      outputs: { cache: { dtype: 'f32', shape: [10, 24], initial: cache.values } },
      run: (rec, t) => denseStore(rec, { x: t['x']!, column: 12, slots: t['slots']!, cache: t['cache']!, rows: 3 }),
      expected: { cache: reference.denseStore(cache.values, x.values, 36, 12, slots, 24) },
    };
  },
};

const cases: KernelCase[] = [storeCase];
for (const size of [1, 3, 8, 9, 24, 25, 63, 64, 65, 257]) cases.push(encoderCase(size, size, 2, 64));
cases.push(
  encoderCase(1, 257, 3, 20),
  encoderCase(50, 31, 3, 64),
  encoderCase(26, 129, 2, 64, 10),
  encoderCase(65, 33, 1, 4),
  encoderCase(33, 64, 2, 128),
  // Scores of +-60 and more: an overflow of exp or a wrong maximum shows.
  encoderCase(9, 65, 2, 12, 10),
  cachedCase([[0, 1, 0, 1]], 2, 64),
  cachedCase([[64, 63, 0, 1], [0, 65, 1, 1], [130, 3, 2, 1]], 4, 64), // prettier-ignore
  cachedCase([[10, 40, 0, 3], [0, 9, 3, 1], [60, 65, 4, 4], [0, 33, 8, 2]], 2, 20), // prettier-ignore
  cachedCase([[1, 130, 5, 4], [0, 70, 0, 2], [0, 70, 2, 3]], 4, 64), // prettier-ignore
  cachedCase([[64, 63, 0, 1], [0, 65, 1, 1], [130, 3, 2, 1]], 4, 64, true), // prettier-ignore
  cachedCase([[10, 40, 0, 3], [0, 9, 3, 1], [60, 65, 4, 4], [0, 33, 8, 2]], 4, 20, true), // prettier-ignore
  cachedCase([[1, 130, 5, 4], [0, 70, 0, 2], [0, 70, 2, 3]], 4, 64, true), // prettier-ignore
);

/** The same case with the variants a GPU gets, which run here too. */
function onGpu(kernelCase: KernelCase): KernelCase {
  return {
    ...kernelCase,
    name: `${kernelCase.name}, in a GPU's variant`,
    build(rng) {
      const data = kernelCase.build(rng);
      return {
        ...data,
        run(rec, tensors, device) {
          Object.assign(rec, { caps: { ...rec.caps, family: 'generic' } });
          data.run(rec, tensors, device);
        },
      };
    },
  };
}

const gpuCases = [encoderCase(65, 65, 2, 64), encoderCase(33, 64, 2, 128), encoderCase(9, 33, 3, 20), cachedCase([[10, 40, 0, 1], [0, 99, 1, 1]], 2, 64), cachedCase([[10, 40, 0, 4], [0, 99, 4, 2]], 2, 64)]; // prettier-ignore

describeKernels('dense attention', [...cases, ...gpuCases.map(onGpu)]);

describe('dense attention gives the same bits', () => {
  let device: Device;
  beforeAll(async () => {
    device = await testDevice();
  });
  afterAll(() => device.close());

  test('whether rows of a sequence are computed one by one or in tiles', async () => {
    const [heads, headDim, rows, keys] = [2, 64, 7, 150];
    const width = heads * headDim;
    const rng = createRng(5);
    const q = device.upload('q', 'f32', [rows, width], randomTensor(rng, [rows, width], 2).values);
    const tensor = device.upload('cache', 'f32', [keys, 2 * width], randomTensor(rng, [keys, 2 * width]).values);
    const compute = async (tileRows: number): Promise<Uint32Array> => {
      const count = ceilDiv(rows, tileRows);
      const words = Array.from({ length: count }, (_, i) => [0, keys, i * tileRows, Math.min(tileRows, rows - i * tileRows)]).flat();
      const tiles = device.upload('tiles', 'u32', [count, 4], Uint32Array.from(words));
      const out = device.tensor('out', 'f32', [rows, width]);
      const rec = device.record('attention');
      const over = { tiles, count, rows: tileRows };
      denseAttention(rec, { q: { tensor: q }, k: { tensor }, v: { tensor, column: width }, out, heads, headDim, over });
      rec.submit();
      const values = await device.read(out);
      return new Uint32Array(values.buffer, 0, values.length);
    };
    const alone = await compute(1);
    expect(alone.some((word) => word !== 0)).toBe(true);
    expect(await compute(3)).toEqual(alone);
    expect(await compute(Math.min(rows, denseTileRows(device.caps, headDim)))).toEqual(alone);
    expect(device.errors).toEqual([]);
  });
});
