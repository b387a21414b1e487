import type { Activation } from '../../engine/ops/activation.ts';
import { conv1d, convInput, convPlace, convRows, convTranspose1d, convTransposeWeight, packConv1d } from '../../engine/ops/conv.ts';
import { packLinear } from '../../engine/ops/pack-linear.ts';
import type { FloatType } from '../../engine/weights/storage.ts';
import { alignUp } from '../../engine/util/math.ts';
import { activation as activate } from '../reference/activation.ts';
import * as reference from '../reference/conv.ts';
import { transposedTapRows } from '../reference/pack-taps.ts';
import { WEIGHT_FLAVOURS, describeKernels, randomTensor, roundToF16 } from '../support/kernel-case.ts';
import type { KernelCase } from '../support/kernel-case.ts';

interface Shape {
  readonly rows: number;
  readonly inChannels: number;
  readonly outChannels: number;
  readonly kernel: number;
  readonly stride?: number;
  readonly padding?: number;
  readonly dilation?: number;
  readonly dtype?: FloatType;
  readonly bias?: boolean;
  readonly residual?: boolean;
  readonly residualRepeat?: number;
  readonly activation?: Activation;
  readonly outColumn?: number;
  readonly scale?: number;
  /** Rows of the input tensor after those that count; they hold garbage that must not be read. */
  readonly extraRows?: number;
  /** Rows and weights in textures, where an adapter reads them from there. */
  readonly textures?: boolean;
}

/** Rows of `channels` columns widened to a multiple of 4. */
function padColumns(values: Float32Array, rows: number, channels: number): Float32Array {
  const padded = alignUp(channels, 4);
  const out = new Float32Array(rows * padded);
  for (let r = 0; r < rows; r++) out.set(values.subarray(r * channels, (r + 1) * channels), r * padded);
  return out;
}

function convCase(shape: Shape): KernelCase {
  const { rows, inChannels, outChannels, kernel, stride = 1, padding = 0, dilation = 1, dtype = 'f32', outColumn = 0, scale = 1 } = shape;
  const { bias: hasBias = false, residual: hasResidual = false, residualRepeat = 1, activation = 'none', extraRows = 0 } = shape;
  const { textures = false } = shape;
  return {
    name: `conv1d ${JSON.stringify(shape)}`,
    build(rng) {
      const x = randomTensor(rng, [rows + extraRows, inChannels]);
      const weight = randomTensor(rng, [outChannels, inChannels, kernel], 1 / Math.sqrt(inChannels * kernel));
      const bias = randomTensor(rng, [outChannels]);
      const outRows = convRows(rows, kernel, { stride, padding, dilation });
      const width = outChannels + outColumn;
      const residual = randomTensor(rng, [outRows, outChannels + 3]);
      const stored = dtype === 'f16' ? roundToF16(weight.values) : weight.values;
      const geometry = { rows, inChannels, outChannels, kernel, stride, padding, dilation };
      const sums = reference.conv1d(x.values, stored, hasBias ? bias.values : undefined, geometry);
      const expected = new Float32Array(outRows * width).fill(7);
      for (let l = 0; l < outRows; l++) {
        for (let n = 0; n < outChannels; n++) {
          const y =
            activate(activation, sums[l * outChannels + n]!) +
            (hasResidual ? residual.values[Math.floor(l / residualRepeat) * (outChannels + 3) + n]! : 0);
          expected[l * width + outColumn + n] = y * scale;
        }
      }
      const padded = padColumns(x.values, rows + extraRows, inChannels);
      return {
        inputs: { x: { dtype: 'f32', shape: [rows + extraRows, alignUp(inChannels, 4)], values: padded }, residual },
        outputs: { out: { dtype: 'f32', shape: [outRows, width], initial: new Float32Array(outRows * width).fill(7) } },
        run(rec, t, device) {
          const place = textures ? convPlace(device.caps) : 'buffer';
          const packed = packConv1d(device, 'w', weight.values, geometry, hasBias ? bias.values : undefined, dtype, place);
          const texels = convInput(device, 'rows', t['x']!.size);
          const residualTensor = hasResidual ? t['residual'] : undefined;
          const geometryArgs = { stride, padding, dilation, rows, outColumn, scale, activation };
          conv1d(rec, { x: t['x']!, texels, weight: packed, out: t['out']!, residual: residualTensor, residualRepeat, ...geometryArgs });
        },
        expected: { out: expected },
      };
    },
  };
}

interface TransposeShape {
  readonly rows: number;
  readonly inChannels: number;
  readonly outChannels: number;
  readonly kernel: number;
  readonly stride: number;
  readonly padding?: number;
  readonly outputPadding?: number;
  readonly dtype?: FloatType;
  readonly extraRows?: number;
  readonly textures?: boolean;
}

