/** Whisper's encoder and Kokoro's residual block as ONNX graphs, of the operators that exporters write. */
import type { WhisperConfig } from '../../../engine/models/whisper/config.ts';
import type { Checkpoint } from '../../../engine/weights/checkpoint.ts';
import type { Initializer, OnnxGraph, OnnxNode } from '../onnx.ts';

/** Collects nodes; each method returns the name of its result. */
class GraphBuilder {
  readonly nodes: OnnxNode[] = [];
  readonly initializers: Record<string, Initializer> = {};

  floats(data: Float32Array, dims: readonly number[]): string {
    const name = `c${Object.keys(this.initializers).length}`;
    this.initializers[name] = { dims, data };
    return name;
  }

  integers(values: readonly number[]): string {
    const name = `c${Object.keys(this.initializers).length}`;
    this.initializers[name] = { dims: [values.length], data: BigInt64Array.from(values, BigInt) };
    return name;
  }

  scalar(value: number): string {
    return this.floats(Float32Array.of(value), [1]);
  }

  node(op: string, inputs: readonly string[], attributes: OnnxNode['attributes'] = {}, domain: OnnxNode['domain'] = ''): string {
    const output = `n${this.nodes.length}`;
    this.nodes.push({ op, inputs, output, attributes, domain });
    return output;
  }

  /** The last node's result is the graph's. */
  graph(inputs: OnnxGraph['inputs'], output: readonly number[]): OnnxGraph {
    const last = this.nodes.pop()!;
    this.nodes.push({ ...last, output: 'y' });
    return { nodes: this.nodes, inputs, initializers: this.initializers, output };
  }
}

/** [rows, columns] -> [columns, rows]: MatMul takes weights in the other order than PyTorch has them. */
function transposed(values: Float32Array, rows: number, columns: number): Float32Array {
  const out = new Float32Array(values.length);
  for (let r = 0; r < rows; r++) for (let c = 0; c < columns; c++) out[c * rows + r] = values[r * columns + c]!;
  return out;
}

/** What encoder and decoder have in common, with the weights of one side of a checkpoint. */
function whisperParts(b: GraphBuilder, checkpoint: Checkpoint, side: 'encoder' | 'decoder', { channels: C }: WhisperConfig) {
  const read = (name: string): Promise<Float32Array> => checkpoint.read(`model.${side}.${name}`);
  const norm = async (x: string, name: string): Promise<string> =>
    b.node('LayerNormalization', [x, b.floats(await read(`${name}.weight`), [C]), b.floats(await read(`${name}.bias`), [C])], { axis: -1, epsilon: { float: 1e-5 } }); // prettier-ignore
  const linear = async (x: string, name: string, out = C, input = C): Promise<string> => {
    const product = b.node('MatMul', [x, b.floats(transposed(await read(`${name}.weight`), out, input), [input, out])]);
    return name.endsWith('k_proj') ? product : b.node('Add', [product, b.floats(await read(`${name}.bias`), [out])]);
  };
  /** q [1, H, T, D], k [1, H, D, S], v [1, H, S, D] -> [1, T, C]. */
  const attend = ([q, k, v]: readonly [string, string, string], headDim: number, joined: string): string => {
    const scores = b.node('Mul', [b.node('MatMul', [q, k]), b.scalar(headDim ** -0.5)]);
    const context = b.node('MatMul', [b.node('Softmax', [scores], { axis: -1 }), v]);
    return b.node('Reshape', [b.node('Transpose', [context], { perm: [0, 2, 1, 3] }), joined]);
  };
  const feedForward = async (x: string, layer: string, ffn: number): Promise<string> => {
    const up = await linear(await norm(x, `${layer}.final_layer_norm`), `${layer}.fc1`, ffn);
    return b.node('Add', [x, await linear(b.node('Gelu', [up], {}, 'com.microsoft'), `${layer}.fc2`, C, ffn)]);
  };
  return { read, norm, linear, attend, feedForward };
}

