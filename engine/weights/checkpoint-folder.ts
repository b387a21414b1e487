/** A checkpoint folder before its weights are opened: what is there, and what it is instead. */
import { EngineError } from '../errors.ts';
import { readJsonFile } from '../platform/json-file.ts';
import type { Platform } from '../platform/platform.ts';
import { describeForeignFile, describeForeignFolder, describeHubId, describeQuantization } from '../util/foreign-format.ts';
import type { Json } from '../util/json.ts';

/** config.json of a checkpoint folder; throws EngineError('invalid_model') that says what stands there instead of a checkpoint that can be read. */
export async function readConfig(platform: Platform, folder: string): Promise<Json> {
  const path = platform.join(folder, 'config.json');
  if (!(await platform.exists(path))) throw new EngineError('invalid_model', await describeMissing(platform, folder, path));
  const config = await readJsonFile(platform, path);
  const quantized = describeQuantization(config);
  if (quantized !== undefined) throw new EngineError('invalid_model', `${path}: ${quantized}`);
  return config;
}

/** Why a folder lacks one of its files, as far as what is there tells. */
export async function describeMissing(platform: Platform, folder: string, path: string): Promise<string> {
  const missing = `file not found: ${path}`;
  if (!platform.list) return missing;
  const names = await platform.list(folder);
  if (names) {
    const found = describeForeignFolder(names);
    return found === undefined ? missing : `${missing}; ${found}`;
  }
  if (!(await platform.exists(folder))) {
    const hub = describeHubId(folder);
    return `no such folder: ${folder}${hub === undefined ? '' : `; ${hub}`}`;
  }
  const found = describeForeignFile(folder, await headOf(platform, folder));
  return `${folder} ${found ?? 'is no folder; a checkpoint is a folder with config.json and model.safetensors'}`;
}

const HEAD_BYTES = 8;

async function headOf(platform: Platform, path: string): Promise<Uint8Array> {
  const source = await platform.open(path);
  return await source.read(0, Math.min(HEAD_BYTES, source.size)).finally(() => source.close());
}
