/** Model folders of formats other than Hugging Face's, which derive some files and have others. */
import { EngineError } from '../errors.ts';
import { readJsonFile, readTextFile } from '../platform/json-file.ts';
import type { Json } from '../util/json.ts';
import type { Checkpoint } from './checkpoint.ts';
import { MODEL_WEIGHTS } from './model-folder.ts';
import type { ModelFolder } from './model-folder.ts';
import type { ModelPlace } from './model-format.ts';

/** Derived files, by the names of the Hugging Face files that they stand for. */
export interface MadeFiles {
  /** The format's name, for display. */
  readonly format: string;
  readonly json: Readonly<Record<string, () => Json | Promise<Json>>>;
  readonly weights: Readonly<Record<string, MadeWeights>>;
}

export interface MadeWeights {
  /** The file that really holds the weights, for messages. */
  readonly path: string;
  open(): Promise<Checkpoint>;
}

type Place = Pick<ModelPlace, 'platform' | 'path' | 'id'>;

/** A ModelFolder of derived files and the files in the folder. */
export function virtualFolder({ platform, path, id }: Place, { format, json, weights }: MadeFiles): ModelFolder {
  const where = (name: string): string => weights[name]?.path ?? platform.join(path, name);
  return {
    id,
    path,
    format,
    where,
    has: async (name) => name in json || name in weights || (await platform.exists(where(name))),
    json: async (name, options) => (json[name] ? json[name]() : readJsonFile(platform, where(name), options)),
    text: (name) => readTextFile(platform, where(name)),
    weights: async (file = MODEL_WEIGHTS) => {
      const made = weights[file];
      if (made) return made.open();
      throw new EngineError('invalid_model', `file not found: ${where(file)}`);
    },
  };
}

/**
 * The folder that a path names or, if it names a file, the folder that the file is in, with the file's name. The id is the folder's, unless
 * it was chosen.
 */
export function folderOf({ platform, path, id, names }: ModelPlace): Place & { readonly file: string | undefined } {
  if (names) return { platform, path, id, file: undefined };
  const file = path.replace(/^.*[\\/]/, '');
  const folder = path.slice(0, -file.length).replace(/(?<=.)[\\/]+$/, '') || '.';
  return { platform, path: folder, id: id === file ? folder.replace(/^.*[\\/]/, '') : id, file };
}
