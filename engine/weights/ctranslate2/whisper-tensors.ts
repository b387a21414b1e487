/** Maps CTranslate2's variables of a Whisper to the tensors of Hugging Face's checkpoints. */
import { EngineError } from '../../errors.ts';
import type { ByteSource } from '../../platform/platform.ts';
import { product, sizeOf } from '../../util/math.ts';
import type { Range } from '../../util/math.ts';
import { BLOCK, rowBlocks } from '../block-format.ts';
import type { ComputedTensor } from '../computed-checkpoint.ts';
import { readStored, storedBytes } from './model-bin.ts';
import type { ModelBin, Variable } from './model-bin.ts';

/** What model.bin says of the model besides its weights. */
export interface WhisperShape {
  readonly encoder: StackShape;
  readonly decoder: StackShape;
  readonly vocabulary: number;
  readonly channels: number;
  readonly mels: number;
  readonly sourcePositions: number;
  readonly targetPositions: number;
  /** The activation's name in transformers. */
  readonly activation: string;
}

export interface StackShape {
  readonly layers: number;
  readonly heads: number;
  readonly ffn: number;
}

export interface WhisperWeights {
  readonly shape: WhisperShape;
  readonly tensors: ReadonlyMap<string, ComputedTensor>;
}

/** CTranslate2's enum ActivationType. */
const ACTIVATIONS = ['relu', 'gelu_new', 'silu', 'gelu', 'gelu_sigmoid', 'tanh'] as const;
/** Settings of other decoder architectures; Whisper's are all 0. */
const MUST_BE_ZERO = ['alibi', 'alibi_use_positive_positions', 'scale_alibi', 'scale_embeddings', 'start_from_zero_embedding', 'sliding_window'].map((name) => `decoder/${name}`); // prettier-ignore
/** Settings that add nothing, and the converter's placeholders; the real alignment heads are in config.json. */
const UNUSED = ['decoder/alignment_heads', 'decoder/alignment_layer', 'encoder/activation', 'encoder/pre_norm', 'encoder/scale_embeddings'];
/** Channels per head of every published Whisper. */
const HEAD_CHANNELS = 64;

/** Finds a Whisper's tensors in a model.bin; throws EngineError('invalid_model') for another model or another architecture. */
export async function whisperTensors(path: string, source: ByteSource, bin: ModelBin): Promise<WhisperWeights> {
  if (bin.spec !== 'WhisperSpec') throw new EngineError('invalid_model', `${path} holds a ${bin.spec}; of CTranslate2's models only Whisper (WhisperSpec) is read`); // prettier-ignore
  return new Mapping(path, source, bin).whisper();
}

class Mapping {
  readonly #path: string;
  readonly #source: ByteSource;
  readonly #left: Map<string, Variable>;
  readonly #tensors = new Map<string, ComputedTensor>();

  constructor(path: string, source: ByteSource, { variables, aliases }: ModelBin) {
    this.#path = path;
    this.#source = source;
    this.#left = new Map(variables);
    // The converter stores equal variables once, such as untrained norms, and does not mention that a scale goes with them.
    for (const [alias, name] of aliases) {
      for (const end of ['', '_scale']) {
        const variable = variables.get(name + end);
        if (variable) this.#left.set(alias + end, variable);
      }
    }
  }

