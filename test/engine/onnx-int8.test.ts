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
