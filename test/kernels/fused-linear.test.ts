/** Products fused with what stands before and behind them: the numbers of the references, and bit for bit those of the kernels they stand for. */
import type { Activation } from '../../engine/ops/activation.ts';
import { gateMul } from '../../engine/ops/activation.ts';
import { add, mul } from '../../engine/ops/elementwise.ts';
import { gatedLinear, normedLinear } from '../../engine/ops/fused-linear.ts';
import { linear } from '../../engine/ops/linear.ts';
import { rmsNorm } from '../../engine/ops/norm.ts';
import { activation as activate } from '../reference/activation.ts';
import { linear as product } from '../reference/linear.ts';
import { rmsNorm as normed } from '../reference/norm.ts';
import { GPUS_WITHOUT_SUBGROUPS, WEIGHT_FLAVOURS, describeKernels, randomTensor } from '../support/kernel-case.ts';
import type { KernelCase } from '../support/kernel-case.ts';
import { anyWeight } from '../support/any-weight.ts';
import { THOROUGH } from '../support/thorough.ts';
import type { WeightType } from '../../engine/weights/storage.ts';

const EPS = 1e-5;

interface Shape {
  readonly m: number;
  readonly k: number;
  /** Outputs: of a gated product half of the weight's. */
  readonly n: number;
  readonly dtype: WeightType;
  readonly bias?: boolean;
  /** Absent = no gates. */
  readonly activation?: Activation;
  readonly norm?: boolean;
}

function nameOf({ m, k, n, dtype, bias, activation, norm = true }: Shape): string {
  const before = norm ? 'norms and ' : '';
  return `${before}multiplies ${m} rows of ${k} by ${n} ${dtype} columns${bias ? ' with bias' : ''}${activation ? ` gated by ${activation}` : ''}`;
}

/** Fused minus plain: 0 wherever the bits are the same. */
function exactCase(shape: Shape): KernelCase {
  const { m, k, n, dtype, bias = false, activation, norm = true } = shape;
  return {
    name: `${nameOf(shape)} with the bits of one after the other`,
    tolerance: 0,
    build(rng) {
      const weight = anyWeight(rng, dtype, activation ? 2 * n : n, k);
      const none = (columns: number) => ({ dtype: 'f32', shape: [m, columns], values: new Float32Array(m * columns) }) as const;
      return {
        inputs: {
          x: randomTensor(rng, [m, k], 3),
          norm: randomTensor(rng, [k]),
          bias: randomTensor(rng, [n]),
          minus: { dtype: 'f32', shape: [1], values: [-1] },
          normed: none(k),
          gateUp: none(2 * n),
          plain: none(n),
          negated: none(n),
          fused: none(n),
        },
        outputs: { difference: { dtype: 'f32', shape: [m, n] } },
        run(rec, t, device) {
          const packed = weight.pack(device);
          const [x, gateUp, plain, fused, negated] = [t['x']!, t['gateUp']!, t['plain']!, t['fused']!, t['negated']!];
          const input = { x, norm: norm ? t['norm']! : undefined, eps: EPS, normed: t['normed']! };
          const rows = { weight: packed, rows: m };
          const biased = bias ? t['bias']! : undefined;
          if (activation) gatedLinear(rec, { input, ...rows, activation, gateUp, out: fused });
          else normedLinear(rec, { input, ...rows, bias: biased, out: fused });
          if (norm) rmsNorm(rec, { x, weight: t['norm']!, out: t['normed']!, eps: EPS });
          linear(rec, { x: norm ? t['normed']! : x, weight: packed, bias: biased, out: activation ? gateUp : plain });
          if (activation) gateMul(rec, { gateUp, out: plain, activation });
          mul(rec, { a: plain, b: t['minus']!, out: negated });
          add(rec, { a: fused, b: negated, out: t['difference']! });
        },
        expected: { difference: new Float32Array(m * n) },
      };
    },
  };
}

function valueCase(shape: Shape): KernelCase {
  const { m, k, n, dtype, bias = false, activation, norm = true } = shape;
  return {
    name: nameOf(shape),
    build(rng) {
      const outputs = activation ? 2 * n : n;
      const weight = anyWeight(rng, dtype, outputs, k);
      const [x, norms, biases] = [randomTensor(rng, [m, k], 3), randomTensor(rng, [k]), randomTensor(rng, [n])];
      const rows = norm ? normed(x.values, norms.values, m, k, EPS) : x.values;
      const sums = product(rows, weight.values, m, outputs, k);
      const expected = Float64Array.from({ length: m * n }, (_, at) => {
        const [row, column] = [Math.floor(at / n), at % n];
        if (!activation) return sums[at]! + (bias ? biases.values[column]! : 0);
        return activate(activation, sums[row * outputs + column]!) * sums[row * outputs + n + column]!;
      });
      const none = (columns: number) => ({ dtype: 'f32', shape: [m, columns], values: new Float32Array(m * columns) }) as const;
      return {
        inputs: { x, norm: norms, bias: biases, normed: none(k), gateUp: none(2 * n) },
        outputs: { out: { dtype: 'f32', shape: [m, n] } },
        run(rec, t, device) {
          const input = { x: t['x']!, norm: norm ? t['norm']! : undefined, eps: EPS, normed: t['normed']! };
          const rows = { input, weight: weight.pack(device), out: t['out']!, rows: m };
          if (activation) gatedLinear(rec, { ...rows, activation, gateUp: t['gateUp']! });
          else normedLinear(rec, { ...rows, bias: bias ? t['bias']! : undefined });
        },
        expected: { out: expected },
      };
    },
  };
}

