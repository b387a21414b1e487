import type { WeightStorage } from '../../config.ts';
import type { Device } from '../../gpu/device.ts';
import { expectFamily } from '../../model-types.ts';
import { createLogMel } from '../../ops/spectral.ts';
import type { LogMel } from '../../ops/spectral.ts';
import { readTokenizerFile } from '../../text/tokenizer.ts';
import { isObject } from '../../util/json.ts';
import type { Json } from '../../util/json.ts';
import { withWeights } from '../../weights/model-folder.ts';
import type { ModelFolder } from '../../weights/model-folder.ts';
import { WeightLoader } from '../weight-loader.ts';
import { alignmentHeads, parseWhisperConfig, parseWhisperTokens } from './config.ts';
import type { AlignmentHead, WhisperConfig, WhisperTokens } from './config.ts';
import { loadWhisper } from './weights.ts';
import type { WhisperWeights } from './weights.ts';

/** A loaded Whisper checkpoint. */
export interface WhisperModel {
  readonly config: WhisperConfig;
  readonly tokens: WhisperTokens;
  /** Heads whose cross-attention gives the times of tokens, in order of their layers. */
  readonly alignmentHeads: readonly AlignmentHead[];
  readonly weights: WhisperWeights;
  readonly logMel: LogMel;
  readonly parameters: number;
  /** Bytes of weights on the device. */
  readonly weightBytes: number;
}

/** What a model folder says of the model: all but its weights. */
export type WhisperShape = Pick<WhisperModel, 'config' | 'tokens' | 'alignmentHeads'>;

/** Reads a model folder's sizes, special tokens and alignment heads. */
export async function readWhisperFolder(folder: ModelFolder): Promise<WhisperShape> {
  const json = await folder.json('config.json');
  expectFamily(json, 'transcription');
  const config = parseWhisperConfig(json, ...(await readPreprocessor(folder)));
  const generation = await folder.json('generation_config.json', { optional: true });
  const added = (await folder.has('tokenizer.json')) ? (await readTokenizerFile(folder)).added_tokens : [];
  const names = new Map(added.map(({ id, content }) => [content, id]));
  const tokens = parseWhisperTokens(json, generation, names, config.vocabulary);
  return { config, tokens, alignmentHeads: alignmentHeads(generation, config.decoder) };
}

/** Reads the mel settings, from a file of their own or, as transformers 5 writes a processor, from the file of all its parts. */
async function readPreprocessor(folder: ModelFolder): Promise<readonly [extractor: Json, file: string]> {
  const extractor = (await folder.has(PREPROCESSOR)) ? undefined : (await folder.json(PROCESSOR, { optional: true }))['feature_extractor'];
  return isObject(extractor) ? [extractor, PROCESSOR] : [await folder.json(PREPROCESSOR), PREPROCESSOR];
}

const PREPROCESSOR = 'preprocessor_config.json';
const PROCESSOR = 'processor_config.json';

/**
 * Loads a model folder: config.json, preprocessor_config.json (or processor_config.json), safetensors, and, if there,
 * generation_config.json and tokenizer.json.
 */
export async function loadWhisperModel(device: Device, folder: ModelFolder, storage: WeightStorage): Promise<WhisperModel> {
  const shape = await readWhisperFolder(folder);
  const { config } = shape;
  const before = device.stats.bufferBytes;
  const { weights, parameters } = await withWeights(folder, async (checkpoint) => {
    const loader = new WeightLoader(device, checkpoint, storage);
    return { weights: await loadWhisper(loader, config), parameters: loader.parameters };
  });
  const logMel = createLogMel(device, config.mel);
  return { ...shape, weights, logMel, parameters, weightBytes: device.stats.bufferBytes - before };
}
