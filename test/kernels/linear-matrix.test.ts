/** Products of prompts, by subgroup matrices where the adapter has them: on others these cases say that nothing changes. */
import { mul } from '../../engine/ops/elementwise.ts';
import { linear } from '../../engine/ops/linear.ts';
import { halfRows } from '../../engine/ops/linear-matrix.ts';
import type { Activation } from '../../engine/ops/activation.ts';
import type { WeightType } from '../../engine/weights/storage.ts';
import { alignUp } from '../../engine/util/math.ts';
import { activation as activate } from '../reference/activation.ts';
import { halfRows as halfRowsReference } from '../reference/half-rows.ts';
import { linear as reference } from '../reference/linear.ts';
import { anyWeight } from '../support/any-weight.ts';
import { WEIGHT_FLAVOURS, describeKernels, randomTensor } from '../support/kernel-case.ts';
import type { KernelCase } from '../support/kernel-case.ts';

interface Shape {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly dtype: WeightType;
  readonly from?: number;
  readonly extras?: boolean;
  readonly activation?: Activation;
  /** Of x. */
  readonly scale?: number;
}

function promptCase({ m, n, k, dtype, from = 0, extras = false, activation = 'none', scale = 1 }: Shape): KernelCase {
  const more = [from && `from row ${from} on`, extras && 'with all there is', scale !== 1 && `of about ${scale}`].filter(Boolean);
  return {
    name: `linear ${dtype} multiplies ${[`${m} rows of prompts of ${k}`, ...more].join(', ')}, by ${n} columns`,
    // Values of x, and weights in blocks, are rounded to 11 bits.
    tolerance: 3e-7,
    build(rng) {
      const x = randomTensor(rng, [m, alignUp(k, 4)], scale);
      const weight = anyWeight(rng, dtype, n, k);
      const first = extras ? 9 : 0;
      const [bias, residual] = [randomTensor(rng, [n]), randomTensor(rng, [m, n + first])];
      const unpadded = Float32Array.from({ length: m * k }, (_, i) => x.values[Math.floor(i / k) * alignUp(k, 4) + (i % k)]!);
      const product = reference(unpadded, Float32Array.from(weight.values), m, n, k);
      const before = new Float32Array(m * (n + first)).fill(7);
      const expected = before.map((value, at) => {
        const [row, column] = [Math.floor(at / (n + first)), (at % (n + first)) - first];
        if (column < 0) return value;
        const sum = product[row * n + column]!;
        return extras ? activate(activation, sum + bias.values[column]!) + residual.values[at]! : sum;
      });
      return {
        inputs: { x, bias, residual },
        outputs: { out: { dtype: 'f32', shape: [m, n + first], initial: before } },
        run(rec, t, device) {
          const given = extras && { bias: t['bias']!, residual: t['residual']!, activation };
          linear(rec, { x: t['x']!, weight: weight.pack(device), out: t['out']!, outColumn: first, promptFrom: from, ...given });
        },
        expected: { out: expected },
      };
    },
  };
}

/** What each row gives alone, as a prompt's or as an answer's, is taken off what it gives among the others. */
function alikeCase(dtype: WeightType, m: number, from: number, k: number): KernelCase {
  const n = 72;
  return {
    name: `linear ${dtype} gives ${m} rows of ${k}, prompts from row ${from} on, the bits that each has alone`,
    tolerance: 0,
    build(rng) {
      const weight = anyWeight(rng, dtype, n, k);
      return {
        inputs: { x: randomTensor(rng, [m, k]), minus: { dtype: 'f32', shape: [1], values: [-1] }, alone: { dtype: 'f32', shape: [m, 128], values: new Float32Array(m * 128) } }, // prettier-ignore
        outputs: { out: { dtype: 'f32', shape: [m, 128], initial: new Float32Array(m * 128) } },
        run(rec, t, device) {
          const [x, alone] = [t['x']!, t['alone']!];
          const packed = weight.pack(device);
          for (let row = 0; row < m; row++) {
            const [own, out] = [x.rows(row, row + 1), alone.rows(row, row + 1)];
            linear(rec, { x: own, weight: packed, out, promptFrom: row < from ? 1 : 0 });
          }
          const negated = device.tensor('negated', 'f32', [m, 128]);
          mul(rec, { a: alone, b: t['minus']!, out: negated });
          linear(rec, { x, weight: packed, residual: negated, out: t['out']!, promptFrom: from });
        },
        expected: { out: new Float32Array(m * 128) },
      };
    },
  };
}

