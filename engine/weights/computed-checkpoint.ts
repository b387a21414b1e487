import { EngineError } from '../errors.ts';
import type { ByteSource } from '../platform/platform.ts';
import { product } from '../util/math.ts';
import type { Range } from '../util/math.ts';
import { finite, missingTensor } from './checkpoint.ts';
import type { Checkpoint, TensorInfo } from './checkpoint.ts';

/** A tensor computed from what a file stores. */
export interface ComputedTensor extends TensorInfo {
  /** Reads elements [from, to), row-major, widened to f32. */
  read(elements: Range): Promise<Float32Array>;
  /** Reads rows in the stored blocks; present where `blocks` is. */
  readonly readBlocks?: ((rows: Range) => Promise<Uint8Array>) | undefined;
  /** Reads the stored bytes of elements, where they are floats in row-major order in the file. */
  readonly stored?: ((elements: Range) => Promise<Uint8Array> | undefined) | undefined;
}

/** A tensor whose values must be computed all at once, because the file has them in another order. */
export function wholeTensor(dtype: string, shape: readonly number[], values: () => Promise<Float32Array>): ComputedTensor {
  return { dtype, shape, read: async ({ from, to }) => (await values()).subarray(from, to) };
}

/** A checkpoint computed from another format's files: tensors under the names that the model definitions read. */
export class ComputedCheckpoint implements Checkpoint {
  readonly #path: string;
  readonly #tensors: ReadonlyMap<string, ComputedTensor>;
  readonly #sources: readonly ByteSource[];

  /** `path` names the file in messages; `sources` are closed with the checkpoint. */
  constructor(path: string, tensors: ReadonlyMap<string, ComputedTensor>, sources: readonly ByteSource[]) {
    this.#path = path;
    this.#tensors = tensors;
    this.#sources = sources;
  }

  names(): readonly string[] {
    return [...this.#tensors.keys()];
  }

  tensor(name: string): TensorInfo | undefined {
    return this.#tensors.get(name);
  }

  async read(name: string, elements?: Range): Promise<Float32Array> {
    const tensor = this.#tensors.get(name);
    if (!tensor) throw missingTensor(name);
    const range = elements ?? { from: 0, to: product(tensor.shape) };
    return finite(await tensor.read(range), this.#path, name, range.from);
  }

  async blocks(name: string, rows: Range): Promise<Uint8Array> {
    const tensor = this.#tensors.get(name);
    if (!tensor?.blocks || !tensor.readBlocks) throw missingTensor(name);
    return tensor.readBlocks(rows);
  }

  stored(name: string, elements: Range): Promise<Uint8Array> | undefined {
    return this.#tensors.get(name)?.stored?.(elements);
  }

  readIds(name: string): Promise<Int32Array> {
    return Promise.reject(new EngineError('invalid_model', `${this.#path}: tensor ${name} is no list of ids`));
  }

  async close(): Promise<void> {
    await Promise.all(this.#sources.map((source) => source.close()));
  }
}
