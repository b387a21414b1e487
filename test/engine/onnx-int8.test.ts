/** Kokoro's int8 matrices in ONNX, kept as rows of int8 with their scales: the bits of the values that they stand for. */
import { expect, test } from 'vitest';
import type { ByteSource } from '../../engine/platform/platform.ts';
import { createRng } from '../../engine/util/rng.ts';
import { widenBlocks } from '../../engine/weights/block-format.ts';
import { BLOCK_FORMATS } from '../../engine/weights/block-types.ts';
import { ComputedCheckpoint } from '../../engine/weights/computed-checkpoint.ts';
import { kokoroOnnxTensors } from '../../engine/weights/kokoro/onnx-tensors.ts';
import { ProtobufFile } from '../../engine/weights/onnx/protobuf.ts';
import { onnxFile } from '../support/onnx-file.ts';
import type { WrittenNode, WrittenTensor } from '../support/onnx-file.ts';

const rng = createRng(8);
const bytes = (size: number): Int8Array => Int8Array.from({ length: size }, () => rng.integer(255) - 127);
const scales = (size: number): Float32Array => Float32Array.from({ length: size }, () => 0.001 + 0.01 * rng.uniform());

async function open(nodes: readonly WrittenNode[], tensors: readonly WrittenTensor[]): Promise<ComputedCheckpoint> {
  const file = onnxFile(nodes, tensors);
  const source: ByteSource = {
    size: file.length,
    read: async (from, length) => file.slice(from, from + length),
    close: async () => undefined,
  };
  return new ComputedCheckpoint('tiny.onnx', await kokoroOnnxTensors(new ProtobufFile('tiny.onnx', source)), [source]);
}

/** Every row of a tensor, three at a time, from its blocks. */
async function widened(checkpoint: ComputedCheckpoint, name: string): Promise<Float32Array> {
  const [rows = 0, width = 0] = checkpoint.tensor(name)!.shape;
  const values = new Float32Array(rows * width);
  for (let from = 0; from < rows; from += 3) {
    const to = Math.min(rows, from + 3);
    widenBlocks(BLOCK_FORMATS.I8, await checkpoint.blocks(name, { from, to }), values.subarray(from * width, to * width));
  }
  return values;
}

const PRODUCT: WrittenNode = {
  name: '/bert/a/MatMul_quant',
  op: 'MatMulInteger',
  inputs: ['x', 'w_quantized', 'xz', 'w_zero_point'],
  outputs: ['y'],
};
const SCALED: WrittenNode = { name: '/bert/a/MatMul_quant_scales_mul', op: 'Mul', inputs: ['xs', 'w_scale'], outputs: ['s'] };

/** A product with a weight [64, 5], which is read as [5, 64]. */
function product(columns: number, zeros: readonly number[], inputs = 64): WrittenTensor[] {
  return [
    { name: 'w_quantized', type: 3, shape: [inputs, 5], data: bytes(inputs * 5) },
    { name: 'w_scale', type: 1, shape: [columns], data: scales(columns) },
    { name: 'w_zero_point', type: 3, shape: [zeros.length], data: Int8Array.from(zeros) },
  ];
}

test.each([
  ['a scale for all', 1],
  ['a scale a column', 5],
])('the matrix of a product of integers with %s', async (_, columns) => {
  const checkpoint = await open(
    [PRODUCT, SCALED],
    product(
      columns,
      Array.from({ length: columns }, () => 0),
    ),
  );
  expect(checkpoint.tensor('bert.a.weight')).toMatchObject({ dtype: 'I8', blocks: 'I8', shape: [5, 64] });
  expect(await widened(checkpoint, 'bert.a.weight')).toEqual(await checkpoint.read('bert.a.weight'));
});

test.each([
  ['with a zero point that is not 0', product(5, [0, 0, 3, 0, 0])],
  ['whose rows are no whole blocks', product(1, [0], 48)],
  ['of unsigned bytes', product(1, [0]).map((tensor) => (tensor.type === 3 ? { ...tensor, type: 2 as const } : tensor))],
])('a matrix %s is read as values only', async (_, tensors) => {
  const checkpoint = await open([PRODUCT, SCALED], tensors);
  expect(checkpoint.tensor('bert.a.weight')!.blocks).toBeUndefined();
  expect((await checkpoint.read('bert.a.weight')).length).toBe(tensors[0]!.data.length);
});

test.each([
  ['a direction', 2],
  ['a direction and gate', 2 * 32],
])("an LSTM's matrices with a scale %s, their gates in PyTorch's order", async (_, count) => {
  const [gates, hidden] = [32, 8];
  const shape = count === 2 ? [2] : [2, gates];
  const node = { name: '/encoder/lstm/LSTM_quant', op: 'DynamicQuantizeLSTM', outputs: ['y'] };
  const inputs = ['x', 'w', 'r', 'b', '', '', '', '', 'ws', 'wz', 'rs', 'rz'];
  const checkpoint = await open([{ ...node, inputs }], [
    { name: 'w', type: 3, shape: [2, 32, gates], data: bytes(2 * 32 * gates) },
    { name: 'r', type: 3, shape: [2, hidden, gates], data: bytes(2 * hidden * gates) },
    { name: 'b', type: 1, shape: [2, 2 * gates], data: scales(4 * gates) },
    { name: 'ws', type: 1, shape, data: scales(count) },
    { name: 'wz', type: 3, shape, data: new Int8Array(count) },
    { name: 'rs', type: 1, shape, data: scales(count) },
    { name: 'rz', type: 3, shape, data: new Int8Array(count) },
  ]); // prettier-ignore
  for (const suffix of ['l0', 'l0_reverse']) {
    const name = checkpoint.names().find((one) => one.endsWith(`weight_ih_${suffix}`))!;
    expect(checkpoint.tensor(name)).toMatchObject({ blocks: 'I8', shape: [gates, 32] });
    expect(await widened(checkpoint, name)).toEqual(await checkpoint.read(name));
  }
});

