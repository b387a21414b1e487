/** A model as transformers publishes it: a folder (in the browser, a base URL) with config.json, tokenizer.json and safetensors. */
import { EngineError } from '../errors.ts';
import { readJsonFile, readTextFile } from '../platform/json-file.ts';
import { describeQuantization, formatOfWeights, weightSchemesOf } from '../util/foreign-format.ts';
import type { Json } from '../util/json.ts';
import { describeMissing } from './missing.ts';
import { MODEL_WEIGHTS } from './model-folder.ts';
import type { ModelFolder } from './model-folder.ts';
import type { ModelFormat, ModelPlace } from './model-format.ts';
import { openSafetensors } from './safetensors.ts';

const CONFIG = 'config.json';

/** The format of folders with a config.json that no other format recognises. */
export const HUGGING_FACE: ModelFormat = {
  recognises: ({ platform, path }) => platform.exists(platform.join(path, CONFIG)),
  open: async (place) => {
    const { platform, path } = place;
    // What is wrong with config.json is said by whoever needs it.
    const config = await readJsonFile(platform, platform.join(path, CONFIG)).catch(() => ({}));
    return huggingFaceFolder(place, formatOfWeights(config));
  },
};

/** A ModelFolder that reads the files of a folder as they are; `format` is that of its weights, unless these are plain. */
export function huggingFaceFolder({ platform, path, id }: Pick<ModelPlace, 'platform' | 'path' | 'id'>, format?: string): ModelFolder {
  const { importModule } = platform;
  const where = (name: string): string => platform.join(path, name);
  return {
    id,
    path,
    ...(format !== undefined && { format }),
    where,
    has: (name) => platform.exists(where(name)),
    json: async (name, options) => {
      const json = await readJsonFile(platform, where(name), options);
      if (name === CONFIG) refuseQuantized(where(name), json);
      return json;
    },
    text: (name) => readTextFile(platform, where(name)),
    weights: async (file) => {
      const config = file === undefined || file === MODEL_WEIGHTS ? await readJsonFile(platform, where(CONFIG), { optional: true }) : {};
      return openSafetensors(platform, path, file, weightSchemesOf(config));
    },
    importModule: importModule && ((name) => importModule(where(name))),
  };
}

/** Throws EngineError('invalid_model') that says what is at a path, instead of a model that can be read. */
export async function refusePlace({ platform, path }: ModelPlace): Promise<never> {
  throw new EngineError('invalid_model', await describeMissing(platform, path, platform.join(path, CONFIG)));
}

function refuseQuantized(path: string, config: Json): void {
  const quantized = describeQuantization(config);
  if (quantized !== undefined) throw new EngineError('invalid_model', `${path}: ${quantized}`);
}
