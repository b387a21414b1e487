import { EngineError } from '../../errors.ts';
import type { Device } from '../../gpu/device.ts';
import type { WeightType } from '../../ops/linear.ts';
import { createLogMel } from '../../ops/spectral.ts';
import type { LogMel } from '../../ops/spectral.ts';
import type { Platform } from '../../platform/platform.ts';
import { Checkpoint } from '../../weights/safetensors.ts';
import { WeightLoader } from '../../weights/weight-loader.ts';
import { parseWhisperConfig, parseWhisperTokens } from './config.ts';
import type { Json, WhisperConfig, WhisperTokens } from './config.ts';
import { loadWhisper } from './weights.ts';
import type { WhisperWeights } from './weights.ts';

/** A loaded checkpoint. */
export interface WhisperModel {
  readonly config: WhisperConfig;
  readonly tokens: WhisperTokens;
  readonly weights: WhisperWeights;
  readonly logMel: LogMel;
  readonly parameters: number;
  /** Bytes of weights on the device. */
  readonly weightBytes: number;
}

/** Loads a checkpoint folder as published: config.json, preprocessor_config.json, safetensors, and, if there, generation_config.json and tokenizer.json. */
export async function loadWhisperModel(device: Device, platform: Platform, folder: string, dtype: WeightType): Promise<WhisperModel> {
  const json = await readJson(platform, folder, 'config.json');
  if (json['model_type'] !== 'whisper') {
    throw new EngineError('invalid_model', `${folder}: model_type is ${JSON.stringify(json['model_type'])}, expected "whisper"`);
  }
  const config = parseWhisperConfig(json, await readJson(platform, folder, 'preprocessor_config.json'));
  const generation = await readJson(platform, folder, 'generation_config.json', true);
  const { added_tokens: added = [] } = await readJson(platform, folder, 'tokenizer.json', true);
  const names = new Map((added as { id: number; content: string }[]).map(({ id, content }) => [content, id]));
  const tokens = parseWhisperTokens(json, generation, names, config.vocabulary);
  const before = device.stats.bufferBytes;
  const checkpoint = await Checkpoint.open(platform, folder);
  const loader = new WeightLoader(device, checkpoint, dtype);
  const weights = await loadWhisper(loader, config);
  await checkpoint.close();
  const logMel = createLogMel(device, config.mel);
  return { config, tokens, weights, logMel, parameters: loader.parameters, weightBytes: device.stats.bufferBytes - before };
}

async function readJson(platform: Platform, folder: string, name: string, optional = false): Promise<Json> {
  const path = platform.join(folder, name);
  if (optional && !(await platform.exists(path))) return {};
  const text = await platform.readText(path);
  try {
    return JSON.parse(text) as Json;
  } catch (error) {
    throw new EngineError('invalid_model', `${path} is not JSON: ${String(error)}`, { cause: error });
  }
}