function halfRowsCase(rows: number, columns: number, firstRow = 0, scale = 1): KernelCase {
  const padded = alignUp(columns, 32);
  return {
    name: `half_rows rounds ${rows} rows of ${columns} of about ${scale}, from row ${firstRow} on`,
    tolerance: 0,
    build(rng) {
      const x = randomTensor(rng, [firstRow + rows, columns], scale);
      // A row of zeros, and one with a value that half precision does not hold beside much larger ones.
      x.values.fill(0, firstRow * columns, (firstRow + 1) * columns);
      if (rows > 1) x.values.set([1e-12 * scale, 3 * scale], (firstRow + 1) * columns);
      const expected = halfRowsReference(x.values.subarray(firstRow * columns), rows, columns);
      const halves = Float32Array.from({ length: rows * padded }, (_, i) =>
        i % padded < columns ? expected.halves[Math.floor(i / padded) * columns + (i % padded)]! : 0,
      );
      return {
        inputs: { x },
        outputs: { halves: { dtype: 'f16', shape: [rows, padded] }, scales: { dtype: 'f32', shape: [rows] } },
        run: (rec, t) => halfRows(rec, { x: t['x']!, halves: t['halves']!, scales: t['scales']!, firstRow, rows }),
        expected: { halves, scales: expected.scales },
      };
    },
  };
}

const SIZES = [1, 3, 63, 64, 65, 257];
const cases: KernelCase[] = [];
for (const m of SIZES) cases.push(promptCase({ m, n: 65, k: 64, dtype: 'f16' }));
for (const n of SIZES) cases.push(promptCase({ m: 33, n, k: 96, dtype: 'f16' }));
for (const k of SIZES) cases.push(promptCase({ m: 40, n: 40, k, dtype: 'f16' }));
for (const dtype of ['Q8_0', 'Q4_0', 'Q4_K', 'Q6_K', 'I8', 'MXFP4'] as const)
  for (const [m, from] of [[70, 0], [67, 2], [9, 8]] as const) cases.push(promptCase({ m, n: 65, k: 256, dtype, from })); // prettier-ignore
for (const m of [1, 40]) cases.push(promptCase({ m, n: 130, k: 260, dtype: 'f16', extras: true, activation: 'gelu' }));
cases.push(
  promptCase({ m: 40, n: 65, k: 256, dtype: 'Q4_K', from: 3, extras: true, activation: 'silu' }),
  promptCase({ m: 40, n: 65, k: 256, dtype: 'f32', from: 3 }),
  promptCase({ m: 40, n: 65, k: 256, dtype: 'f16', scale: 1e30 }),
  promptCase({ m: 40, n: 65, k: 256, dtype: 'f16', scale: 1e-30 }),
  // More than is held as halves at once.
  promptCase({ m: 1100, n: 9, k: 8192, dtype: 'f16', from: 5 }),
);
const alike = [alikeCase('f16', 40, 7, 192), alikeCase('Q4_K', 70, 33, 256), alikeCase('f16', 9, 8, 1088)];
const halves = [
  halfRowsCase(1, 64),
  halfRowsCase(3, 260),
  halfRowsCase(65, 68, 2),
  halfRowsCase(5, 1100, 1, 1e30),
  halfRowsCase(5, 36, 0, 1e-36),
];

describeKernels('linear of prompts', cases, { flavours: WEIGHT_FLAVOURS });
describeKernels('linear of prompts in batches', alike, { every: true });
describeKernels('half_rows', halves, { every: true });
