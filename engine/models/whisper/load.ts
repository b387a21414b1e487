import { EngineError } from '../../errors.ts';
import type { Device } from '../../gpu/device.ts';
import type { WeightType } from '../../ops/linear.ts';
import { createLogMel } from '../../ops/spectral.ts';
import type { LogMel } from '../../ops/spectral.ts';
import { readJsonFile } from '../../platform/json-file.ts';
import type { Platform } from '../../platform/platform.ts';
import { readTokenizerFile } from '../../text/tokenizer.ts';
import { readConfig } from '../../weights/checkpoint-folder.ts';
import { Checkpoint } from '../../weights/safetensors.ts';
import { WeightLoader } from '../../weights/weight-loader.ts';
import { parseWhisperConfig, parseWhisperTokens } from './config.ts';
import type { WhisperConfig, WhisperTokens } from './config.ts';
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
  const json = await readConfig(platform, folder);
  if (json['model_type'] !== 'whisper') {
    throw new EngineError('invalid_model', `${folder}: model_type is ${JSON.stringify(json['model_type'])}, expected "whisper"`);
  }
  const config = parseWhisperConfig(json, await readJsonFile(platform, platform.join(folder, 'preprocessor_config.json')));
  const generation = await readJsonFile(platform, platform.join(folder, 'generation_config.json'), { optional: true });
  const hasTokenizer = await platform.exists(platform.join(folder, 'tokenizer.json'));
  const added = hasTokenizer ? (await readTokenizerFile(platform, folder)).added_tokens : [];
  const names = new Map(added.map(({ id, content }) => [content, id]));
  const tokens = parseWhisperTokens(json, generation, names, config.vocabulary);
  const before = device.stats.bufferBytes;
  const checkpoint = await Checkpoint.open(platform, folder);
  const loader = new WeightLoader(device, checkpoint, dtype);
  const weights = await loadWhisper(loader, config).finally(() => checkpoint.close());
  const logMel = createLogMel(device, config.mel);
  return { config, tokens, weights, logMel, parameters: loader.parameters, weightBytes: device.stats.bufferBytes - before };
}
