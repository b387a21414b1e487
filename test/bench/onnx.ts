/** Small ONNX models as protobuf bytes: just enough of onnx.proto3 for the benchmarks' rival. */

export type Attribute = number | { readonly float: number } | string | readonly number[];

export interface Initializer {
  readonly dims: readonly number[];
  readonly data: Float32Array | Uint8Array | BigInt64Array;
}

export interface OnnxNode {
  readonly op: string;
  readonly domain?: '' | 'com.microsoft';
  readonly attributes?: Readonly<Record<string, Attribute>>;
  readonly inputs: readonly string[];
  readonly output: string;
}

export interface OnnxGraph {
  /** In order of execution; the last one's output is the model's, named `y`. */
  readonly nodes: readonly OnnxNode[];
  /** Run-time inputs, f32, with their shapes. */
  readonly inputs: Readonly<Record<string, readonly number[]>>;
  readonly initializers?: Readonly<Record<string, Initializer>>;
  readonly output: readonly number[];
}

const FLOAT = 1;
const UINT8 = 2;
const INT64 = 7;

/** Appends protobuf fields to a growing list of chunks. */
class Writer {
  readonly #chunks: Uint8Array[] = [];

  #varint(value: number): void {
    const bytes: number[] = [];
    let rest = BigInt.asUintN(64, BigInt(value));
    do {
      bytes.push(Number(rest & 127n) | (rest > 127n ? 128 : 0));
      rest >>= 7n;
    } while (rest > 0n);
    this.#chunks.push(Uint8Array.from(bytes));
  }

  int(field: number, value: number): this {
    this.#varint(field << 3);
    this.#varint(value);
    return this;
  }

  float(field: number, value: number): this {
    this.#varint((field << 3) | 5);
    this.#chunks.push(new Uint8Array(Float32Array.of(value).buffer));
    return this;
  }

  bytes(field: number, value: Uint8Array): this {
    this.#varint((field << 3) | 2);
    this.#varint(value.length);
    this.#chunks.push(value);
    return this;
  }

  text(field: number, value: string): this {
    return this.bytes(field, new TextEncoder().encode(value));
  }

  message(field: number, build: (writer: Writer) => void): this {
    const inner = new Writer();
    build(inner);
    return this.bytes(field, inner.finish());
  }

  finish(): Uint8Array {
    const out = new Uint8Array(this.#chunks.reduce((sum, chunk) => sum + chunk.length, 0));
    let at = 0;
    for (const chunk of this.#chunks) {
      out.set(chunk, at);
      at += chunk.length;
    }
    return out;
  }
}

function writeAttribute(writer: Writer, name: string, value: Attribute): void {
  writer.text(1, name);
  if (typeof value === 'number') writer.int(3, value).int(20, 2);
  else if (typeof value === 'string') writer.text(4, value).int(20, 3);
  else if ('float' in value) writer.float(2, value.float).int(20, 1);
  else {
    for (const item of value) writer.int(8, item);
    writer.int(20, 7);
  }
}

function writeInitializer(writer: Writer, name: string, { dims, data }: Initializer): void {
  for (const dim of dims) writer.int(1, dim);
  writer.int(2, data instanceof Float32Array ? FLOAT : data instanceof Uint8Array ? UINT8 : INT64);
  writer.text(8, name);
  writer.bytes(9, new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
}

function writeValueInfo(writer: Writer, name: string, dims: readonly number[]): void {
  writer.text(1, name).message(2, (type) =>
    type.message(1, (tensor) =>
      tensor.int(1, FLOAT).message(2, (shape) => {
        for (const dim of dims) shape.message(1, (entry) => entry.int(1, dim));
      }),
    ),
  );
}

/** One node whose inputs are the graph's inputs, then its initialisers. */
export function singleNode(
  op: string,
  graph: Omit<OnnxGraph, 'nodes'>,
  attributes: OnnxNode['attributes'] = {},
  domain: '' | 'com.microsoft' = '',
): OnnxGraph {
  const inputs = [...Object.keys(graph.inputs), ...Object.keys(graph.initializers ?? {})];
  return { ...graph, nodes: [{ op, domain, attributes, inputs, output: 'y' }] };
}

/** The graph as the bytes of a .onnx file. */
export function onnxModel({ nodes, inputs, initializers = {}, output }: OnnxGraph): Uint8Array {
  const model = new Writer().int(1, 10).text(2, 'parley-bench');
  model.message(7, (graph) => {
    for (const [i, node] of nodes.entries()) {
      graph.message(1, (proto) => {
        for (const name of node.inputs) proto.text(1, name);
        proto.text(2, node.output).text(3, `${node.op} ${i}`).text(4, node.op);
        for (const [name, value] of Object.entries(node.attributes ?? {}))
          proto.message(5, (attribute) => writeAttribute(attribute, name, value));
        if (node.domain) proto.text(7, node.domain);
      });
    }
    graph.text(2, 'bench');
    for (const [name, value] of Object.entries(initializers)) graph.message(5, (tensor) => writeInitializer(tensor, name, value));
    for (const [name, dims] of Object.entries(inputs)) graph.message(11, (info) => writeValueInfo(info, name, dims));
    graph.message(12, (info) => writeValueInfo(info, 'y', output));
  });
  model.message(8, (opset) => opset.text(1, '').int(2, 20)).message(8, (opset) => opset.text(1, 'com.microsoft').int(2, 1));
  return model.finish();
}
