/** The contract of LoRA adapters as they are published: for some of a model's matrices two of low rank, whose product is added. */
import { EngineError } from '../../errors.ts';

/** Adapters that are loaded with a model, by the ids that requests name them by. */
export interface LoraSource {
  readonly id: string;
  /** A folder of PEFT, a GGUF file, or a folder with one. */
  readonly path: string;
}

/** What an adapter has for one matrix. */
export interface LoraModule {
  readonly rank: number;
  /** Factor of the product: alpha / rank, or alpha / sqrt(rank). */
  readonly scale: number;
  /** Names of the tensors of A [rank, inFeatures] and B [outFeatures, rank] in the file, and their shapes. */
  readonly a: LoraTensor;
  readonly b: LoraTensor;
}

/** A tensor of an adapter. */
export interface LoraTensor {
  readonly name: string;
  readonly shape: readonly number[];
}

/** An open adapter. */
export interface LoraAdapter extends LoraSource {
  /** By the name of the module in the model's checkpoint, such as `model.layers.0.self_attn.q_proj`. */
  readonly modules: ReadonlyMap<string, LoraModule>;
  /** Reads a tensor; throws EngineError('invalid_model') unless its values are finite. */
  read(tensor: LoraTensor): Promise<Float32Array>;
  close(): Promise<void>;
}

/** The error for an adapter that cannot be served. */
export function loraError(code: 'invalid_model' | 'unsupported', { id, path }: LoraSource, what: string): EngineError {
  return new EngineError(code, `LoRA adapter ${id} (${path}): ${what}`);
}
