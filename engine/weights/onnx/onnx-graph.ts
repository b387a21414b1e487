/**
 * The parts of an ONNX model by which weights are found: its nodes, and where its tensors lie. Field numbers: onnx/onnx.proto (Apache-2.0).
 */
import { fromBF16, fromF16, f16BitsToF32 } from '../../util/f16.ts';
import { product } from '../../util/math.ts';
import type { Range } from '../../util/math.ts';
import type { Field, ProtobufFile } from './protobuf.ts';

export interface OnnxNode {
  readonly name: string;
  readonly op: string;
  /** Names of inputs; '' for an optional one that is left out. */
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  /** Whether Gemm's second matrix is transposed. */
  readonly transB: boolean;
  /** DequantizeLinear's axis: the dimension that a list of scales belongs to, counted from the last one if negative. */
  readonly axis: number;
}

/** A constant of the graph: a weight, a scale, a shape. */
export interface OnnxTensor {
  readonly name: string;
  readonly shape: readonly number[];
  /** Type id (TensorProto.DataType). */
  readonly type: number;
  /** Where its values lie, and whether as little-endian bytes or as varints. */
  readonly data: Field | undefined;
}

export interface OnnxGraph {
  readonly nodes: readonly OnnxNode[];
  readonly tensors: ReadonlyMap<string, OnnxTensor>;
}

/** Limits; Kokoro has 3,600 nodes and 800 tensors, and a node has at most a few dozen inputs. */
const MAX_NODES = 1 << 16;
const MAX_EDGES = 1 << 19;
const MAX_RANK = 16;
/** Most values stored as varints, each of which may take ten bytes. */
const MAX_VARINTS = 1 << 20;

/** Reads a model's graph, leaving weights in the file. Throws EngineError('invalid_model') with the path and what is wrong. */
export async function readOnnxGraph(file: ProtobufFile): Promise<OnnxGraph> {
  const nodes: OnnxNode[] = [];
  const tensors = new Map<string, OnnxTensor>();
  let edges = 0;
  let graphs = 0;
  for await (const part of file.fields()) {
    if (part.number !== MODEL.graph || part.kind !== 'bytes') continue;
    graphs++;
    for await (const field of file.fields(part.from, part.to)) {
      if (field.kind !== 'bytes') continue;
      if (field.number === GRAPH.node) {
        const { node, value } = await readNode(file, field);
        edges += node.inputs.length + node.outputs.length;
        if (nodes.push(node) > MAX_NODES || edges > MAX_EDGES)
          throw file.broken(`it has more than ${MAX_NODES} nodes or ${MAX_EDGES} edges`);
        if (value) tensors.set(node.outputs[0] ?? '', { ...value, name: node.outputs[0] ?? '' });
      } else if (field.number === GRAPH.initializer) {
        const tensor = await readTensor(file, field);
        tensors.set(tensor.name, tensor);
        if (tensors.size > MAX_NODES) throw file.broken(`it has more than ${MAX_NODES} tensors`);
      }
    }
  }
  if (graphs !== 1) throw file.broken(`it has ${graphs} graphs, expected 1`);
  return { nodes, tensors };
}

/** Reads all values of a tensor as stored, in f32; also the integers of quantised weights. */
export async function readOnnxValues(file: ProtobufFile, tensor: OnnxTensor): Promise<Float32Array> {
  const { name, type, shape, data } = tensor;
  const format = TYPES.get(type);
  const count = product(shape);
  if (!format) throw file.broken(`${name} has the type ${type}, which no weight has`);
  if (data?.number === TENSOR.int32) {
    const numbers = await file.varints(data, MAX_VARINTS);
    if (numbers.length !== count) throw file.broken(`${name} [${shape.join(', ')}] holds ${numbers.length} values`);
    return Float32Array.from(numbers, format.varint);
  }
  const stored = await readOnnxBytes(file, tensor, { from: 0, to: count })!;
  return format.widen(stored.byteOffset % format.bytes === 0 ? stored : stored.slice());
}

/** Reads the bytes of elements [from, to) of a tensor; undefined where they are stored as varints. */
export function readOnnxBytes(
  file: ProtobufFile,
  { name, type, shape, data }: OnnxTensor,
  { from, to }: Range,
): Promise<Uint8Array> | undefined {
  const { bytes: each } = TYPES.get(type) ?? { bytes: 0 };
  if (data?.number === TENSOR.int32) return undefined;
  const bytes = data ? data.to - data.from : 0;
  if (!data || bytes !== product(shape) * each) throw file.broken(`${name} [${shape.join(', ')}] takes ${bytes} bytes, expected ${product(shape) * each}`); // prettier-ignore
  return file.source.read(data.from + from * each, (to - from) * each);
}

/** Whether a tensor has floats; whether it has the integers of quantised weights. */
export const isFloat = ({ type }: OnnxTensor): boolean => [1, 10, 11, 16].includes(type);
export const isQuantized = ({ type }: OnnxTensor): boolean => type === 2 || type === 3;

/** The dtype's name, as in safetensors. */
export const storageOf = ({ type }: OnnxTensor): string => TYPES.get(type)?.name ?? `type ${type}`;

