/** A model as everything above sees it, whatever it was published as. */
import { EngineError } from '../errors.ts';
import type { Json } from '../util/json.ts';
import type { Checkpoint } from './checkpoint.ts';

/**
 * The files of a Hugging Face checkpoint by name: config.json, tokenizer.json, model.safetensors and so on. Other formats make them up from what
 * they hold. Nothing stays open but what `weights` gave. Everything throws EngineError('invalid_model') that says what is wrong with which file.
 */
export interface ModelFolder {
  /** The name it is served by. */
  readonly id: string;
  /** Where it stands, for messages and for threads that open it again. */
  readonly path: string;
  /** What its weights are published as, such as GGUF Q4_K_M; absent: Hugging Face's safetensors. */
  readonly format?: string;
  /** Where a setting of config.json stands that the format makes up from its own; undefined: it is nobody's alone. Absent: there is a config.json. */
  readonly settingAt?: (field: string) => string | undefined;
  /** Where one of its files stands, for messages. */
  where(name: string): string;
  has(name: string): Promise<boolean>;
  /** The object in a JSON file; `{}` where an optional one is absent. config.json is refused when it is of weights that cannot be read. */
  json(name: string, options?: { readonly optional?: boolean }): Promise<Json>;
  text(name: string): Promise<string>;
  /** Opens the tensors of a file, by default model.safetensors; the caller closes them (withWeights does). */
  weights(file?: string): Promise<Checkpoint>;
  /** Runs one of its files as a module; absent where nothing may be run. */
  readonly importModule?: ((name: string) => Promise<Readonly<Record<string, unknown>>>) | undefined;
}

/** The weights that are read where no file is named. */
export const MODEL_WEIGHTS = 'model.safetensors';

/** Opens the weights of a folder for as long as `use` takes. */
export async function withWeights<T>(folder: ModelFolder, use: (checkpoint: Checkpoint) => Promise<T>, file?: string): Promise<T> {
  const checkpoint = await folder.weights(file);
  try {
    return await use(checkpoint);
  } finally {
    await checkpoint.close();
  }
}

/** What reading a folder gives. Where its config.json is made up, refusals of a setting name the file that is there, and the setting as it stands there. */
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