function transposeCase(shape: TransposeShape): KernelCase {
  const {
    rows,
    inChannels,
    outChannels,
    kernel,
    stride,
    padding = 0,
    outputPadding = 0,
    dtype = 'f32',
    extraRows = 0,
    textures = false,
  } = shape;
  return {
    name: `conv_transpose1d ${JSON.stringify(shape)}`,
    build(rng) {
      const x = randomTensor(rng, [rows + extraRows, inChannels]);
      const weight = randomTensor(rng, [inChannels, outChannels, kernel], 1 / Math.sqrt(inChannels * 2));
      const bias = randomTensor(rng, [outChannels]);
      const stored = dtype === 'f16' ? roundToF16(weight.values) : weight.values;
      const geometry = { rows, inChannels, outChannels, kernel, stride, padding, outputPadding };
      const expected = reference.convTranspose1d(x.values, stored, bias.values, geometry);
      const padded = padColumns(x.values, rows + extraRows, inChannels);
      return {
        inputs: { x: { dtype: 'f32', shape: [rows + extraRows, alignUp(inChannels, 4)], values: padded } },
        outputs: { out: { dtype: 'f32', shape: [expected.length / outChannels, outChannels] } },
        run(rec, t, device) {
          const rows = transposedTapRows(weight.values, geometry);
          const columns = stride * outChannels;
          const place = textures ? convPlace(device.caps) : 'buffer';
          const matrix = packLinear(device, 'w', rows, columns, rows.length / columns, dtype, place);
          const texels = convInput(device, 'rows', t['x']!.size);
          const packed = convTransposeWeight(device, 'w', matrix, geometry, bias.values);
          convTranspose1d(rec, { x: t['x']!, texels, weight: packed, out: t['out']!, padding, outputPadding, rows: shape.rows });
        },
        expected: { out: expected },
      };
    },
  };
}

const cases: KernelCase[] = [];
for (const rows of [1, 3, 23, 24, 25, 63, 64, 65, 257])
  cases.push(convCase({ rows, inChannels: 8, outChannels: 9, kernel: 3, padding: 1, bias: true }));
for (const channels of [1, 3, 63, 64, 65]) {
  cases.push(convCase({ rows: 17, inChannels: channels, outChannels: 5, kernel: 3, padding: 1 }));
  cases.push(convCase({ rows: 17, inChannels: 4, outChannels: channels, kernel: 3, padding: 1, bias: true }));
}
for (const dtype of ['f32', 'f16'] as const) {
  for (const [kernel, dilation] of [
    [3, 1],
    [7, 3],
    [11, 5],
    [5, 1],
    [1, 1],
  ] as const) {
    const padding = ((kernel - 1) * dilation) / 2;
    cases.push(
      convCase({ rows: 65, inChannels: 32, outChannels: 32, kernel, dilation, padding, dtype, bias: true, residual: true, scale: 0.5 }),
    );
  }
  cases.push(convCase({ rows: 50, inChannels: 80, outChannels: 64, kernel: 3, padding: 1, dtype, bias: true, activation: 'gelu' }));
  cases.push(
    convCase({ rows: 50, inChannels: 64, outChannels: 64, kernel: 3, stride: 2, padding: 1, dtype, bias: true, activation: 'gelu' }),
  );
  cases.push(convCase({ rows: 61, inChannels: 42, outChannels: 16, kernel: 12, stride: 6, padding: 3, dtype, bias: true, extraRows: 9 }));
  cases.push(transposeCase({ rows: 9, inChannels: 16, outChannels: 8, kernel: 8, stride: 4, padding: 2, dtype, extraRows: 3 }));
}
cases.push(
  convCase({ rows: 9, inChannels: 4, outChannels: 6, kernel: 3, padding: 1, outColumn: 5, activation: 'leaky_relu', residual: true }),
);
cases.push(convCase({ rows: 9, inChannels: 4, outChannels: 6, kernel: 3, padding: 1, residual: true, residualRepeat: 2, scale: 0.7 }));
cases.push(convCase({ rows: 9, inChannels: 4, outChannels: 257, kernel: 3, padding: 1 }));
for (const rows of [1, 3, 64, 65]) cases.push(transposeCase({ rows, inChannels: 6, outChannels: 5, kernel: 12, stride: 6, padding: 3 }));
cases.push(transposeCase({ rows: 7, inChannels: 4, outChannels: 3, kernel: 3, stride: 2, padding: 1, outputPadding: 1 }));
cases.push(transposeCase({ rows: 7, inChannels: 4, outChannels: 3, kernel: 7, stride: 3, padding: 0 }));
cases.push(transposeCase({ rows: 12, inChannels: 64, outChannels: 32, kernel: 20, stride: 10, padding: 5 }));

// Rows of whole and of broken multiples of 24, columns of one, of half and of two groups, texels beyond the first row of a texture.
for (const dtype of ['f32', 'f16'] as const) {
  const textures = { dtype, textures: true } as const;
  for (const rows of [1, 23, 24, 25, 257])
    cases.push(convCase({ rows, inChannels: 8, outChannels: 9, kernel: 3, padding: 1, bias: true, ...textures }));
  for (const outChannels of [1, 32, 33, 64, 65, 130])
    cases.push(convCase({ rows: 17, inChannels: 6, outChannels, kernel: 3, padding: 1, residual: true, ...textures }));
  cases.push(
    convCase({ rows: 65, inChannels: 292, outChannels: 32, kernel: 11, dilation: 5, padding: 25, bias: true, scale: 0.5, ...textures }),
    convCase({ rows: 61, inChannels: 42, outChannels: 16, kernel: 12, stride: 6, padding: 3, bias: true, extraRows: 9, ...textures }),
    convCase({ rows: 9, inChannels: 4, outChannels: 6, kernel: 3, padding: 1, outColumn: 5, activation: 'gelu', ...textures }),
    transposeCase({ rows: 12, inChannels: 64, outChannels: 32, kernel: 20, stride: 10, padding: 5, extraRows: 3, ...textures }),
  );
}

describeKernels('conv', cases, { flavours: WEIGHT_FLAVOURS });
