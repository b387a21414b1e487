/**
 * Maps Kokoro's weights in an ONNX export to PyTorch's names. Names of initialisers mean nothing (`onnx::LSTM_6930`), and equal ones are
 * merged; but the node that reads a weight is named by the path of its module: `/encoder/F0.0/conv1/Conv_quant` reads
 * `predictor.F0.0.conv1.weight`.
 */
import { EngineError } from '../../errors.ts';
import { product, sizeOf } from '../../util/math.ts';
import type { Range } from '../../util/math.ts';
import { BLOCK, rowBlocks } from '../block-format.ts';
import type { ComputedTensor } from '../computed-checkpoint.ts';
import { wholeTensor } from '../computed-checkpoint.ts';
import { isFloat, isQuantized, readOnnxBytes, readOnnxGraph, readOnnxValues, storageOf } from '../onnx/onnx-graph.ts';
import type { OnnxGraph, OnnxNode, OnnxTensor } from '../onnx/onnx-graph.ts';
import type { ProtobufFile } from '../onnx/protobuf.ts';
import { canonicalName, moduleOf } from './onnx-names.ts';

/** Finds the tensors of a Kokoro export; throws EngineError('invalid_model') with the path for another model or another kind of storage. */
export async function kokoroOnnxTensors(file: ProtobufFile): Promise<ReadonlyMap<string, ComputedTensor>> {
  const finder = new WeightFinder(file, await readOnnxGraph(file));
  return finder.find();
}

/** A quantised weight: stored integers, their scales and zero points. */
interface Quantized {
  readonly values: OnnxTensor;
  readonly scale: OnnxTensor;
  readonly zero: OnnxTensor | undefined;
}

/** A matrix [inputs, columns] that begins at element `first`, transposed: row r of the result is column `order(r)`. */
interface Columns {
  readonly first: number;
  readonly inputs: number;
  readonly columns: number;
  readonly order: (row: number) => number;
}

type Int8Rows = Required<Pick<ComputedTensor, 'blocks' | 'readBlocks'>>;

/** Most casts behind a weight: exports cast it once, or there and back. In a damaged file a cast may read itself. */
const MAX_CASTS = 4;
/** Most zero points of a weight, which has one, or one per column. */
const MAX_ZEROS = 1 << 14;

/** Readers of weights by node type. */
const READERS: ReadonlyMap<string, (finder: WeightFinder, node: OnnxNode) => void> = new Map([
  ['ConvInteger', (finder, node) => finder.conv(node, finder.integers(node))],
  ['Conv', (finder, node) => finder.conv(node, finder.weight(node.inputs[1]))],
  ['ConvTranspose', (finder, node) => finder.conv(node, finder.weight(node.inputs[1]))],
  ['MatMulInteger', (finder, node) => finder.matrix(node, finder.integers(node), finder.columns(node))],
  ['MatMul', (finder, node) => finder.matrix(node, finder.weight(node.inputs[1]))],
  ['FusedMatMul', (finder, node) => finder.matrix(node, finder.weight(node.inputs[1]))],
  ['Gemm', (finder, node) => finder.matrix(node, finder.weight(node.inputs[1]))],
  ['Gather', (finder, node) => finder.table(node)],
  ['LSTM', (finder, node) => finder.lstm(node)],
  ['DynamicQuantizeLSTM', (finder, node) => finder.lstm(node)],
]);

/** Node types with block-quantised weights, which some exports have. */
const UNREAD = /^(MatMulNBits|GatherBlockQuantized|MatMulBnb4)$/;

/** Initialisers that kept their names: biases, norms, and weights stored as they are. */
const NAMED = /^[^/].*\.(bias|gamma|beta|weight|weight_[gv]|alpha[12]\.\d+)$/;
/** Bases of the Fourier transforms, which are computed here instead. */
const FOURIER = /stft/;
/** Affine parameters of AdaIN's normalisation, 1 and 0 in every published Kokoro; exporters keep some of them. */
const AFFINE = /\.norm\.(weight|bias)$/;

