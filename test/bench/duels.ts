/** The shapes both sides compute: a small ONNX model with its inputs, and our op on the same numbers. */
import type { Device } from '../../engine/gpu/device.ts';
import type { Recorder } from '../../engine/gpu/recorder.ts';
import type { Tensor } from '../../engine/gpu/tensor.ts';
import { conv1d, packConv1d } from '../../engine/ops/conv.ts';
import { denseAttention } from '../../engine/ops/dense-attention.ts';
import { linear } from '../../engine/ops/linear.ts';
import { packLinear } from '../../engine/ops/pack-linear.ts';
import { isBlockType } from '../../engine/weights/storage.ts';
import type { FloatType, QuantizedType } from '../../engine/weights/storage.ts';
import type { Rng } from '../../engine/util/rng.ts';
import { quantizeRows } from '../reference/quantize.ts';
import { singleNode } from './onnx.ts';
import type { OnnxGraph } from './onnx.ts';
import { packStored } from '../support/pack-stored.ts';

export interface Duel {
  readonly name: string;
  readonly flops: number;
  /** Bytes our kernel must move at least: weights once, activations once. */
  readonly bytes: number;
  /** Largest difference allowed between any two sides, as a share of the largest value. */
  readonly tolerance: number;
  readonly graph: OnnxGraph;
  readonly rivalInputs: Readonly<Record<string, Float32Array>>;
  toOurLayout(output: Float32Array): Float32Array;
  prepare(device: Device): { upload(): void; record(rec: Recorder): void; output: Tensor };
}

const same = (output: Float32Array): Float32Array => output;

function normal(rng: Rng, size: number, scale = 1): Float32Array {
  return Float32Array.from({ length: size }, () => rng.normal() * scale);
}

/** [rows, columns] -> [columns, rows]. */
function transpose(data: Float32Array, rows: number, columns: number): Float32Array {
  const out = new Float32Array(data.length);
  for (let r = 0; r < rows; r++) for (let c = 0; c < columns; c++) out[c * rows + r] = data[r * columns + c]!;
  return out;
}

/** y = x W^T with f32 weights; ONNX's MatMul takes W^T [K, N]. */
export function matmulDuel(rng: Rng): readonly Duel[] {
  const shapes: readonly (readonly [number, number, number])[] = [[256, 1024, 1024], [1, 1024, 1024], [1500, 256, 1024]]; // prettier-ignore
  return shapes.map(([m, k, n]) => {
    const x = normal(rng, m * k);
    const weight = normal(rng, n * k, 1 / Math.sqrt(k));
    return {
      name: `MatMul f32 ${m}x${k}x${n}`,
      flops: 2 * m * k * n,
      bytes: 4 * (m * k + k * n + m * n),
      tolerance: 1e-5,
      graph: singleNode('MatMul', {
        inputs: { x: [m, k] },
        initializers: { w: { dims: [k, n], data: transpose(weight, n, k) } },
        output: [m, n],
      }),
      rivalInputs: { x },
      toOurLayout: same,
      prepare: (device) => prepareLinear(device, x, weight, [m, k, n], 'f32'),
    };
  });
}

/**
 * 4-bit weights in blocks of 32, the same integers and scales on both sides. Ours multiplies f32 activations, as ONNX Runtime does at accuracy_level 0; at
 * level 4 it may quantise them to 8 bits, to which its CPU provider's answer, the reference, owes the tolerance.
 */
