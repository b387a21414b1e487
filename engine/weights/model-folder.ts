/** The contract of model folders: a model as the rest of the engine sees it, whatever format it was published in. */
import { EngineError } from '../errors.ts';
import type { Json } from '../util/json.ts';
import type { Checkpoint } from './checkpoint.ts';

/**
 * The files of a Hugging Face checkpoint by name: config.json, tokenizer.json, model.safetensors and so on. Other formats derive them from
 * their own contents. Only what `weights` returns stays open. Every method throws EngineError('invalid_model') that says what is wrong with
 * which file.
 */
export interface ModelFolder {
  /** The name it is served by. */
  readonly id: string;
  /** Its path, for messages and for threads that open it again. */
  readonly path: string;
  /** Format of the published weights, such as GGUF Q4_K_M; absent: Hugging Face's safetensors. */
  readonly format?: string;
  /**
   * Names the metadata key that a field of config.json is derived from; undefined: it is derived from no single key. The method is absent
   * where config.json is a file.
   */
  readonly settingAt?: (field: string) => string | undefined;
  /** Location of one of its files, for messages. */
  where(name: string): string;
  has(name: string): Promise<boolean>;
  /**
   * Reads an object from a JSON file; `{}` where an `optional` one is absent. config.json is refused when it describes weights that cannot
   * be read.
   */
  json(name: string, options?: { readonly optional?: boolean }): Promise<Json>;
  text(name: string): Promise<string>;
  /** Opens the tensors of a file, by default model.safetensors; the caller closes them (withWeights does). */
  weights(file?: string): Promise<Checkpoint>;
  /** Imports one of its files as a module; absent where no code may be run. */
  readonly importModule?: ((name: string) => Promise<Readonly<Record<string, unknown>>>) | undefined;
}

/** The weights file that is read by default. */
export const MODEL_WEIGHTS = 'model.safetensors';

/** Opens the weights of a folder, calls `use` with them, and closes them. */
export async function withWeights<T>(folder: ModelFolder, use: (checkpoint: Checkpoint) => Promise<T>, file?: string): Promise<T> {
  const checkpoint = await folder.weights(file);
  try {
    return await use(checkpoint);
  } finally {
    await checkpoint.close();
  }
}

/**
 * Awaits a reading of the folder's config.json. Where config.json is derived from another file, an error about a field is rethrown with
 * that file's path and key.
 */
export async function inOwnWords<T>({ path, settingAt }: ModelFolder, reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    const [start, field = ''] = (error instanceof EngineError && /^config\.json: (?:(\w+)\b)?/.exec(error.message)) || [];
    if (!settingAt || start === undefined) throw error;
    const { code, message, details, remedies } = error as EngineError;
    const own = settingAt(field);
    const said = own === undefined ? message.slice('config.json: '.length) : own + message.slice(start.length);
    throw new EngineError(code, `${path}: ${said}`, { remedies, cause: error, ...(details && { details }) });
  }
}