  async whisper(): Promise<WhisperWeights> {
    for (const conv of ['conv1', 'conv2']) this.#linear(`encoder/${conv}`, `model.encoder.${conv}`);
    const embedding = this.#take('decoder/embeddings/weight', 'model.decoder.embed_tokens.weight').shape;
    const channels = embedding[1] ?? 0;
    const encoder = await this.#stack('encoder', channels);
    const decoder = await this.#stack('decoder', channels);
    const activation = await this.#activation();
    for (const name of MUST_BE_ZERO) if ((await this.#number(name)) ?? 0) this.#refuse(`${name} is set, which no Whisper has`);
    if (((await this.#number('decoder/pre_norm')) ?? 1) !== 1) this.#refuse('decoder/pre_norm is 0, which no Whisper has');
    for (const name of UNUSED) this.#left.delete(name);
    this.#left.delete('decoder/projection/weight');
    this.#left.delete('decoder/projection/weight_scale');
    const [unknown] = this.#left.keys();
    if (unknown !== undefined) this.#refuse(`it has the variable ${unknown}, which no Whisper has`);
    const size = (name: string, axis: number): number => this.#tensors.get(name)?.shape[axis] ?? 0;
    const shape: WhisperShape = {
      encoder,
      decoder,
      vocabulary: embedding[0] ?? 0,
      channels,
      mels: size('model.encoder.conv1.weight', 1),
      sourcePositions: size('model.encoder.embed_positions.weight', 0),
      targetPositions: size('model.decoder.embed_positions.weight', 0),
      activation,
    };
    return { shape, tensors: this.#tensors };
  }

  async #stack(side: 'encoder' | 'decoder', channels: number): Promise<StackShape> {
    let layers = 0;
    let ffn = 0;
    for (; this.#left.has(`${side}/layer_${layers}/ffn/linear_0/weight`); layers++) {
      const [from, to] = [`${side}/layer_${layers}`, `model.${side}.layers.${layers}`];
      this.#norm(`${from}/self_attention/layer_norm`, `${to}.self_attn_layer_norm`);
      await this.#fused(`${from}/self_attention/linear_0`, `${to}.self_attn`, ['q', 'k', 'v']);
      this.#linear(`${from}/self_attention/linear_1`, `${to}.self_attn.out_proj`);
      if (side === 'decoder') {
        this.#norm(`${from}/attention/layer_norm`, `${to}.encoder_attn_layer_norm`);
        this.#linear(`${from}/attention/linear_0`, `${to}.encoder_attn.q_proj`);
        await this.#fused(`${from}/attention/linear_1`, `${to}.encoder_attn`, ['k', 'v']);
        this.#linear(`${from}/attention/linear_2`, `${to}.encoder_attn.out_proj`);
      }
      this.#norm(`${from}/ffn/layer_norm`, `${to}.final_layer_norm`);
      ffn = this.#linear(`${from}/ffn/linear_0`, `${to}.fc1`);
      this.#linear(`${from}/ffn/linear_1`, `${to}.fc2`);
    }
    this.#norm(`${side}/layer_norm`, `model.${side}.layer_norm`);
    this.#take(`${side}/position_encodings/encodings`, `model.${side}.embed_positions.weight`);
    return { layers, heads: (await this.#number(`${side}/num_heads`)) ?? Math.floor(channels / HEAD_CHANNELS), ffn };
  }

  #norm(from: string, to: string): void {
    this.#take(`${from}/gamma`, `${to}.weight`);
    this.#take(`${from}/beta`, `${to}.bias`);
  }

  /** Adds a linear layer; returns its number of outputs. */
  #linear(from: string, to: string): number {
    this.#take(`${from}/weight`, `${to}.weight`);
    return this.#take(`${from}/bias`, `${to}.bias`).shape[0] ?? 0;
  }

  /** Splits a matrix that stacks several projections into these. The keys' bias is all zeros, and Whisper has none. */
  async #fused(from: string, to: string, names: readonly string[]): Promise<void> {
    const weight = this.#remove(`${from}/weight`);
    const scale = this.#scale(`${from}/weight`, weight);
    const bias = this.#remove(`${from}/bias`);
    const [rows = 0, columns = 0] = weight.shape;
    const each = rows / names.length;
    if (!Number.isInteger(each) || weight.shape.length !== 2 || bias.shape[0] !== rows) this.#refuse(`${from} has the shape [${weight.shape.join(', ')}] and ${bias.shape[0] ?? 0} biases`); // prettier-ignore
    for (const [i, name] of names.entries()) {
      this.#put(`${to}.${name}_proj.weight`, weight, [each, columns], { first: i * each * columns, scale });
      if (name !== 'k') this.#put(`${to}.${name}_proj.bias`, bias, [each], { first: i * each });
      else if ((await readStored(this.#source, bias, { from: i * each, to: (i + 1) * each })).some((value) => value !== 0)) {
        this.#refuse(`the key projection ${from} has a bias, which no Whisper has`);
      }
    }
  }

  /** Adds a variable under another name. */
  #take(from: string, to: string): ComputedTensor {
    const variable = this.#remove(from);
    return this.#put(to, variable, variable.shape, { scale: this.#scale(from, variable) });
  }

  #remove(name: string): Variable {
    const variable = this.#left.get(name);
    if (!variable) return this.#refuse(`it lacks the variable ${name}`);
    this.#left.delete(name);
    return variable;
  }

  /** The scale of a quantised variable: a value per row for int8, a single one for int16. */
  #scale(name: string, { dtype, shape }: Variable): Variable | undefined {
    if (dtype !== 'i8' && dtype !== 'i16') return undefined;
    const scale = this.#remove(`${name}_scale`);
    const values = product(scale.shape);
    if (scale.dtype === 'f32' && (values === 1 || values === shape[0])) return scale;
    return this.#refuse(`${name}_scale is [${scale.shape.join(', ')}] ${scale.dtype}, expected f32 with 1 or ${shape[0] ?? 1} values`);
  }

  #put(
    name: string,
    variable: Variable,
    shape: readonly number[],
    { first = 0, scale }: { first?: number; scale?: Variable | undefined },
  ): ComputedTensor {
    const within = ({ from, to }: Range): Range => ({ from: first + from, to: first + to });
    const read = async (elements: Range): Promise<Float32Array> => {
      const values = await readStored(this.#source, variable, within(elements));
      return scale ? this.#scaled(values, first + elements.from, variable, scale) : values;
    };
    const stored = scale ? undefined : (elements: Range) => storedBytes(this.#source, variable, within(elements));
    const int8 = scale && variable.dtype === 'i8' && shape.length === 2 && shape[1]! % BLOCK === 0;
    const readBlocks =
      int8 && (({ from, to }: Range) => this.#rows(variable, scale, shape[1]!, within({ from: from * shape[1]!, to: to * shape[1]! })));
    const tensor: ComputedTensor = {
      dtype: variable.dtype.toUpperCase(),
      shape,
      read,
      stored,
      ...(readBlocks && { blocks: 'I8', readBlocks }),
    };
    this.#tensors.set(name, tensor);
    return tensor;
  }

  /**
   * Whole rows of stored bytes as I8 blocks, with the inverse of the stored scales: quotients become products, which differ in the last
   * bit.
   */
  async #rows(variable: Variable, scale: Variable, width: number, elements: Range): Promise<Uint8Array> {
    const codes = await storedBytes(this.#source, variable, elements);
    const rows = { from: elements.from / width, to: elements.to / width };
    const isOne = product(scale.shape) === 1;
    const scales = await readStored(this.#source, scale, isOne ? { from: 0, to: 1 } : rows);
    return rowBlocks(
      codes,
      Float32Array.from({ length: sizeOf(rows) }, (_, row) => 1 / scales[isOne ? 0 : row]!),
    );
  }

  /** Dequantises by dividing stored integers, the first of which is element `first`, by their scales. */
  async #scaled(values: Float32Array, first: number, variable: Variable, scale: Variable): Promise<Float32Array> {
    const width = product(scale.shape) === 1 ? Infinity : product(variable.shape.slice(1));
    const row = (element: number): number => (width === Infinity ? 0 : Math.floor(element / width));
    const firstRow = row(first);
    const scales = await readStored(this.#source, scale, { from: firstRow, to: row(first + Math.max(values.length, 1) - 1) + 1 });
    for (let i = 0; i < values.length; i++) values[i] = values[i]! / scales[row(first + i) - firstRow]!;
    return values;
  }

  /** Reads a setting; undefined where the file has none. */
  async #number(name: string): Promise<number | undefined> {
    const variable = this.#left.get(name);
    if (!variable) return undefined;
    this.#left.delete(name);
    if (product(variable.shape) !== 1) this.#refuse(`${name} is [${variable.shape.join(', ')}], expected a number`);
    return (await readStored(this.#source, variable, { from: 0, to: 1 }))[0];
  }

  async #activation(): Promise<string> {
    const id = (await this.#number('decoder/activation')) ?? ACTIVATIONS.indexOf('gelu');
    return ACTIVATIONS[id] ?? this.#refuse(`decoder/activation is ${id}, expected 0 to ${ACTIVATIONS.length - 1}`);
  }

  #refuse(why: string): never {
    throw new EngineError('invalid_model', `${this.#path} is no Whisper that can be read: ${why}`);
  }
}
