/** The contract of weight formats: named tensors. */
import { EngineError } from '../errors.ts';
import { indexBeyond } from '../util/math.ts';
import type { Range } from '../util/math.ts';
import type { BlockType } from './block-types.ts';

/** A tensor's metadata, known before it is read. */
export interface TensorInfo {
  /** The format's own name of the storage, such as BF16 or Q4_K. */
  readonly dtype: string;
  /** The block-quantised type that its values are stored in; absent = not in blocks. */
  readonly blocks?: BlockType | undefined;
  /** Row-major, rows first, as in PyTorch. */
  readonly shape: readonly number[];
}

/** A tensor of random floats: value i is (2 c - 255) * 2^exponent, where c is byte i % 4 of draw i / 4 (random_floats.wgsl). */
export interface RandomFloats {
  readonly seed: number;
  readonly exponent: number;
}

/**
 * A tensor of random blocks: random bytes, except that the scale and the offset of a block have these bits and a random sign
 * (random_blocks.wgsl).
 */
export interface RandomBlocks {
  readonly seed: number;
  readonly type: BlockType;
  readonly scale: number;
  readonly offset: number;
}

/** Random weights, a function of a seed and a position. */
export type RandomTensor = RandomFloats | RandomBlocks;

/** An open checkpoint: tensors under the names that the model's Hugging Face checkpoint uses. */
export interface Checkpoint {
  names(): readonly string[];
  /** A tensor's metadata; undefined when the checkpoint does not have it. */
  tensor(name: string): TensorInfo | undefined;
  /** Reads a tensor, or its elements [from, to), widened to f32. Throws EngineError('invalid_model') unless all are finite. */
  read(name: string, elements?: Range): Promise<Float32Array>;
  /**
   * Reads the stored blocks of a matrix's rows, for kernels that multiply with them; present where some tensor has `blocks`. The contents
   * are not checked. The result may lie in `into`, if that is given and long enough.
   */
  blocks?(name: string, rows: Range, into?: Uint8Array): Promise<Uint8Array>;
  /**
   * Reads the bytes of elements [from, to) of a tensor in one of STORED_FLOATS, as they lie in the file; the contents are not checked.
   * Undefined for a tensor whose values are computed from what is stored. The result may lie in `into`, if that is given and long enough.
   */
  stored?(name: string, elements: Range, into?: Uint8Array): Promise<Uint8Array> | undefined;
  /** How a tensor that no file has is generated: a device generates it itself (ops/random-weights.ts), and `read` gives the same values. */
  random?(name: string): RandomTensor | undefined;
  /** Reads a tensor of integer ids, which no weight is. */
  readIds(name: string): Promise<Int32Array>;
  close(): Promise<void>;
}

/** Float types that a device can read as a file stores them. */
const STORED_FLOATS = ['F32', 'F16', 'BF16'] as const;
export type StoredFloat = (typeof STORED_FLOATS)[number];

/** The stored float type of a tensor, if a device can read it; undefined for tensors in blocks. */
export function storedFloat({ dtype }: TensorInfo): StoredFloat | undefined {
  return STORED_FLOATS.find((type) => type === dtype);
}

/** A tensor's shape; throws EngineError('invalid_model') when it is missing. */
export function shapeOf(checkpoint: Checkpoint, name: string): readonly number[] {
  const tensor = checkpoint.tensor(name);
  if (!tensor) throw missingTensor(name);
  return tensor.shape;
}

/** The error for a tensor that is not in the checkpoint. */
export function missingTensor(name: string): EngineError {
  return new EngineError('invalid_model', `tensor ${name} is missing in the checkpoint`);
}

/**
 * Returns `values`, a tensor's values from element `from` on; throws EngineError('invalid_model') unless all are finite. `path` names the
 * file.
 */
export function finite(values: Float32Array, path: string, name: string, from: number): Float32Array {
  const bad = indexBeyond(values);
  if (bad < 0) return values;
  throw new EngineError('invalid_model', `${path}: tensor ${name} holds ${values[bad]} at element ${from + bad}, expected finite values`);
}