class WeightFinder {
  readonly #file: ProtobufFile;
  readonly #graph: OnnxGraph;
  readonly #found = new Map<string, { readonly tensor: ComputedTensor; readonly from: string }>();
  readonly #zeros = new Set<string>();
  readonly #byName: ReadonlyMap<string, OnnxNode>;
  readonly #maker: ReadonlyMap<string, OnnxNode>;
  readonly #reader: ReadonlyMap<string, OnnxNode>;

  constructor(file: ProtobufFile, graph: OnnxGraph) {
    this.#file = file;
    this.#graph = graph;
    this.#byName = new Map(graph.nodes.map((node) => [node.name, node]));
    this.#maker = new Map(graph.nodes.flatMap((node) => node.outputs.map((output) => [output, node] as const)));
    this.#reader = new Map(graph.nodes.flatMap((node) => node.inputs.map((input) => [input, node] as const)));
  }

  async find(): Promise<ReadonlyMap<string, ComputedTensor>> {
    await this.#findZeros();
    for (const node of this.#graph.nodes) {
      if (UNREAD.test(node.op)) this.#refuse(`its weights are stored in blocks (${node.op}); take the int8, fp16 or fp32 export`);
      if (!FOURIER.test(node.name) && !FOURIER.test(node.inputs[1] ?? '')) READERS.get(node.op)?.(this, node);
    }
    for (const [name, tensor] of this.#graph.tensors) {
      if (!isFloat(tensor) || !NAMED.test(name) || FOURIER.test(name)) continue;
      if (!AFFINE.test(name) || !(await this.#isNeutral(name, tensor))) this.#put(canonicalName(name), this.#stored(tensor), name);
    }
    return new Map([...this.#found].map(([name, { tensor }]) => [name, tensor]));
  }

  /** Convolution weight [out, in, kernel] and its bias. */
  conv(node: OnnxNode, weight: ComputedTensor | undefined): void {
    if (!weight) return;
    this.#put(`${moduleOf(node.name)}.weight`, weight, node.inputs[1]!);
    const bias = this.#constant(node.op === 'ConvInteger' ? undefined : node.inputs[2]);
    if (bias && isFloat(bias)) this.#put(`${moduleOf(node.name)}.bias`, this.#stored(bias), bias.name);
  }

  /** A linear layer's weight, stored [in, out] and read [out, in]; `int8` has its stored integers as rows. */
  matrix(node: OnnxNode, stored: ComputedTensor | undefined, int8?: Int8Rows): void {
    if (!stored || stored.shape.length !== 2) return;
    const weight = node.transB ? stored : transposed(stored);
    this.#put(`${moduleOf(node.name)}.weight`, { ...weight, ...(!node.transB && int8) }, node.inputs[1]!);
    const bias = this.#constant(node.op === 'Gemm' ? node.inputs[2] : undefined);
    if (bias && isFloat(bias)) this.#put(`${moduleOf(node.name)}.bias`, this.#stored(bias), bias.name);
  }

  /** An embedding table, dequantised after the look-up if it is stored as integers. */
  table(node: OnnxNode): void {
    const values = this.#constant(node.inputs[0]);
    if (values?.shape.length !== 2) return;
    const name = `${moduleOf(node.name)}.weight`;
    if (isFloat(values)) this.#put(name, this.#stored(values), values.name);
    if (!isQuantized(values)) return;
    let after = this.#reader.get(node.outputs[0] ?? '');
    // Quantisers move the scale behind operations that only move values.
    for (let i = 0; i < 4 && after && /^(Transpose|Reshape|Unsqueeze|Squeeze)$/.test(after.op); i++)
      after = this.#reader.get(after.outputs[0] ?? '');
    const scale = this.#constant(after?.inputs[1]);
    if (after?.op !== 'DequantizeLinear' || !scale) return this.#refuse(`the table at ${node.name} has no scale`);
    // Rows are looked up before they are scaled, so a list of scales can only belong to columns.
    this.#put(name, this.#scaled({ values, scale, zero: this.#constant(after.inputs[2]) }, 1), values.name);
  }

  /**
   * LSTM weights: W [directions, 4H, in], R [directions, 4H, H], B [directions, 8H], with gates in the order iofc; quantised ones are
   * [directions, in, 4H].
   */
  lstm(node: OnnxNode): void {
    const quantized = node.op === 'DynamicQuantizeLSTM';
    const [input, recurrent] = [1, 2].map((i) => this.#lstmMatrix(node, i, quantized));
    const bias = this.#constant(node.inputs[3]);
    if (!input || !recurrent || !bias) return this.#refuse(`the weights of ${node.name} are no constants`);
    const module = moduleOf(node.name);
    const [directions = 0, gates = 0] = input.shape;
    const biases = this.#stored(bias);
    if (product(bias.shape) !== directions * 2 * gates || recurrent.shape[1] !== gates) this.#refuse(`the shapes at ${node.name} do not fit together`); // prettier-ignore
    for (const [d, suffix] of ['l0', 'l0_reverse'].slice(0, directions).entries()) {
      const part = (tensor: ComputedTensor, shape: readonly number[], first: number): ComputedTensor => gatesInOrder(tensor, shape, first);
      const width = (tensor: ComputedTensor): number => tensor.shape[2]!;
      const int8 = this.#quantizedLstm(node, 1);
      const rows =
        int8 && this.#int8Rows(int8, { first: d * gates * width(input), inputs: width(input), columns: gates, order: gateColumn(gates) });
      this.#put(`${module}.weight_ih_${suffix}`, { ...part(input, [gates, width(input)], d * gates * width(input)), ...rows }, node.name);
      this.#put(`${module}.weight_hh_${suffix}`, part(recurrent, [gates, width(recurrent)], d * gates * width(recurrent)), node.name);
      this.#put(`${module}.bias_ih_${suffix}`, part(biases, [gates], d * 2 * gates), node.name);
      this.#put(`${module}.bias_hh_${suffix}`, part(biases, [gates], (d * 2 + 1) * gates), node.name);
    }
  }

  /** A weight stored as floats, or dequantised before it is read; `casts` are the casts behind it. */
  weight(name: string | undefined, casts = 0): ComputedTensor | undefined {
    const tensor = this.#constant(name);
    if (tensor) return isFloat(tensor) ? this.#stored(tensor) : undefined;
    const maker = this.#maker.get(name ?? '');
    if (maker?.op === 'Cast') return casts < MAX_CASTS ? this.weight(maker.inputs[0], casts + 1) : undefined;
    const [values, scale, zero] = (maker?.op === 'DequantizeLinear' ? maker.inputs : []).map((input) => this.#constant(input));
    if (!maker || !values || !scale || !isQuantized(values)) return undefined;
    return this.#scaled({ values, scale, zero }, maker.axis < 0 ? maker.axis + values.shape.length : maker.axis);
  }

  /** The weight of an integer matrix product. */
  integers(node: OnnxNode): ComputedTensor | undefined {
    const parts = this.#integerParts(node);
    return parts && this.#scaled(parts, node.op === 'MatMulInteger' ? 1 : 0);
  }

  /** The columns of an integer matrix product's weight, as stored, as rows of I8 blocks. */
  columns(node: OnnxNode): Int8Rows | undefined {
    const parts = this.#integerParts(node);
    const [inputs = 0, columns = 0] = parts?.values.shape ?? [];
    return parts && this.#int8Rows(parts, { first: 0, inputs, columns, order: (row) => row });
  }

  /** The weight of an integer product, with its scale and zero point. A node of its own multiplies the scale with the input's. */
  #integerParts(node: OnnxNode): Quantized | undefined {
    const values = this.#constant(node.inputs[1]);
    if (!values || !isQuantized(values)) return undefined;
    const product = this.#byName.get(`${node.name}_scales_mul`)?.inputs.map((input) => this.#constant(input)).find((input) => input); // prettier-ignore
    const scale = product ?? this.#constant(values.name.replace(/_quantized$/, '_scale'));
    if (!scale) return this.#refuse(`the weight at ${node.name} has no scale`);
    return { values, scale, zero: this.#constant(node.inputs[3]) };
  }

  #lstmMatrix(node: OnnxNode, input: number, quantized: boolean): ComputedTensor | undefined {
    const values = this.#constant(node.inputs[input]);
    if (values?.shape.length !== 3) return undefined;
    if (!quantized) return isFloat(values) ? this.#stored(values) : undefined;
    const parts = this.#quantizedLstm(node, input);
    if (!parts) return undefined;
    const [directions = 0, rows = 0, columns = 0] = values.shape;
    return wholeTensor(storageOf(values), [directions, columns, rows], async () => {
      const plain = await this.#dequantize(parts, directionOrColumn(values, parts.scale));
      return transposeEach(plain, directions, rows, columns);
    });
  }

  #quantizedLstm(node: OnnxNode, input: number): Quantized | undefined {
    const [values, scale, zero] = [input, 2 * input + 6, 2 * input + 7].map((i) => this.#constant(node.inputs[i]));
    return values && scale && isQuantized(values) ? { values, scale, zero } : undefined;
  }

  /** Finds zero points that are all 0, as those of signed weights are in published exports. */
  async #findZeros(): Promise<void> {
    const isShort = ({ shape }: OnnxTensor): boolean => shape.length <= 2 && product(shape) <= MAX_ZEROS;
    for (const tensor of this.#graph.tensors.values())
      if (isQuantized(tensor) && isShort(tensor) && (await readOnnxValues(this.#file, tensor)).every((value) => value === 0))
        this.#zeros.add(tensor.name);
  }

  /** Columns of signed bytes as rows of I8 blocks; undefined where the weight is stored otherwise. */
  #int8Rows({ values, scale, zero }: Quantized, { first, inputs, columns, order }: Columns): Int8Rows | undefined {
    const [directions = 1] = values.shape;
    const each = inputs * columns;
    if (storageOf(values) !== 'I8' || inputs % BLOCK !== 0 || (zero && !this.#zeros.has(zero.name))) return undefined;
    const readBlocks = async (rows: Range): Promise<Uint8Array> => {
      const stored = await readOnnxBytes(this.#file, values, { from: first, to: first + each });
      const scales = await readOnnxValues(this.#file, scale);
      // One scale for all, one per direction of an LSTM, or one per column.
      const perMatrix = scales.length === 1 ? 0 : values.shape.length === 3 && scales.length <= directions ? 1 : columns;
      const codes = new Uint8Array(sizeOf(rows) * inputs);
      const ofRows = new Float32Array(sizeOf(rows));
      for (let row = 0; row < ofRows.length; row++) {
        const column = order(rows.from + row);
        ofRows[row] = scales[(first / each) * perMatrix + (perMatrix > 1 ? column : 0)]!;
        for (let k = 0; k < inputs; k++) codes[row * inputs + k] = stored![k * columns + column]!;
      }
      return rowBlocks(codes, ofRows);
    };
    return { blocks: 'I8', readBlocks };
  }

  #constant(name: string | undefined): OnnxTensor | undefined {
    return name === undefined || name === '' ? undefined : this.#graph.tensors.get(name);
  }

  #stored(tensor: OnnxTensor): ComputedTensor {
    const whole = wholeTensor(storageOf(tensor), tensor.shape, () => readOnnxValues(this.#file, tensor));
    return { ...whole, stored: (elements) => readOnnxBytes(this.#file, tensor, elements) };
  }

  /** `axis`: the axis that a list of scales belongs to. */
  #scaled(parts: Quantized, axis: number): ComputedTensor {
    const { values, scale } = parts;
    const width = product(values.shape.slice(axis + 1));
    const count = values.shape[axis] ?? 1;
    const scales = product(scale.shape);
    if (scales !== 1 && scales !== count)
      this.#refuse(`${values.name} [${values.shape.join(', ')}] has ${scales} scales along dimension ${axis}`);
    return wholeTensor(storageOf(values), values.shape, () => this.#dequantize(parts, (i) => Math.floor(i / width) % count));
  }

  /** Dequantises: (q - zero) * scale; `place` gives the index of an element's scale. */
  async #dequantize({ values, scale, zero }: Quantized, place: (element: number) => number): Promise<Float32Array> {
    const out = await readOnnxValues(this.#file, values);
    const scales = await readOnnxValues(this.#file, scale);
    const zeros = zero ? await readOnnxValues(this.#file, zero) : Float32Array.of(0);
    const places = Math.max(scales.length, zeros.length);
    const fits = (list: Float32Array): boolean => list.length === 1 || list.length === places;
    if (!fits(scales) || !fits(zeros)) this.#refuse(`${values.name} has ${scales.length} scales and ${zeros.length} zero points`);
    for (let i = 0; i < out.length; i++) {
      const at = places === 1 ? 0 : place(i);
      out[i] = (out[i]! - zeros[zeros.length === 1 ? 0 : at]!) * scales[scales.length === 1 ? 0 : at]!;
    }
    return out;
  }

  async #isNeutral(name: string, tensor: OnnxTensor): Promise<boolean> {
    const neutral = name.endsWith('weight') ? 1 : 0;
    return (await readOnnxValues(this.#file, tensor)).every((value) => value === neutral);
  }

  #put(name: string, tensor: ComputedTensor, from: string): void {
    const other = this.#found.get(name);
    // ALBERT's layers share their weights, so several nodes read one.
    if (other && other.from !== from) this.#refuse(`both ${other.from} and ${from} are ${name}`);
    this.#found.set(name, { tensor, from });
  }

  #refuse(why: string): never {
    throw new EngineError('invalid_model', `${this.#file.path} is no Kokoro that can be read: ${why}`);
  }
}

function transposed(tensor: ComputedTensor): ComputedTensor {
  const [rows = 0, columns = 0] = tensor.shape;
  return wholeTensor(tensor.dtype, [columns, rows], async () =>
    transposeEach(await tensor.read({ from: 0, to: rows * columns }), 1, rows, columns),
  );
}

/** Transposes `count` matrices [rows, columns] each. */
function transposeEach(values: Float32Array, count: number, rows: number, columns: number): Float32Array {
  const out = new Float32Array(values.length);
  for (let m = 0; m < count; m++) {
    const first = m * rows * columns;
    for (let r = 0; r < rows; r++) for (let c = 0; c < columns; c++) out[first + c * rows + r] = values[first + r * columns + c]!;
  }
  return out;
}

/** Scales of [directions, in, 4H]: one per direction, or one per direction and column. */
function directionOrColumn({ shape }: OnnxTensor, scale: OnnxTensor): (element: number) => number {
  const [directions = 1, rows = 1, columns = 1] = shape;
  if (product(scale.shape) <= directions) return (i) => Math.floor(i / (rows * columns));
  return (i) => Math.floor(i / (rows * columns)) * columns + (i % columns);
}

/** Order of an LSTM's gates: ONNX has input, output, forget, cell; PyTorch has input, forget, cell, output. */
const GATES = [0, 2, 3, 1];

/** Index among ONNX's gate rows of a row in PyTorch's order. */
function gateColumn(gates: number): (row: number) => number {
  const each = gates / GATES.length;
  return (row) => GATES[Math.floor(row / each)]! * each + (row % each);
}

/** The part [4H, …] of a tensor from element `first` on, with its gates in PyTorch's order. */
function gatesInOrder(tensor: ComputedTensor, shape: readonly number[], first: number): ComputedTensor {
  const size = product(shape);
  return wholeTensor(tensor.dtype, shape, async () => {
    const values = await tensor.read({ from: first, to: first + size });
    const out = new Float32Array(size);
    const each = size / GATES.length;
    for (const [to, from] of GATES.entries()) out.set(values.subarray(from * each, (from + 1) * each), to * each);
    return out;
  });
}