const MODEL = { graph: 7 } as const;
const GRAPH = { node: 1, initializer: 5 } as const;
const NODE = { input: 1, output: 2, name: 3, op: 4, attribute: 5 } as const;
const ATTRIBUTE = { name: 1, i: 3, t: 5 } as const;
/** DequantizeLinear's default axis. */
const DEFAULT_AXIS = 1;
const TENSOR = { dims: 1, type: 2, float: 4, int32: 5, name: 8, raw: 9, location: 14 } as const;

interface StoredType {
  readonly name: string;
  readonly bytes: number;
  readonly widen: (bytes: Uint8Array) => Float32Array;
  /** Decodes a value stored as a varint. */
  readonly varint: (value: number) => number;
}

const same = (value: number): number => value;
const TYPES: ReadonlyMap<number, StoredType> = new Map([
  [1, { name: 'F32', bytes: 4, varint: same, widen: (b: Uint8Array) => new Float32Array(b.buffer, b.byteOffset, b.byteLength / 4) }],
  [2, { name: 'U8', bytes: 1, varint: same, widen: (b: Uint8Array) => Float32Array.from(b) }],
  [3, { name: 'I8', bytes: 1, varint: same, widen: (b: Uint8Array) => Float32Array.from(new Int8Array(b.buffer, b.byteOffset, b.byteLength)) }],
  [10, { name: 'F16', bytes: 2, varint: f16BitsToF32, widen: (b: Uint8Array) => fromF16(new Uint16Array(b.buffer, b.byteOffset, b.byteLength / 2)) }],
  [11, { name: 'F64', bytes: 8, varint: same, widen: (b: Uint8Array) => Float32Array.from(new Float64Array(b.buffer, b.byteOffset, b.byteLength / 8)) }],
  [16, { name: 'BF16', bytes: 2, varint: (value: number) => fromBF16(Uint16Array.of(value))[0]!, widen: (b: Uint8Array) => fromBF16(new Uint16Array(b.buffer, b.byteOffset, b.byteLength / 2)) }],
]); // prettier-ignore

async function readNode(
  file: ProtobufFile,
  { from, to }: Field,
): Promise<{ readonly node: OnnxNode; readonly value: OnnxTensor | undefined }> {
  const inputs: string[] = [];
  const outputs: string[] = [];
  let [name, op, transB, axis] = ['', '', false, DEFAULT_AXIS];
  let value: OnnxTensor | undefined;
  for await (const field of file.fields(from, to)) {
    if (field.kind !== 'bytes') continue;
    if (inputs.length + outputs.length > MAX_EDGES) throw file.broken(`the node ${name} has more than ${MAX_EDGES} edges`);
    if (field.number === NODE.input) inputs.push(await file.text(field));
    else if (field.number === NODE.output) outputs.push(await file.text(field));
    else if (field.number === NODE.name) name = await file.text(field);
    else if (field.number === NODE.op) op = await file.text(field);
    else if (field.number === NODE.attribute) {
      const attribute = await readAttribute(file, field);
      if (attribute.name === 'transB') transB = attribute.integer !== 0;
      if (attribute.name === 'axis') axis = attribute.integer;
      if (attribute.name === 'value') value = attribute.tensor;
    }
  }
  return { node: { name, op, inputs, outputs, transB, axis }, value: op === 'Constant' ? value : undefined };
}

async function readAttribute(
  file: ProtobufFile,
  { from, to }: Field,
): Promise<{ readonly name: string; readonly integer: number; readonly tensor: OnnxTensor | undefined }> {
  // prettier-ignore
  let name = '';
  let integer = 0;
  let tensor: OnnxTensor | undefined;
  for await (const field of file.fields(from, to)) {
    if (field.number === ATTRIBUTE.name && field.kind === 'bytes') name = await file.text(field);
    else if (field.number === ATTRIBUTE.i) integer = (await file.varints({ ...field, kind: 'bytes' }, 1))[0] ?? 0;
    else if (field.number === ATTRIBUTE.t && field.kind === 'bytes') tensor = await readTensor(file, field);
  }
  return { name, integer, tensor };
}

async function readTensor(file: ProtobufFile, { from, to }: Field): Promise<OnnxTensor> {
  const shape: number[] = [];
  let [name, type] = ['', 0];
  let data: Field | undefined;
  for await (const field of file.fields(from, to)) {
    if (field.number === TENSOR.dims) shape.push(...(await file.varints(field, MAX_RANK)));
    else if (field.number === TENSOR.type) type = field.value;
    else if (field.number === TENSOR.name && field.kind === 'bytes') name = await file.text(field);
    else if (field.number === TENSOR.location && field.value === 1)
      throw file.broken(`the values of ${name} lie in another file (external data); use the export that is one file`); // prettier-ignore
    else if ([TENSOR.float, TENSOR.int32, TENSOR.raw].some((number) => number === field.number)) data = field;
    if (shape.length > MAX_RANK) throw file.broken(`${name} has more than ${MAX_RANK} dimensions`);
  }
  return { name, shape, type, data };
}
