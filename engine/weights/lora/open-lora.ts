/** The formats of LoRA adapters, and the one way to open an adapter. */
import type { Platform } from '../../platform/platform.ts';
import type { Json } from '../../util/json.ts';
import { GGUF_MAGIC } from '../gguf/header.ts';
import { loneGguf } from '../gguf/parts.ts';
import { headOf } from '../missing.ts';
import { openGgufLora } from './gguf.ts';
import type { LoraAdapter, LoraSource } from './lora-adapter.ts';
import { openPeft } from './peft.ts';

/**
 * Opens the adapter at a path for a base model with this config.json: a GGUF file, a folder with one and no other weights, or a folder of
 * PEFT. Throws EngineError that names the adapter, what was found and what is expected.
 */
export async function openLora(platform: Platform, source: LoraSource, base: Json): Promise<LoraAdapter> {
  const { path } = source;
  const names = await platform.list?.(path);
  const lone = names && loneGguf(names);
  if (lone !== undefined) return openGgufLora(platform, source, platform.join(path, lone), base);
  const isFile = platform.list !== undefined && names === undefined && (await platform.exists(path));
  const head = isFile ? await headOf(platform, path) : new Uint8Array();
  if (head.length > 0 && GGUF_MAGIC.every((byte, i) => head[i] === byte)) return openGgufLora(platform, source, path, base);
  return openPeft(platform, source);
}
