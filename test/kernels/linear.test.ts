import { mul } from '../../engine/ops/elementwise.ts';
import { linear } from '../../engine/ops/linear.ts';
import { packLinear } from '../../engine/ops/pack-linear.ts';
import type { WordPlace } from '../../engine/ops/weight-place.ts';
import type { Device } from '../../engine/gpu/device.ts';
import type { FloatType } from '../../engine/weights/storage.ts';
import type { Activation } from '../../engine/ops/activation.ts';
import { alignUp } from '../../engine/util/math.ts';
import { activation as activate } from '../reference/activation.ts';
import { linear as reference } from '../reference/linear.ts';
import { describeKernels, randomTensor, roundToF16 } from '../support/kernel-case.ts';
import type { KernelCase } from '../support/kernel-case.ts';

interface Shape {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly dtype?: FloatType;
  readonly bias?: boolean;
  readonly residual?: boolean;
  readonly activation?: Activation;
  readonly outColumn?: number;
  readonly texels?: boolean;
  /** Whether the weights lie in a texture, too, where that can be read. */
  readonly inTexture?: boolean;
}

/** Where they lie then. */
function placeIn({ caps }: Device, inTexture: boolean): WordPlace {
  return inTexture && caps.maxTexels > 0 ? 'texture' : 'buffer';
}

function linearCase({
  m,
  n,
  k,
  dtype = 'f32',
  bias = false,
  residual = false,
  activation = 'none',
  outColumn = 0,
  inTexture = false,
  texels = false,
}: Shape): KernelCase {
  const extras = [
    inTexture && 'weights in a texture',
    texels && 'texels',
    bias && 'bias',
    residual && 'residual',
    activation !== 'none' && activation,
    outColumn && `column ${outColumn}`,
  ].filter(Boolean);
  return {
    name: `linear ${dtype} multiplies ${m} rows of ${k} by ${n} columns${extras.length ? ` with ${extras.join(', ')}` : ''}`,
    build(rng) {
      const kPadded = alignUp(k, 4);
      const x = randomTensor(rng, [m, kPadded]);
      const weight = randomTensor(rng, [n, k], 1 / Math.sqrt(k));
      const biasData = randomTensor(rng, [n]);
      const stride = n + outColumn;
      const residualData = randomTensor(rng, [m, stride]);
      const unpadded = new Float32Array(m * k);
      for (let i = 0; i < m; i++) for (let c = 0; c < k; c++) unpadded[i * k + c] = x.values[i * kPadded + c]!;
      const stored = dtype === 'f16' ? roundToF16(weight.values) : weight.values;
      const product = reference(unpadded, stored, m, n, k);
      const expected = new Float32Array(m * stride).fill(7);
      for (let i = 0; i < m; i++) {
        for (let j = 0; j < n; j++) {
          const at = i * stride + outColumn + j;
          const y = activate(activation, product[i * n + j]! + (bias ? biasData.values[j]! : 0));
          expected[at] = y + (residual ? residualData.values[at]! : 0);
        }
      }
      return {
        inputs: { x, bias: biasData, residual: residualData },
        outputs: { out: { dtype: 'f32', shape: [m, stride], initial: new Float32Array(m * stride).fill(7) } },
        run(rec, t, device) {
          linear(rec, {
            x: t['x']!,
            weight: packLinear(device, 'weight', weight.values, n, k, dtype, placeIn(device, inTexture)),
            bias: bias ? t['bias']! : undefined,
            residual: residual ? t['residual']! : undefined,
            out: t['out']!,
            activation,
            outColumn,
            texels,
          });
        },
        expected: { out: expected },
      };
    },
  };
}

/** What each row gives alone is taken off what it gives among the others. */
function batchCase(m: number, k: number, dtype: FloatType, { texels = false, inTexture = false } = {}): KernelCase {
  const n = 64;
  return {
    name: `linear ${dtype} gives ${m} rows of ${k} the bits that each has alone${inTexture ? ', by weights in a texture' : ''}`,
    tolerance: 0,
    build(rng) {
      const weight = randomTensor(rng, [n, k]);
      const none = { dtype: 'f32', shape: [m, n], values: new Float32Array(m * n) } as const;
      const x = randomTensor(rng, [m, k]);
      return {
        inputs: { x, minus: { dtype: 'f32', shape: [1], values: [-1] }, alone: none, negated: none },
        outputs: { out: { dtype: 'f32', shape: [m, n] } },
        run(rec, t, device) {
          const [x, alone, negated] = [t['x']!, t['alone']!, t['negated']!];
          const packed = packLinear(device, 'weight', weight.values, n, k, dtype, placeIn(device, inTexture));
          for (let row = 0; row < m; row++) linear(rec, { x: x.rows(row, row + 1), weight: packed, out: alone.rows(row, row + 1) });
          mul(rec, { a: alone, b: t['minus']!, out: negated });
          linear(rec, { x, weight: packed, residual: negated, out: t['out']!, texels });
        },
        expected: { out: new Float32Array(m * n) },
      };
    },
  };
}

const SIZES = [1, 3, 63, 64, 65, 257];
const cases: KernelCase[] = [];
for (const m of [1, 3, 9, 65]) for (const n of SIZES) cases.push(linearCase({ m, n, k: 64 }));
for (const k of SIZES) cases.push(linearCase({ m: 5, n: 40, k }), linearCase({ m: 1, n: 33, k }));
for (const m of [1, 2, 17]) {
  cases.push(linearCase({ m, n: 65, k: 256, dtype: 'f16' }), linearCase({ m, n: 48, k: 32, bias: true }));
  cases.push(linearCase({ m, n: 48, k: 32, bias: true, residual: true, activation: 'gelu' }));
  cases.push(linearCase({ m, n: 24, k: 32, bias: true, outColumn: 9 }));
}
// So much of x that it is taken in pieces where it goes through a texture, with rows of whole and of broken multiples of 256 bytes.
cases.push(
  linearCase({ m: 70, n: 9, k: 8192, residual: true, outColumn: 3, texels: true }),
  linearCase({ m: 200, n: 9, k: 1036, bias: true, texels: true }),
);
for (const m of [2, 3, 25, 70])
  for (const dtype of ['f32', 'f16'] as const)
    cases.push(linearCase({ m, n: 65, k: 260, dtype, bias: true, activation: 'gelu', texels: true }));
// Of one group of columns and of several, of rows that are whole and broken numbers of quads, by every kernel, although few adapters have weights there.
const textures = [1, 2, 5, 33].map((m) => linearCase({ m, n: 130, k: 256, dtype: 'f16', bias: true, inTexture: true }));
for (const [m, n] of [
  [1, 9],
  [3, 200],
  [70, 200],
] as const)
  // prettier-ignore
  textures.push(linearCase({ m, n, k: 258, dtype: 'f16', bias: true, residual: true, inTexture: true, texels: m > 1 }));
// K in one part and in several, the last of which is whole or not.
const batches = [192, 2112].flatMap((k) =>
  [8, 9, 20, 40, 70].map((m) => batchCase(m, k, m % 8 === 0 ? 'f16' : 'f32', { texels: m === 40 || m === 70 })),
);
for (const m of [2, 9, 40]) batches.push(batchCase(m, 192, 'f16', { inTexture: true }));
batches.push(batchCase(70, 192, 'f16', { texels: true, inTexture: true }));

describeKernels('linear', cases);
describeKernels('linear by weights in textures', textures, { every: true });
describeKernels('linear in batches', batches, { every: true });
