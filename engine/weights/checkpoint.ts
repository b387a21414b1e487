/** What every format of weights gives: tensors by name. */
import { EngineError } from '../errors.ts';
import { indexBeyond } from '../util/math.ts';
import type { Range } from '../util/math.ts';
import type { BlockType } from './block-types.ts';

/** What is known of a tensor before it is read. */
export interface TensorInfo {
  /** The format's own name of the storage, such as BF16 or Q4_K. */
  readonly dtype: string;
  /** The blocks that its values are stored in; absent: one by one. */
  readonly blocks?: BlockType | undefined;
  /** Rows first, as PyTorch has it. */
  readonly shape: readonly number[];
}

/** What a tensor of random floats is made of: value i is (2 c - 255) * 2^exponent, c = byte i % 4 of draw i / 4 (random_floats.wgsl). */
export interface RandomFloats {
  readonly seed: number;
  readonly exponent: number;
}

/** What a tensor of random blocks is made of: random bytes, but for a block's scale and offset, which have these bits and a random sign (random_blocks.wgsl). */
export interface RandomBlocks {
  readonly seed: number;
  readonly type: BlockType;
  readonly scale: number;
  readonly offset: number;
}

/** Weights that mean nothing, as a function of a seed and a place. */
export type RandomTensor = RandomFloats | RandomBlocks;

/** Weights under the names that the model's Hugging Face checkpoint gives them, open for reading. */
export interface Checkpoint {
  names(): readonly string[];
  /** Undefined when the checkpoint does not have it. */
  tensor(name: string): TensorInfo | undefined;
  /** Values of a tensor, or of the elements [from, to) of it, widened to f32. Throws EngineError('invalid_model') unless all are finite. */
  read(name: string, elements?: Range): Promise<Float32Array>;
  /**
   * The stored blocks of a matrix's rows, for kernels that multiply with them as they are; there where some tensor has `blocks`. Nothing of them is
   * checked. They may lie in `into`, where that is given and long enough.
   */
  blocks?(name: string, rows: Range, into?: Uint8Array): Promise<Uint8Array>;
  /**
   * The bytes of the elements [from, to) of a tensor in one of STORED_FLOATS, as they lie in the file; nothing of them is checked. Undefined for one
   * whose values are made of what is stored. They may lie in `into`, where that is given and long enough.
   */
  stored?(name: string, elements: Range, into?: Uint8Array): Promise<Uint8Array> | undefined;
  /** What a tensor's bytes are made of that no file has: a device makes them by itself (ops/random-weights.ts), and `read` gives their values. */
  random?(name: string): RandomTensor | undefined;
  /** Values of a tensor of ids; no weight is one. */
  readIds(name: string): Promise<Int32Array>;
  close(): Promise<void>;
}

/** Floats that a device can read as a file stores them. */
const STORED_FLOATS = ['F32', 'F16', 'BF16'] as const;
export type StoredFloat = (typeof STORED_FLOATS)[number];

/** How a tensor's values are stored, where a device can read that; a tensor in blocks has none. */
export function storedFloat({ dtype }: TensorInfo): StoredFloat | undefined {
  return STORED_FLOATS.find((type) => type === dtype);
}

/** The tensor's shape; throws EngineError('invalid_model') when it is missing. */
export function shapeOf(checkpoint: Checkpoint, name: string): readonly number[] {
  const tensor = checkpoint.tensor(name);
  if (!tensor) throw missingTensor(name);
  return tensor.shape;
}

/** What is thrown for a tensor that is not there. */
export function missingTensor(name: string): EngineError {
  return new EngineError('invalid_model', `tensor ${name} is missing in the checkpoint`);
}

/** The values, which are the tensor's from element `from` on; throws EngineError('invalid_model') unless all are finite. `path` is of the file. */
export function finite(values: Float32Array, path: string, name: string, from: number): Float32Array {
  const bad = indexBeyond(values);
  if (bad < 0) return values;
  throw new EngineError('invalid_model', `${path}: tensor ${name} holds ${values[bad]} at element ${from + bad}, expected finite values`);
}
