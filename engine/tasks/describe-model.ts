/** Describes a model from its headers and small files, before its weights are loaded. */
import type { ModelDescription } from '../api.ts';
import { weightStorage } from '../config.ts';
import type { EngineConfig, ModelSource } from '../config.ts';
import { EngineError } from '../errors.ts';
import { modelTypeOf, taskOf, typesOf } from '../model-types.ts';
import type { ModelTask } from '../model-types.ts';
import { weightRules } from '../models/decoder.ts';
import { parseKokoroConfig } from '../models/kokoro/config.ts';
import { readSpellings } from '../models/kokoro/spellings.ts';
import { decoderFor } from '../models/registry.ts';
import { languagesOf } from '../models/whisper/config.ts';
import { readWhisperFolder } from '../models/whisper/load.ts';
import { byWindow, largestWindow, pageBytes, withinContext } from '../ops/kv.ts';
import type { Platform } from '../platform/platform.ts';
import { pagesBefore } from '../scheduler/sequence-windows.ts';
import { describe } from '../util/json.ts';
import type { Json } from '../util/json.ts';
import { spokenLanguages } from '../text/phonemizer.ts';
import { inOwnWords, withWeights } from '../weights/model-folder.ts';
import type { ModelFolder } from '../weights/model-folder.ts';
import { openModelFolder } from '../weights/open-model-folder.ts';
import { checkpointBytes } from '../weights/storage.ts';

type Own = Omit<ModelDescription, 'id' | 'task' | 'architecture' | 'format' | 'weightBytes'>;

/**
 * Describes the model of a source. Throws EngineError('invalid_model' or 'unsupported') for a model that cannot be loaded, as far as its headers tell. `weightBytes`
 * of the result is about what the weights take on a device.
 */
export async function describeModel(platform: Platform, source: ModelSource, config: EngineConfig): Promise<ModelDescription> {
  const folder = await openModelFolder(platform, source.path, source.id);
  return inOwnWords(folder, describeFolder(folder, config, platform));
}

async function describeFolder(folder: ModelFolder, config: EngineConfig, platform: Platform): Promise<ModelDescription> {
  const { id, format } = folder;
  const json = await folder.json('config.json');
  const architecture = modelTypeOf(json);
  const task = taskOf(architecture);
  if (architecture === undefined || task === undefined) {
    const found = architecture ?? describe(json['model_type']);
    throw new EngineError('unsupported', `config.json says model_type ${found}; known are ${typesOf().join(', ')}`);
  }
  const own = await DESCRIBE[task](folder, json, config, platform);
  const weightBytes = await withWeights(folder, async (checkpoint) =>
    checkpointBytes(checkpoint, weightStorage(config), task === 'chat' ? weightRules(decoderFor(json), json) : undefined),
  );
  return { id, task, architecture, ...(format !== undefined && { format }), weightBytes, ...own };
}

const DESCRIBE: Readonly<Record<ModelTask, (folder: ModelFolder, json: Json, config: EngineConfig, platform: Platform) => Promise<Own>>> = {
  chat: async (_folder, json, config) => {
    const { kvCacheDtype, pageSize } = config;
    const { pages, maxPositions } = decoderFor(json).parseConfig(json);
    const dtype = kvCacheDtype === 'auto' ? weightStorage(config).float : kvCacheDtype;
    const { whole, windowed } = byWindow({ layers: withinContext(pages, maxPositions), pageSize, dtype });
    const window = largestWindow(windowed);
    const windowBytes = window === undefined ? undefined : (pagesBefore(window, pageSize) + 1) * pageBytes(windowed).all;
    return {
      ownContextLength: maxPositions,
      tokenBytes: pageBytes(whole).all / pageSize,
      ...(windowBytes !== undefined && { windowBytes }),
    };
  },
  speech: async (folder, json, _config, platform) => {
    const { sampleRate, vocab } = parseKokoroConfig(json);
    const voices = await withWeights(folder, async (checkpoint) => [...checkpoint.names()].sort(), 'voices.safetensors');
    return { sampleRate, voices, languages: spokenLanguages(await readSpellings(folder, vocab), platform) };
  },
  transcription: async (folder) => {
    const { tokens } = await readWhisperFolder(folder);
    return { languages: languagesOf(tokens), translates: tokens.translate !== undefined };
  },
};
