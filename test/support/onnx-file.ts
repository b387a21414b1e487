/** ONNX files of a few nodes and constants, in protocol buffers (onnx.proto). */

export interface WrittenTensor {
  readonly name: string;
  /** TensorProto.DataType: 1 f32, 2 u8, 3 i8. */
  readonly type: 1 | 2 | 3;
  readonly shape: readonly number[];
  readonly data: Float32Array | Int8Array | Uint8Array;
}

export interface WrittenNode {
  readonly name: string;
  readonly op: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  /** An attribute of this name. */
  readonly axis?: number;
}

/** A ModelProto with one graph. */
export function onnxFile(nodes: readonly WrittenNode[], tensors: readonly WrittenTensor[]): Uint8Array {
  const graph = Buffer.concat([
    ...nodes.map((node) => field(1, nodeBytes(node))),
    ...tensors.map((tensor) => field(5, tensorBytes(tensor))),
  ]);
  return new Uint8Array(field(7, graph));
}

function nodeBytes({ name, op, inputs, outputs, axis }: WrittenNode): Buffer {
  return Buffer.concat([
    ...inputs.map((input) => field(1, input)),
    ...outputs.map((output) => field(2, output)),
    field(3, name),
    field(4, op),
    ...(axis === undefined ? [] : [field(5, Buffer.concat([field(1, 'axis'), varint(3 << 3), signed(axis)]))]),
  ]);
}

function tensorBytes({ name, type, shape, data }: WrittenTensor): Buffer {
  const sizes = shape.map((size) => Buffer.concat([varint(1 << 3), varint(size)]));
  const raw = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  return Buffer.concat([...sizes, varint(2 << 3), varint(type), field(8, name), field(9, raw)]);
}

/** A field of bytes. */
function field(number: number, value: Buffer | string): Buffer {
  const bytes = Buffer.from(value as string);
  return Buffer.concat([varint((number << 3) | 2), varint(bytes.length), bytes]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let left = value;
  for (; left > 127; left = Math.floor(left / 128)) bytes.push((left % 128) | 128);
  return Buffer.from([...bytes, left]);
}

/** An int64, of which negative ones take ten bytes. */
function signed(value: number): Buffer {
  const bytes: number[] = [];
  let left = BigInt.asUintN(64, BigInt(value));
  for (; left > 127n; left >>= 7n) bytes.push(Number(left & 127n) | 128);
  return Buffer.from([...bytes, Number(left)]);
}