/** As many of a type as `npm test` has time to compile kernels for. */
const TYPES: readonly WeightType[] = THOROUGH ? ['f32', 'f16', 'Q8_0', 'Q4_0', 'Q4_K', 'Q6_K', 'I8'] : ['f32', 'f16', 'Q8_0', 'Q4_K']; // prettier-ignore

const exact: KernelCase[] = [];
for (const dtype of TYPES) {
  exact.push(exactCase({ m: 1, k: 256, n: 100, dtype, bias: true }));
  for (const m of [1, 2]) exact.push(exactCase({ m, k: 256, n: 100, dtype, activation: 'silu' }));
}
// Rows that are many to one adapter and few to another, and several tiles for one norm.
for (const m of [2, 5, 9]) {
  exact.push(exactCase({ m, k: 576, n: 65, dtype: 'f16' }), exactCase({ m, k: 576, n: 36, dtype: 'f16', activation: 'gelu_tanh' }));
}
exact.push(exactCase({ m: 1, k: 2048, n: 2600, dtype: 'f16' }), exactCase({ m: 1, k: 64, n: 1300, dtype: 'f16', activation: 'silu' }));
// Many rows of few inputs, in one block of rows and in two, with tiles beyond the last column.
for (const m of [5, 16, 33]) exact.push(exactCase({ m, k: 256, n: 100, dtype: 'f16', activation: 'silu' }));
for (const m of [16, 33]) exact.push(exactCase({ m, k: 256, n: 100, dtype: 'f16', bias: true }));
exact.push(exactCase({ m: 16, k: 256, n: 36, dtype: 'f32', activation: 'silu' }));
exact.push(exactCase({ m: 150, k: 64, n: 515, dtype: 'f16' }), exactCase({ m: 16, k: 96, n: 36, dtype: 'f32', activation: 'gelu_tanh', norm: false })); // prettier-ignore
exact.push(exactCase({ m: 16, k: 32, n: 1, dtype: 'f16' }), exactCase({ m: 16, k: 288, n: 68, dtype: 'f16' }));
// The same with a row that invocations hold, and one that is too long for that.
for (const m of [1, 2]) exact.push(exactCase({ m, k: 1024, n: 2052, dtype: 'Q4_K', activation: 'silu' }));
// Tiles of 64 gates and as many ups that have a norm each.
exact.push(
  exactCase({ m: 1, k: 256, n: 1100, dtype: 'Q4_K', activation: 'silu' }),
  exactCase({ m: 1, k: 2304, n: 1028, dtype: 'Q8_0', activation: 'silu' }),
);
exact.push(exactCase({ m: 1, k: 256, n: 2600, dtype: 'Q8_0', bias: true }), exactCase({ m: 1, k: 2304, n: 2100, dtype: 'Q8_0' }));
exact.push(
  exactCase({ m: 2, k: 256, n: 100, dtype: 'f16', activation: 'silu', norm: false }),
  exactCase({ m: 1, k: 256, n: 100, dtype: 'f16' }),
);

const values: KernelCase[] = [];
for (const m of [1, 2, 5]) {
  values.push(valueCase({ m, k: 256, n: 65, dtype: 'f32', bias: true }), valueCase({ m, k: 256, n: 68, dtype: 'f32', activation: 'silu' }));
  values.push(valueCase({ m, k: 256, n: 68, dtype: 'Q4_K', activation: 'gelu_tanh' }));
}
values.push(valueCase({ m: 16, k: 256, n: 68, dtype: 'f16', activation: 'silu' }), valueCase({ m: 17, k: 64, n: 65, dtype: 'f32', bias: true })); // prettier-ignore
values.push(valueCase({ m: 1, k: 100, n: 68, dtype: 'f32', activation: 'silu' }), valueCase({ m: 1, k: 256, n: 68, dtype: 'f32', activation: 'silu', norm: false })); // prettier-ignore

describeKernels('fused linear', values, { flavours: WEIGHT_FLAVOURS });
describeKernels('fused linear, bit for bit', exact, { every: true, flavours: WEIGHT_FLAVOURS });
// Norms of one row and of several by workgroup memory alone.
describeKernels(
  'fused linear, bit for bit',
  [exactCase({ m: 1, k: 256, n: 68, dtype: 'Q8_0', bias: true }), exactCase({ m: 3, k: 256, n: 36, dtype: 'f32', activation: 'silu' })],
  { every: true, flavours: GPUS_WITHOUT_SUBGROUPS },
);
