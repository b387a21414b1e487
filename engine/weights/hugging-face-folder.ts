/** A model as transformers publishes it: a folder (in the browser, a base URL) with config.json, tokenizer.json and safetensors. */
import { EngineError } from '../errors.ts';
import { readJsonFile, readTextFile } from '../platform/json-file.ts';
import { describeQuantization, formatOfWeights, weightSchemesOf } from '../util/foreign-format.ts';
import type { Json } from '../util/json.ts';
import { byteLevelTokenizer } from './byte-level-tokenizer.ts';
import { describeMissing } from './missing.ts';
import { MODEL_WEIGHTS } from './model-folder.ts';
import type { ModelFolder } from './model-folder.ts';
import type { ModelFormat, ModelPlace } from './model-format.ts';
import { openSafetensors } from './safetensors.ts';

const CONFIG = 'config.json';
const TOKENIZER = 'tokenizer.json';

/** The format of folders with a config.json that no other format recognises. */
export const HUGGING_FACE: ModelFormat = {
  recognises: ({ platform, path }) => platform.exists(platform.join(path, CONFIG)),
  open: async (place) => {
    // What is wrong with config.json is said by whoever needs it.
    const config = await readConfig(place).catch(() => ({}));
    return huggingFaceFolder(place, formatOfWeights(config));
  },
};

/** A ModelFolder that reads the files of a folder as they are; `format` is that of its weights, unless these are plain. */
export function huggingFaceFolder(place: Pick<ModelPlace, 'platform' | 'path' | 'id'>, format?: string): ModelFolder {
  const { platform, path, id } = place;
  const { importModule } = platform;
  const where = (name: string): string => platform.join(path, name);
  const files = {
    where,
    has: (name: string) => platform.exists(where(name)),
    json: (name: string) => readJsonFile(platform, where(name), { optional: true }),
    text: (name: string) => readTextFile(platform, where(name)),
  };
  return {
    id,
    path,
    ...(format !== undefined && { format }),
    where,
    has: files.has,
    json: async (name, options) => {
      if (name !== CONFIG) {
        const derived = name === TOKENIZER && !(await files.has(name)) ? await byteLevelTokenizer(files) : undefined;
        return derived ?? readJsonFile(platform, where(name), options);
      }
      const config = await readConfig(place, options);
      refuseQuantized(where(name), config);
      return config;
    },
    text: files.text,
    weights: async (file) => {
      const config = file === undefined || file === MODEL_WEIGHTS ? await readConfig(place, { optional: true }) : {};
      return openSafetensors(platform, path, file, weightSchemesOf(config));
    },
    importModule: importModule && ((name) => importModule(where(name))),
  };
}

/** Where AutoGPTQ and AutoAWQ said how weights are quantised before config.json did, and by which method. */
const QUANTISED_BY = { 'quantize_config.json': 'gptq', 'quant_config.json': 'awq' } as const;

/** Reads config.json, with the `quantization_config` that old repositories have in a file of its own. */
async function readConfig(
  { platform, path }: Pick<ModelPlace, 'platform' | 'path'>,
  options?: { readonly optional?: boolean },
): Promise<Json> {
  const config = await readJsonFile(platform, platform.join(path, CONFIG), options);
  if (config['quantization_config'] !== undefined) return config;
  const names = (await platform.list?.(path)) ?? [];
  const found = Object.entries(QUANTISED_BY).find(([name]) => names.includes(name));
  if (!found) return config;
  const [name, quant_method] = found;
  return { ...config, quantization_config: { quant_method, ...(await readJsonFile(platform, platform.join(path, name))) } };
}

/** Throws EngineError('invalid_model') that says what is at a path, instead of a model that can be read. */
export async function refusePlace({ platform, path }: ModelPlace): Promise<never> {
  throw new EngineError('invalid_model', await describeMissing(platform, path, platform.join(path, CONFIG)));
}

function refuseQuantized(path: string, config: Json): void {
  const quantized = describeQuantization(config);
  if (quantized !== undefined) throw new EngineError('invalid_model', `${path}: ${quantized}`);
}
