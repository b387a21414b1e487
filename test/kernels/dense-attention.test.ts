import { denseAttention, denseStore } from '../../engine/ops/dense-attention.ts';
import * as reference from '../reference/dense-attention.ts';
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
          denseAttention(rec, { q, k, v, out: t['out']!, heads, headDim, queries, keys, scale });
        },
        expected: {
          out: reference.denseAttention({
            q: qkv.values, k: qkv.values, v: qkv.values, heads, headDim, queries, ranges: [[0, keys]], scale,
            strides: { q: 3 * width, k: 3 * width, v: 3 * width }, columns: { q: 0, k: width, v: 2 * width },
          }), // prettier-ignore
        },
      };
    },
  };
}

/** Rows of several sequences, each with its own part of a cache [S, 2 C]; rows after the parts are NaN and must not be read. */
function cachedCase(ranges: readonly (readonly [number, number])[], queries: number, heads: number, headDim: number): KernelCase {
  const width = heads * headDim;
  return {
    name: `dense_attention reads ranges ${ranges.map(([first, count]) => `${first}+${count}`).join(', ')} for ${queries} queries each`,
    build(rng) {
      const rows = Math.max(...ranges.map(([first, count]) => first + count));
      const q = randomTensor(rng, [ranges.length * queries, width]);
      const cache = randomTensor(rng, [rows + 3, 2 * width]);
      cache.values.fill(NaN, rows * 2 * width);
      const scale = headDim ** -0.5;
      return {
        inputs: { q, cache, ranges: { dtype: 'u32', shape: [ranges.length, 2], values: ranges.flat() } },
        outputs: { out: { dtype: 'f32', shape: [ranges.length * queries, width] } },
        run(rec, t) {
          const tensor = t['cache']!;
          const args = { q: { tensor: t['q']! }, k: { tensor }, v: { tensor, column: width }, out: t['out']!, ranges: t['ranges']! };
          denseAttention(rec, { ...args, heads, headDim, queries, sequences: ranges.length });
        },
        expected: {
          out: reference.denseAttention({
            q: q.values, k: cache.values, v: cache.values, heads, headDim, queries, ranges, scale,
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
for (const size of [1, 3, 8, 63, 64, 65, 257]) cases.push(encoderCase(size, size, 2, 64));
cases.push(
  encoderCase(1, 257, 3, 20),
  encoderCase(65, 33, 1, 4),
  encoderCase(33, 64, 2, 128),
  // Scores of +-60 and more: an overflow of exp or a wrong maximum shows.
  encoderCase(9, 65, 2, 12, 10),
  cachedCase([[0, 1]], 1, 2, 64),
  cachedCase([[64, 63], [0, 65], [130, 3]], 1, 4, 64), // prettier-ignore
  cachedCase([[10, 40], [0, 9]], 9, 2, 20), // prettier-ignore
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

const gpuCases = [encoderCase(65, 65, 2, 64), encoderCase(33, 64, 2, 128), encoderCase(9, 33, 3, 20), cachedCase([[10, 40], [0, 99]], 1, 2, 64)]; // prettier-ignore

describeKernels('dense attention', [...cases, ...gpuCases.map(onGpu)]);
