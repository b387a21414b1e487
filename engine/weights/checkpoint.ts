/** What every format of weights gives: tensors by name. */
import { EngineError } from '../errors.ts';
import { indexBeyond, product } from '../util/math.ts';
import type { Range } from '../util/math.ts';

/** What is known of a tensor before it is read. */
export interface TensorInfo {
  /** The format's own name of the storage, such as BF16 or Q4_K. */
  readonly dtype: string;
  /** Rows first, as PyTorch has it. */
  readonly shape: readonly number[];
}

/**
 * Weights under the names that the model's Hugging Face checkpoint gives them, open for reading.
 *
 * Room is left for `blocks(name, rows)`: the stored bytes of a quantised matrix's rows, for kernels that multiply with them as they are.
 */
export interface Checkpoint {
  names(): readonly string[];
  /** Undefined when the checkpoint does not have it. */
  tensor(name: string): TensorInfo | undefined;
  /** Values of a tensor, or of the elements [from, to) of it, widened to f32. Throws EngineError('invalid_model') unless all are finite. */
  read(name: string, elements?: Range): Promise<Float32Array>;
  /** Values of a tensor of ids; no weight is one. */
  readIds(name: string): Promise<Int32Array>;
  close(): Promise<void>;
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

/** About the bytes that all tensors take on a device: matrices in `dtype`, vectors in f32. */
export function bytesAs(checkpoint: Checkpoint, dtype: 'f32' | 'f16'): number {
  const matrix = dtype === 'f16' ? 2 : 4;
  return checkpoint.names().reduce((sum, name) => {
    const { shape } = checkpoint.tensor(name)!;
    return sum + product(shape) * (shape.length > 1 ? matrix : 4);
  }, 0);
}

/** The values, which are the tensor's from element `from` on; throws EngineError('invalid_model') unless all are finite. `path` is of the file. */
export function finite(values: Float32Array, path: string, name: string, from: number): Float32Array {
  const bad = indexBeyond(values);
  if (bad < 0) return values;
  throw new EngineError('invalid_model', `${path}: tensor ${name} holds ${values[bad]} at element ${from + bad}, expected finite values`);
}
