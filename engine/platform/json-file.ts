/** Reads small files of a checkpoint folder. */
import { EngineError } from '../errors.ts';
import { FILE_LIMITS, parseJsonObject } from '../util/json.ts';
import type { Json } from '../util/json.ts';
import type { Platform } from './platform.ts';

/** Default limit of a text file; chat templates have a few kilobytes. */
const MAX_TEXT_BYTES = 2 ** 20;

/** Reads a JSON object from a file; `{}` if an optional file is absent. Throws EngineError('invalid_model'). */
export async function readJsonFile(platform: Platform, path: string, { optional = false } = {}): Promise<Json> {
  if (optional && !(await platform.exists(path))) return {};
  return parseJsonObject(path, await readBytes(platform, path, FILE_LIMITS.bytes));
}

/** Reads a text file of at most `most` bytes; throws EngineError('invalid_model'). */
export async function readTextFile(platform: Platform, path: string, most: number = MAX_TEXT_BYTES): Promise<string> {
  return new TextDecoder().decode(await readBytes(platform, path, most));
}

async function readBytes(platform: Platform, path: string, most: number): Promise<Uint8Array> {
  const source = await platform.open(path);
  try {
    if (source.size > most) throw new EngineError('invalid_model', `${path} has ${source.size} bytes; at most ${most} are read`);
    return await source.read(0, source.size);
  } finally {
    await source.close();
  }
}