export function quantisedDuel(rng: Rng): readonly Duel[] {
  const block = 32;
  const shapes = [[256, 1024, 1024, 0], [256, 1024, 1024, 4], [1, 1024, 1024, 0], [1, 1024, 1024, 4]] as const; // prettier-ignore
  return shapes.map(([m, k, n, level]) => {
    const x = normal(rng, m * k);
    const packed = Uint8Array.from({ length: (n * k) / 2 }, () => rng.integer(256));
    // Every block holds the extreme -8, from which our packing recovers the very same scale and integers.
    for (let i = 0; i < packed.length; i += block / 2) packed[i]! &= 0xf0;
    const scales = Float32Array.from({ length: (n * k) / block }, () => 0.01 + 0.01 * rng.uniform());
    const weight = Float32Array.from(
      { length: n * k },
      (_, i) => (((packed[i >> 1]! >> ((i & 1) * 4)) & 15) - 8) * scales[Math.floor(i / block)]!,
    );
    const initializers = { w: { dims: [n, k / block, block / 2], data: packed }, scales: { dims: [(n * k) / block], data: scales } };
    const attributes = { K: k, N: n, bits: 4, block_size: block, accuracy_level: level };
    return {
      name: `MatMulNBits 4-bit acc ${level} ${m}x${k}x${n}`,
      flops: 2 * m * k * n,
      bytes: 4 * (m * k + m * n) + (n * k) / 2 + (4 * n * k) / block,
      tolerance: 0.02,
      graph: singleNode('MatMulNBits', { inputs: { x: [m, k] }, initializers, output: [m, n] }, attributes, 'com.microsoft'),
      rivalInputs: { x },
      toOurLayout: same,
      prepare: (device) => prepareLinear(device, x, weight, [m, k, n], 'Q4_0'),
    };
  });
}

function prepareLinear(
  device: Device,
  x: Float32Array,
  weights: Float32Array,
  [m, k, n]: readonly [number, number, number],
  dtype: FloatType | QuantizedType,
) {
  const input = device.tensor('x', 'f32', [m, k]);
  const output = device.tensor('y', 'f32', [m, n]);
  const weight = isBlockType(dtype)
    ? packStored(device, 'w', quantizeRows(weights, dtype), n, k, dtype)
    : packLinear(device, 'w', weights, n, k, dtype);
  return {
    output,
    upload: () => device.write(input, x),
    record: (rec: Recorder) => linear(rec, { x: input, weight, out: output }),
  };
}

/** Convolutions of Kokoro's decoder and of Whisper's stem; ONNX has channels before positions, ours after. */
export function conv1dDuel(rng: Rng): readonly Duel[] {
  const shapes = [
    { length: 400, channels: 256, out: 256, kernel: 7, stride: 1, dilation: 1 },
    { length: 800, channels: 256, out: 256, kernel: 3, stride: 1, dilation: 5 },
    { length: 2400, channels: 128, out: 128, kernel: 11, stride: 1, dilation: 1 },
    { length: 3000, channels: 80, out: 256, kernel: 3, stride: 2, dilation: 1 },
  ];
  return shapes.map(({ length, channels, out, kernel, stride, dilation }) => {
    const padding = ((kernel - 1) * dilation) / 2;
    const rows = Math.floor((length + 2 * padding - dilation * (kernel - 1) - 1) / stride) + 1;
    const x = normal(rng, length * channels);
    const weight = normal(rng, out * channels * kernel, 1 / Math.sqrt(channels * kernel));
    const bias = normal(rng, out);
    const initializers = { w: { dims: [out, channels, kernel], data: weight }, b: { dims: [out], data: bias } };
    const attributes = { kernel_shape: [kernel], pads: [padding, padding], strides: [stride], dilations: [dilation] };
    return {
      name: `Conv1d ${channels}->${out} k${kernel} s${stride} d${dilation} x${length}`,
      flops: 2 * rows * out * channels * kernel,
      bytes: 4 * (length * channels + out * channels * kernel + rows * out),
      tolerance: 1e-5,
      graph: singleNode('Conv', { inputs: { x: [1, channels, length] }, initializers, output: [1, out, rows] }, attributes),
      rivalInputs: { x: transpose(x, length, channels) },
      toOurLayout: (output) => transpose(output, out, rows),
      prepare(device) {
        const input = device.tensor('x', 'f32', [length, channels]);
        const output = device.tensor('y', 'f32', [rows, out]);
        const packed = packConv1d(device, 'w', weight, { outChannels: out, inChannels: channels, kernel }, bias);
        return {
          output,
          upload: () => device.write(input, x),
          record: (rec) => void conv1d(rec, { x: input, weight: packed, out: output, stride, padding, dilation }),
        };
      },
    };
  });
}

