/** Weights in blocks of few bits: every type's values bit for bit as the file means them, and their products. */
import { mul } from '../../engine/ops/elementwise.ts';
import { embedding } from '../../engine/ops/embedding.ts';
import { linear } from '../../engine/ops/linear.ts';
import type { WordPlace } from '../../engine/ops/weight-place.ts';
import { BLOCK_FORMATS } from '../../engine/weights/block-types.ts';
import type { BlockType } from '../../engine/weights/block-types.ts';
import { linear as reference } from '../reference/linear.ts';
import { WEIGHT_FLAVOURS, describeKernels, randomTensor } from '../support/kernel-case.ts';
import type { KernelCase } from '../support/kernel-case.ts';
import { randomBlocks } from '../support/random-blocks.ts';
import { packStored } from '../support/pack-stored.ts';
import { THOROUGH } from '../support/thorough.ts';

const TYPES = Object.keys(BLOCK_FORMATS) as BlockType[];

/** Looks every row up, so that every value shows. */
function valuesCase(type: BlockType, rows: number, columns: number): KernelCase {
  return {
    name: `embedding ${type} gives the values of ${rows} rows of ${columns}, edges included`,
    // Exact but for scales of MXFP4 that are denormal numbers, which an adapter may take for zero.
    tolerance: type === 'MXFP4' ? 1e-30 : 0,
    build(rng) {
      const { bytes, values } = randomBlocks(rng, type, rows * columns, true);
      const ids = Array.from({ length: rows }, (_, i) => rows - 1 - i);
      return {
        inputs: { ids: { dtype: 'u32', shape: [rows], values: ids } },
        outputs: { out: { dtype: 'f32', shape: [rows, columns] } },
        run: (rec, t, device) =>
          embedding(rec, { ids: t['ids']!, table: packStored(device, type, bytes, rows, columns, type), out: t['out']! }),
        expected: { out: ids.flatMap((id) => [...values.subarray(id * columns, (id + 1) * columns)]) },
      };
    },
  };
}

function productCase(type: BlockType, m: number, k: number, n: number, place?: WordPlace): KernelCase {
  return {
    name: `linear ${type}${place ? ` in a ${place}` : ''} multiplies ${m} rows of ${k} by ${n} columns`,
    // Sums of f32 in another order.
    tolerance: 1e-11,
    build(rng) {
      const x = randomTensor(rng, [m, k]);
      const { bytes, values } = randomBlocks(rng, type, n * k);
      return {
        inputs: { x },
        outputs: { out: { dtype: 'f32', shape: [m, n] } },
        run: (rec, t, device) => linear(rec, { x: t['x']!, weight: packStored(device, type, bytes, n, k, type, place), out: t['out']! }),
        expected: { out: reference(x.values, values, m, n, k) },
      };
    },
  };
}

/** What each row gives alone is taken off what it gives among the others. */
function batchCase(type: BlockType, m: number, k: number, n: number, place?: WordPlace): KernelCase {
  return {
    name: `linear ${type}${place ? ` in a ${place}` : ''} gives ${m} rows of ${k} the bits that each has alone`,
    tolerance: 0,
    build(rng) {
      const { bytes } = randomBlocks(rng, type, n * k);
      const none = { dtype: 'f32', shape: [m, n], values: new Float32Array(m * n) } as const;
      return {
        inputs: { x: randomTensor(rng, [m, k]), minus: { dtype: 'f32', shape: [1], values: [-1] }, alone: none, negated: none },
        outputs: { out: { dtype: 'f32', shape: [m, n] } },
        run(rec, t, device) {
          const [x, alone, negated] = [t['x']!, t['alone']!, t['negated']!];
          const weight = packStored(device, type, bytes, n, k, type, place);
          for (let row = 0; row < m; row++) linear(rec, { x: x.rows(row, row + 1), weight, out: alone.rows(row, row + 1) });
          mul(rec, { a: alone, b: t['minus']!, out: negated });
          linear(rec, { x, weight, residual: negated, out: t['out']! });
        },
        expected: { out: new Float32Array(m * n) },
      };
    },
  };
}

/** A pipeline a type takes up to a second to compile on a software adapter. */
const FEW: readonly BlockType[] = ['Q8_0', 'Q4_K', 'Q6_K', 'IQ2_XS', 'I8'];

const cases: KernelCase[] = [];
// An odd number of blocks, where a word of scales is half empty, and all places in a word of codes.
for (const type of TYPES) cases.push(valuesCase(type, 11, BLOCK_FORMATS[type].values === 32 ? 96 : 256));
for (const type of THOROUGH ? TYPES : FEW)
  for (const m of THOROUGH || type === 'Q4_K' ? [1, 2, 5, 33] : [1, 33]) cases.push(productCase(type, m, 256, 65));
for (const m of [2, 5, 33, 70]) cases.push(batchCase('Q4_K', m, 256, 64), batchCase('Q6_K', m, 256, 64));
// So wide that one row takes more columns an invocation, and the last group has a few of its own.
cases.push(productCase('Q8_0', 70, 256, 65), productCase('Q4_0', 1, 32, 3100), batchCase('Q4_K', 2, 256, 3136));

describeKernels('blocks', cases, { flavours: WEIGHT_FLAVOURS });
// Where an adapter would have them in buffers, too: by all kernels.
describeKernels(
  'blocks in textures',
  [
    ...[1, 2, 5, 33, 70].map((m) => productCase(m === 2 ? 'Q6_K' : 'Q4_K', m, 256, 65, 'texture')),
    // Codes that are scaled a block at once, with an offset and without, of several groups of columns and an odd number of blocks.
    ...[1, 2, 9].flatMap((m) => [productCase('Q4_0', m, 288, 130, 'texture'), productCase('Q4_1', m, 288, 130, 'texture')]),
    ...[2, 5, 33, 70].map((m) => batchCase(m === 5 ? 'Q4_0' : 'Q4_K', m, 256, 192, 'texture')),
  ],
  { every: true },
);
