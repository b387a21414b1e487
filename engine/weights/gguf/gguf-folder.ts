/** A GGUF file, or a set of parts given by any of them, as the Hugging Face folder that it was made from. */
import { EngineError } from '../../errors.ts';
import type { ByteSource, Platform } from '../../platform/platform.ts';
import type { Json } from '../../util/json.ts';
import { product } from '../../util/math.ts';
import { MODEL_WEIGHTS } from '../model-folder.ts';
import type { ModelFolder } from '../model-folder.ts';
import type { ModelFormat, ModelPlace } from '../model-format.ts';
import { architectureOf } from './architecture.ts';
import { configOf } from './config.ts';
import { ROPE_FACTORS } from './rope.ts';
import type { RopeFactors } from './rope.ts';
import { settingAt } from './setting-keys.ts';
import { namedTensors } from './tensor-names.ts';
import { GgufCheckpoint, readValues } from './checkpoint.ts';
import type { OpenPart } from './checkpoint.ts';
import { GGUF_MAGIC } from './header.ts';
import { readModel, withSource } from './parts.ts';
import type { GgufModel } from './parts.ts';
import { generationOf, tokenizerConfigOf, tokenizerOf } from './tokenizer.ts';

/** The GGUF format: files that begin with "GGUF", or, where files cannot be told from folders (browsers), paths that end in ".gguf". */
export const GGUF: ModelFormat = {
  recognises: ({ path, head, names }) =>
    head.length > 0 ? GGUF_MAGIC.every((byte, i) => head[i] === byte) : names === undefined && /\.gguf$/i.test(path),
  open: async ({ platform, path, id }: ModelPlace) => {
    const model = await readModel(platform, path);
    const config = configOf(model.metadata, model.tensors, await ropeFactors(platform, model));
    return folderOf(platform, { path, id, model, config });
  },
};

interface Opened {
  readonly path: string;
  readonly id: string;
  readonly model: GgufModel;
  readonly config: Json;
}

function folderOf(platform: Platform, { path, id, model, config }: Opened): ModelFolder {
  const { metadata, tensors, paths } = model;
  const names = namedTensors(metadata, tensors);
  const files: ReadonlyMap<string, () => Json> = new Map([
    ['config.json', () => config],
    ['generation_config.json', () => generationOf(metadata)],
    ['tokenizer.json', () => tokenizerOf(metadata)],
    ['tokenizer_config.json', () => tokenizerConfigOf(metadata)],
  ]);
  const missing = (name: string): EngineError => new EngineError('invalid_model', `${path}: a GGUF file has no ${name}`);
  return {
    id,
    path,
    format: `GGUF ${quantisation(model)}`,
    settingAt: (setting) => settingAt(architectureOf(metadata).name, setting),
    where: (name) => `${path} (${name})`,
    has: async (name) => files.has(name),
    json: async (name, { optional = false } = {}) => {
      const make = files.get(name);
      if (!make && !optional) throw missing(name);
      return make?.() ?? {};
    },
    text: (name) => Promise.reject(missing(name)),
    weights: (name = MODEL_WEIGHTS) =>
      name === MODEL_WEIGHTS ? openParts(platform, paths).then((parts) => new GgufCheckpoint(names, parts)) : Promise.reject(missing(name)),
  };
}

/** Opens all parts of a file, or none. */
export async function openParts(platform: Platform, paths: readonly string[]): Promise<readonly OpenPart[]> {
  const sources: ByteSource[] = [];
  try {
    for (const path of paths) sources.push(await platform.open(path));
  } catch (error) {
    await Promise.all(sources.map((source) => source.close()));
    throw error;
  }
  return sources.map((source, part) => ({ path: paths[part]!, source }));
}

/** Reads the rotary factors' tensors; undefined in a model without them. */
async function ropeFactors(platform: Platform, { metadata, tensors, paths }: GgufModel): Promise<RopeFactors | undefined> {
  const read = async (name: string): Promise<Float32Array | undefined> => {
    const tensor = tensors.get(name);
    return (
      tensor &&
      (await withSource(platform, paths[tensor.part]!, (source) => readValues(source, tensor, { from: 0, to: product(tensor.shape) })))
    );
  };
  const all = await read(ROPE_FACTORS.all);
  if (all) return { short: all, long: all };
  const [short, long] = [await read(ROPE_FACTORS.short), await read(ROPE_FACTORS.long)];
  if (!short !== !long) metadata.refuse(`it has one of ${ROPE_FACTORS.short} and ${ROPE_FACTORS.long}, expected both`);
  return short && long && { short, long };
}

/** The file's quantisation, by its usual name where the file says it (llama.cpp's llama_ftype), else the type of most weights. */
function quantisation({ metadata, tensors }: GgufModel): string {
  const type = FILE_TYPES.get(metadata.number('general.file_type') ?? -1);
  if (type !== undefined) return type;
  const sizes = new Map<string, number>();
  for (const { dtype, shape } of tensors.values()) sizes.set(dtype, (sizes.get(dtype) ?? 0) + product(shape));
  return [...sizes].sort(([, a], [, b]) => b - a)[0]?.[0] ?? '';
}

const FILE_TYPES: ReadonlyMap<number, string> = new Map([
  [0, 'F32'], [1, 'F16'], [2, 'Q4_0'], [3, 'Q4_1'], [7, 'Q8_0'], [8, 'Q5_0'], [9, 'Q5_1'], [10, 'Q2_K'], [11, 'Q3_K_S'], [12, 'Q3_K_M'], [13, 'Q3_K_L'],
  [14, 'Q4_K_S'], [15, 'Q4_K_M'], [16, 'Q5_K_S'], [17, 'Q5_K_M'], [18, 'Q6_K'], [19, 'IQ2_XXS'], [20, 'IQ2_XS'], [21, 'Q2_K_S'], [22, 'IQ3_XS'],
  [23, 'IQ3_XXS'], [24, 'IQ1_S'], [25, 'IQ4_NL'], [26, 'IQ3_S'], [27, 'IQ3_M'], [28, 'IQ2_S'], [29, 'IQ2_M'], [30, 'IQ4_XS'], [31, 'IQ1_M'], [32, 'BF16'],
  [36, 'TQ1_0'], [37, 'TQ2_0'], [38, 'MXFP4_MOE'], [39, 'NVFP4'],
]); // prettier-ignore
