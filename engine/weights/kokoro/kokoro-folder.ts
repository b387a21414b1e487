/** Kokoro as it is published: weights as .onnx, .pth or .safetensors, voices beside them, and often no config.json. */
import { EngineError } from '../../errors.ts';
import { readJsonFile } from '../../platform/json-file.ts';
import type { ByteSource, Platform } from '../../platform/platform.ts';
import { isObject } from '../../util/json.ts';
import type { Json } from '../../util/json.ts';
import type { Checkpoint } from '../checkpoint.ts';
import { ComputedCheckpoint } from '../computed-checkpoint.ts';
import type { ComputedTensor } from '../computed-checkpoint.ts';
import { MODEL_WEIGHTS } from '../model-folder.ts';
import type { ModelFolder } from '../model-folder.ts';
import type { ModelFormat, ModelPlace } from '../model-format.ts';
import { ProtobufFile } from '../onnx/protobuf.ts';
import { openSafetensors } from '../safetensors.ts';
import { folderOf, virtualFolder } from '../virtual-folder.ts';
import { KOKORO_82M } from './kokoro-82m.ts';
import { kokoroOnnxTensors } from './onnx-tensors.ts';
import { kokoroTorchTensors } from './torch-tensors.ts';
import { findVoices, openVoices } from './voice-files.ts';
import type { VoicePlace } from './voice-files.ts';

const VOICES = 'voices.safetensors';

/** Patterns of weights files, the most exact format first; among several of one kind the one without a suffix is taken. */
const WEIGHTS: readonly RegExp[] = [/\.safetensors$/, /\.pth$/, /^(model|kokoro-v\d+(\.\d+)*)\.onnx$/, /fp?16[\w.-]*\.onnx$/, /\.onnx$/];
const isWeights = (name: string): boolean => name !== VOICES && WEIGHTS.some((pattern) => pattern.test(name));

/** The format of folders that have weights, and voices that are not safetensors, or of one weights file in such a folder. */
export const KOKORO: ModelFormat = {
  recognises: async (place) => (await findParts(place)) !== undefined,
  open: async (place) => openFolder(place, await findParts(place)),
};

interface Parts {
  readonly place: Pick<ModelPlace, 'platform' | 'path' | 'id'>;
  /** Path of the weights file. */
  readonly weights: string;
  readonly voices: VoicePlace;
}

async function findParts(modelPlace: ModelPlace): Promise<Parts | undefined> {
  const { file, ...place } = folderOf(modelPlace);
  const { platform, path } = place;
  if (!platform.list || (file !== undefined && (modelPlace.head.length === 0 || !isWeights(file)))) return undefined;
  // onnx-community keeps its exports in a subfolder.
  const nested = file !== undefined && /(^|[\\/])onnx$/.test(path);
  const folder = nested ? path.replace(/[\\/]?onnx$/, '') || '.' : path;
  const names = (await platform.list(folder)) ?? [];
  const voices = names.includes(VOICES) ? undefined : await findVoices(platform, folder, names);
  if (!voices) return undefined;
  const exports = names.includes('onnx') ? ((await platform.list(platform.join(folder, 'onnx'))) ?? []) : [];
  const all = [...names.filter(isWeights), ...exports.filter(isWeights).map((name) => platform.join('onnx', name))];
  const chosen = WEIGHTS.flatMap((pattern) => all.filter((name) => pattern.test(name.replace(/^onnx[\\/]/, '')))).find((name) => name);
  const weights = file === undefined ? chosen && platform.join(folder, chosen) : platform.join(path, file);
  const id = nested && place.id === 'onnx' ? folder.replace(/^.*[\\/]/, '') : place.id;
  return weights === undefined ? undefined : { place: { platform, path: folder, id }, weights, voices };
}

async function openFolder({ path }: ModelPlace, parts: Parts | undefined): Promise<ModelFolder> {
  if (!parts) throw new EngineError('invalid_model', `${path} has no voices`);
  const { place, weights, voices } = parts;
  const { platform } = place;
  const given = await readJsonFile(platform, platform.join(place.path, 'config.json'), { optional: true });
  // ONNX exports have a config.json without sizes, or none.
  const config: Json = isObject(given['plbert']) ? { model_type: 'kokoro', ...given } : KOKORO_82M;
  const columns = 2 * Number(config['style_dim']);
  return virtualFolder(place, {
    format: weights.replace(/^.*\./, ''),
    json: { 'config.json': () => config },
    weights: {
      [MODEL_WEIGHTS]: { path: weights, open: () => openWeights(platform, weights) },
      [VOICES]: { path: voices.archive ?? voices.folder ?? place.path, open: () => openVoices(platform, voices, columns) },
    },
  });
}

async function openWeights(platform: Platform, path: string): Promise<Checkpoint> {
  if (path.endsWith('.safetensors')) {
    const file = path.replace(/^.*[\\/]/, '');
    return openSafetensors(platform, path.slice(0, -file.length - 1), file);
  }
  const source = await platform.open(path);
  try {
    return new ComputedCheckpoint(path, await readTensors(path, source), [source]);
  } catch (error) {
    await source.close();
    throw error;
  }
}

function readTensors(path: string, source: ByteSource): Promise<ReadonlyMap<string, ComputedTensor>> {
  return path.endsWith('.onnx') ? kokoroOnnxTensors(new ProtobufFile(path, source)) : kokoroTorchTensors(path, source);
}