/**
 * Whisper's encoder attention. ONNX Runtime has a fused operator, MultiHeadAttention on [1, T, heads * D], and the plain product,
 * softmax, product on [heads, T, D]; ours reads and writes the former layout in both duels.
 */
export function attentionDuel(rng: Rng): readonly Duel[] {
  const [length, heads, headDim] = [1500, 4, 64];
  const columns = heads * headDim;
  const [q, k, v] = [0, 1, 2].map(() => normal(rng, length * columns)) as [Float32Array, Float32Array, Float32Array];
  const common = {
    flops: 4 * length * length * columns,
    bytes: 16 * length * columns,
    tolerance: 1e-4,
    prepare: (device: Device) => prepareAttention(device, { q, k, v }, length, heads, headDim),
  };
  const joined = [1, length, columns];
  const split = [heads, length, headDim];
  const byHead = (data: Float32Array, rows: number, inner: number): Float32Array => swapOuter(data, rows, heads, inner);
  return [
    {
      ...common,
      name: `Attention ${length}x${length}, ${heads} heads of ${headDim}: MatMul, Softmax, MatMul`,
      graph: {
        inputs: { q: split, kt: [heads, headDim, length], v: split },
        initializers: { scale: { dims: [1], data: Float32Array.of(headDim ** -0.5) } },
        nodes: [
          { op: 'Mul', inputs: ['q', 'scale'], output: 'scaled' },
          { op: 'MatMul', inputs: ['scaled', 'kt'], output: 'scores' },
          { op: 'Softmax', inputs: ['scores'], output: 'shares', attributes: { axis: -1 } },
          { op: 'MatMul', inputs: ['shares', 'v'], output: 'y' },
        ],
        output: split,
      },
      rivalInputs: { q: byHead(q, length, headDim), kt: transpose(k, length, columns), v: byHead(v, length, headDim) },
      toOurLayout: (output) => swapOuter(output, heads, length, headDim),
    },
    {
      ...common,
      name: `Attention ${length}x${length}, ${heads} heads of ${headDim}: MultiHeadAttention`,
      graph: singleNode(
        'MultiHeadAttention',
        { inputs: { q: joined, k: joined, v: joined }, output: joined },
        { num_heads: heads },
        'com.microsoft',
      ),
      rivalInputs: { q, k, v },
      toOurLayout: same,
    },
  ];
}

/** [a][b][inner] -> [b][a][inner]. */
function swapOuter(data: Float32Array, a: number, b: number, inner: number): Float32Array {
  const out = new Float32Array(data.length);
  for (let i = 0; i < a; i++)
    for (let j = 0; j < b; j++) out.set(data.subarray((i * b + j) * inner, (i * b + j + 1) * inner), (j * a + i) * inner);
  return out;
}

function prepareAttention(
  device: Device,
  data: Readonly<Record<'q' | 'k' | 'v', Float32Array>>,
  length: number,
  heads: number,
  headDim: number,
) {
  const make = (name: string): Tensor => device.tensor(name, 'f32', [length, heads * headDim]);
  const [q, k, v, output] = [make('q'), make('k'), make('v'), make('y')];
  return {
    output,
    upload() {
      device.write(q, data.q);
      device.write(k, data.k);
      device.write(v, data.v);
    },
    record: (rec: Recorder) =>
      denseAttention(rec, {
        q: { tensor: q },
        k: { tensor: k },
        v: { tensor: v },
        out: output,
        heads,
        headDim,
        over: { queries: length, keys: length },
      }),
  };
}