/** x [1, mels, frames] -> [1, frames / 2, C], with the weights of a checkpoint. */
export async function whisperEncoderGraph(checkpoint: Checkpoint, config: WhisperConfig, frames: number): Promise<OnnxGraph> {
  const { channels: C, mel } = config;
  const { heads, ffn, layers } = config.encoder;
  const S = frames / 2;
  const D = C / heads;
  const b = new GraphBuilder();
  const { read, norm, linear, attend, feedForward } = whisperParts(b, checkpoint, 'encoder', config);
  const conv = async (x: string, name: string, inputs: number, stride: number): Promise<string> => {
    const weight = b.floats(await read(`${name}.weight`), [C, inputs, 3]);
    const out = b.node('Conv', [x, weight, b.floats(await read(`${name}.bias`), [C])], { kernel_shape: [3], strides: [stride], pads: [1, 1], dilations: [1], group: 1 }); // prettier-ignore
    return b.node('Gelu', [out], {}, 'com.microsoft');
  };
  const split = b.integers([1, S, heads, D]);
  const joined = b.integers([1, S, C]);
  const headed = (x: string, perm: readonly number[]): string => b.node('Transpose', [b.node('Reshape', [x, split])], { perm });
  let x = b.node('Transpose', [await conv(await conv('x', 'conv1', mel.mels, 1), 'conv2', C, 2)], { perm: [0, 2, 1] });
  x = b.node('Add', [x, b.floats((await read('embed_positions.weight')).slice(0, S * C), [1, S, C])]);
  for (let i = 0; i < layers; i++) {
    const layer = `layers.${i}`;
    const normed = await norm(x, `${layer}.self_attn_layer_norm`);
    const q = headed(await linear(normed, `${layer}.self_attn.q_proj`), [0, 2, 1, 3]);
    const k = headed(await linear(normed, `${layer}.self_attn.k_proj`), [0, 2, 3, 1]);
    const v = headed(await linear(normed, `${layer}.self_attn.v_proj`), [0, 2, 1, 3]);
    x = b.node('Add', [x, await linear(attend([q, k, v], D, joined), `${layer}.self_attn.out_proj`)]);
    x = await feedForward(x, layer, ffn);
  }
  await norm(x, 'layer_norm');
  return b.graph({ x: [1, mel.mels, frames] }, [1, S, C]);
}

/** Keys, then values, of a layer's past tokens and of its window: [rows, 2 C] each, as Parley keeps them. */
export interface DecoderPast {
  readonly self: Float32Array;
  readonly cross: Float32Array;
}

/** Half of [rows, 2 C] as [H, rows, D], or as [H, D, rows]. */
function headsOf(values: Float32Array, half: 0 | 1, { C, D, turned }: { C: number; D: number; turned: boolean }): Float32Array {
  const rows = values.length / (2 * C);
  return Float32Array.from({ length: rows * C }, (_, i) => {
    const [row, d] = turned ? [i % rows, Math.floor(i / rows) % D] : [Math.floor(i / D) % rows, i % D];
    return values[row * 2 * C + half * C + Math.floor(i / (rows * D)) * D + d]!;
  });
}