const sizeOf = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);

/** What integers stand for whose scales, and zero points, belong to a dimension. */
function scaled(q: WrittenTensor, scale: Float32Array, zero: ArrayLike<number>, axis: number): Float32Array {
  const width = sizeOf(q.shape.slice(axis + 1));
  const at = (i: number): number => Math.floor(i / width) % q.shape[axis]!;
  return Float32Array.from(q.data, (value, i) => (value - zero[at(i)]!) * scale[at(i)]!);
}

test.each([
  ['a product', 'MatMul', [64, 64], 1, 1],
  ['a product whose axis is not said', 'MatMul', [32, 64], undefined, 1],
  ['a product whose axis counts from the last', 'MatMul', [64, 32], -1, 1],
  ['a convolution', 'Conv', [8, 8, 3], 0, 0],
  ['a convolution whose axis counts from the last', 'Conv', [8, 8, 3], -3, 0],
  ['a transposed convolution', 'ConvTranspose', [8, 8, 3], 1, 1],
] as const)(
  'weights that are dequantised before they are read have the scales of the dimension that the node says: %s',
  async (_, op, shape, axis, meant) => {
    const count = shape[meant];
    const q: WrittenTensor = { name: 'q', type: 3, shape, data: bytes(sizeOf(shape)) };
    const [scale, zero] = [scales(count), bytes(count)];
    const checkpoint = await open(
      [
        { name: 'dq', op: 'DequantizeLinear', inputs: ['q', 's', 'z'], outputs: ['w'], ...(axis !== undefined && { axis }) },
        { name: `/encoder/a/${op}`, op, inputs: ['x', 'w'], outputs: ['y'] },
      ],
      [q, { name: 's', type: 1, shape: [count], data: scale }, { name: 'z', type: 3, shape: [count], data: zero }],
    );
    const [name = ''] = checkpoint.names();
    const stored = scaled(q, scale, zero, meant);
    const [rows = 0, columns = 0] = shape;
    const turned = Float32Array.from(stored, (_, i) => stored[(i % rows) * columns + Math.floor(i / rows)]!);
    expect(await checkpoint.read(name)).toEqual(op === 'MatMul' ? turned : stored);
  },
);

test('scales that belong to another dimension than the node says are refused', async () => {
  const nodes = [
    { name: 'dq', op: 'DequantizeLinear', inputs: ['q', 's'], outputs: ['w'], axis: 0 },
    { name: '/encoder/a/MatMul', op: 'MatMul', inputs: ['x', 'w'], outputs: ['y'] },
  ];
  const opened = open(nodes, [
    { name: 'q', type: 3, shape: [32, 64], data: bytes(32 * 64) },
    { name: 's', type: 1, shape: [64], data: scales(64) },
  ]);
  await expect(opened).rejects.toThrow('q [32, 64] has 64 scales along dimension 0');
});

test('a table whose rows are dequantised behind the look-up may have a scale a column', async () => {
  const q: WrittenTensor = { name: 'q', type: 3, shape: [6, 4], data: bytes(24) };
  const scale = scales(4);
  const checkpoint = await open(
    [
      { name: '/text_encoder/embedding/Gather', op: 'Gather', inputs: ['q', 'ids'], outputs: ['rows'] },
      { name: 'dq', op: 'DequantizeLinear', inputs: ['rows', 's'], outputs: ['y'], axis: 2 },
    ],
    [q, { name: 's', type: 1, shape: [4], data: scale }],
  );
  expect(await checkpoint.read(checkpoint.names()[0]!)).toEqual(scaled(q, scale, [0, 0, 0, 0], 1));
});

test.each([
  ['itself', [['w', 'w']]],
  ['one that is made of it', [['v', 'w'], ['w', 'v']]],
] as const)('a weight behind a cast of %s is none', async (_, casts) => {
  const nodes = casts.map(([from, to], i) => ({ name: `/encoder/Cast_${i}`, op: 'Cast', inputs: [from], outputs: [to] }));
  const checkpoint = await open([...nodes, { name: '/encoder/a/MatMul', op: 'MatMul', inputs: ['x', 'w'], outputs: ['y'] }], []);
  expect(checkpoint.names()).toEqual([]);
}); // prettier-ignore

test('names on several lines are refused', async () => {
  const weight: WrittenTensor = { name: 'a\nb', type: 1, shape: [1], data: scales(1) };
  await expect(open([], [weight])).rejects.toMatchObject({
    code: 'invalid_model',
    message: expect.stringContaining('is no text: "a\\nb"'),
  });
});
