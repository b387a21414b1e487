/** Error messages for model files that are missing: what is there instead, and what to do. */
import type { Platform } from '../platform/platform.ts';
import { describeForeignFolder, describeHubId, describeLoneFile } from '../util/foreign-format.ts';

/** The files that an empty folder should have, where any model would do. */
const MODEL_FILES = 'config.json, model.safetensors and, of a chat model, tokenizer.json, or a GGUF file in their place';

/** Describes why a folder lacks the file `path`, as far as its contents tell. */
export async function describeMissing(platform: Platform, folder: string, path: string): Promise<string> {
  const missing = `file not found: ${path}`;
  if (!platform.list) return missing;
  const names = await platform.list(folder);
  if (names?.length === 0)
    return `${folder} is an empty folder; expected in it: ${path.endsWith('config.json') ? MODEL_FILES : path.replace(/^.*[\\/]/, '')}`;
  if (names) {
    const found = describeForeignFolder(names);
    return found === undefined ? missing : `${missing}; ${found}`;
  }
  if (!(await platform.exists(folder))) {
    const hub = describeHubId(folder);
    return `no such folder: ${folder}${hub === undefined ? '' : `; ${hub}`}`;
  }
  const found = describeLoneFile(folder, await headOf(platform, folder));
  return `${folder} ${found ?? 'is no folder; a checkpoint is a folder with config.json and model.safetensors'}`;
}

const HEAD_BYTES = 8;

/** The first bytes of a file, by which formats are recognised. */
export async function headOf(platform: Platform, path: string): Promise<Uint8Array> {
  const source = await platform.open(path);
  try {
    return await source.read(0, Math.min(HEAD_BYTES, source.size));
  } finally {
    await source.close();
  }
}