/** A token behind others: x [1, 1, C], its embedding and place, -> logits [1, 1, V]. What is known of the others and of the window is constant, as if it were on the device. */
export async function whisperDecoderGraph(checkpoint: Checkpoint, config: WhisperConfig, past: readonly DecoderPast[]): Promise<OnnxGraph> {
  const { channels: C, vocabulary } = config;
  const { heads, ffn, layers } = config.decoder;
  const D = C / heads;
  const b = new GraphBuilder();
  const { read, norm, linear, attend, feedForward } = whisperParts(b, checkpoint, 'decoder', config);
  const split = b.integers([1, 1, heads, D]);
  const joined = b.integers([1, 1, C]);
  const headed = (x: string): string => b.node('Transpose', [b.node('Reshape', [x, split])], { perm: [0, 2, 1, 3] });
  const kept = (values: Float32Array, half: 0 | 1, turned: boolean): string => {
    const rows = values.length / (2 * C);
    return b.floats(headsOf(values, half, { C, D, turned }), [1, heads, ...(turned ? [D, rows] : [rows, D])]);
  };
  let x = 'x';
  for (let i = 0; i < layers; i++) {
    const [layer, { self, cross }] = [`layers.${i}`, past[i]!];
    const normed = await norm(x, `${layer}.self_attn_layer_norm`);
    const q = headed(await linear(normed, `${layer}.self_attn.q_proj`));
    const keys = b.node('Concat', [kept(self, 0, false), headed(await linear(normed, `${layer}.self_attn.k_proj`))], { axis: 2 });
    const values = b.node('Concat', [kept(self, 1, false), headed(await linear(normed, `${layer}.self_attn.v_proj`))], { axis: 2 });
    const own = attend([q, b.node('Transpose', [keys], { perm: [0, 1, 3, 2] }), values], D, joined);
    x = b.node('Add', [x, await linear(own, `${layer}.self_attn.out_proj`)]);
    const query = headed(await linear(await norm(x, `${layer}.encoder_attn_layer_norm`), `${layer}.encoder_attn.q_proj`));
    const heard = attend([query, kept(cross, 0, true), kept(cross, 1, false)], D, joined);
    x = b.node('Add', [x, await linear(heard, `${layer}.encoder_attn.out_proj`)]);
    x = await feedForward(x, layer, ffn);
  }
  const table = transposed(await read('embed_tokens.weight'), vocabulary, C);
  b.node('MatMul', [await norm(x, 'layer_norm'), b.floats(table, [C, vocabulary])]);
  return b.graph({ x: [1, 1, C] }, [1, 1, vocabulary]);
}

/** One layer of an AdaINResBlock1: scales and shifts of the style and Snake's alphas [C], convolutions [C, C, kernel] and their biases. */
export interface SnakeLayerData {
  readonly dilation: number;
  readonly halves: readonly [SnakeHalf, SnakeHalf];
}

export interface SnakeHalf {
  readonly scale: Float32Array;
  readonly shift: Float32Array;
  readonly alpha: Float32Array;
  readonly weight: Float32Array;
  readonly bias: Float32Array;
}

/** x [1, C, rows] -> [1, C, rows] through layers of instance norm, style, Snake and convolution, twice each. */
export function snakeBlockGraph(layers: readonly SnakeLayerData[], channels: number, kernel: number, rows: number): OnnxGraph {
  const b = new GraphBuilder();
  const column = (values: Float32Array): string => b.floats(values, [1, channels, 1]);
  const ones = b.floats(new Float32Array(channels).fill(1), [channels]);
  const zeros = b.floats(new Float32Array(channels), [channels]);
  let x = 'x';
  for (const { dilation, halves } of layers) {
    let y = x;
    halves.forEach(({ scale, shift, alpha, weight, bias }, half) => {
      const normed = b.node('InstanceNormalization', [y, ones, zeros], { epsilon: { float: 1e-5 } });
      const styled = b.node('Add', [b.node('Mul', [normed, column(scale)]), column(shift)]);
      const sine = b.node('Sin', [b.node('Mul', [styled, column(alpha)])]);
      const squared = b.node('Mul', [b.node('Mul', [sine, sine]), column(alpha.map((a) => 1 / a))]);
      const step = half === 0 ? dilation : 1;
      const pad = (step * (kernel - 1)) / 2;
      const filters = [b.floats(weight, [channels, channels, kernel]), b.floats(bias, [channels])];
      y = b.node('Conv', [b.node('Add', [styled, squared]), ...filters], { kernel_shape: [kernel], strides: [1], pads: [pad, pad], dilations: [step], group: 1 }); // prettier-ignore
    });
    x = b.node('Add', [x, y]);
  }
  return b.graph({ x: [1, channels, rows] }, [1, channels, rows]);
}
