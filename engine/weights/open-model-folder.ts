/** The model formats that can be read, and the one way to open a model. */
import type { Platform } from '../platform/platform.ts';
import { modelName } from '../util/model-name.ts';
import { CTRANSLATE2 } from './ctranslate2/ctranslate2-folder.ts';
import { GGUF } from './gguf/gguf-folder.ts';
import { loneGguf } from './gguf/parts.ts';
import { HUGGING_FACE, refusePlace } from './hugging-face-folder.ts';
import { KOKORO } from './kokoro/kokoro-folder.ts';
import { headOf } from './missing.ts';
import type { ModelFolder } from './model-folder.ts';
import type { ModelFormat, ModelPlace } from './model-format.ts';
import { RANDOM } from './random/random-folder.ts';

/** The first format that recognises a path opens it. Hugging Face's comes last, because others have a config.json as well. */
const FORMATS: readonly ModelFormat[] = [RANDOM, GGUF, CTRANSLATE2, KOKORO, HUGGING_FACE];

/**
 * Opens the model at a path (in the browser, a base URL), served as `id`, which defaults to a name derived from the path. Throws
 * EngineError('invalid_model') that says what is there instead, and what to do.
 */
export async function openModelFolder(platform: Platform, path: string, id = modelName(path)): Promise<ModelFolder> {
  const place = await look(platform, path, id);
  for (const format of FORMATS) if (await format.recognises(place)) return await format.open(place);
  return await refusePlace(place);
}

async function look(platform: Platform, path: string, id: string): Promise<ModelPlace> {
  if (path.startsWith('random:')) return { platform, path, id, names: undefined, head: new Uint8Array() };
  const names = await platform.list?.(path);
  const lone = names && loneGguf(names);
  if (lone !== undefined) return look(platform, platform.join(path, lone), id);
  const isFile = platform.list !== undefined && names === undefined && (await platform.exists(path));
  return { platform, path, id, names, head: isFile ? await headOf(platform, path) : new Uint8Array() };
}
