/** Replaces models that are named by a source (the hub, a package, an address, a recipe) by folders and files before the engine starts. */
import { existsSync } from 'node:fs';
import type { EngineConfig, ModelSource } from '../../engine/config.ts';
import { MODEL_TASKS } from '../../engine/model-types.ts';
import type { ModelTask } from '../../engine/model-types.ts';
import { modelName } from '../../engine/util/model-name.ts';
import { expectModel, recommendedByName } from '../../sources/index.ts';
import { resolveSource } from '../../sources/node/index.ts';
import type { ResolveOptions, Resolved } from '../../sources/node/index.ts';
import { checkLoraNames } from './config.ts';
import type { ServerConfig } from './config.ts';

/** Recommended sampling of a model of this name, for use where its own files have none. */
export function recommendedSampling(source: string | undefined): ModelSource['sampling'] {
  return source === undefined ? undefined : recommendedByName(source)?.sampling;
}

/** Returns the settings with each model's source replaced by its folder or file; fetches models that are not here. Throws SourceError. */
export async function resolveModels(config: ServerConfig, options: ResolveOptions): Promise<ServerConfig> {
  const found = new Map<ModelTask, Resolved & { readonly named: string }>();
  for (const task of MODEL_TASKS) {
    const path = config.engine[task]?.path;
    // An existing folder or file is taken first, and needs no look at the caches.
    if (path === undefined || (existsSync(path) && !path.endsWith('.json'))) continue;
    const model = await resolveSource(path, options);
    expectModel(path, model.format);
    found.set(task, { ...model, named: modelName(path) });
  }
  const loras = await resolveLoras(config.engine.chat?.loras ?? [], options);
  const sampling = recommendedSampling(found.get('chat')?.id ?? config.engine.chat?.path);
  if (found.size === 0 && !sampling && loras.length === 0) return config;
  const engine: Record<string, unknown> = { ...config.engine };
  if (loras.length > 0) engine['chat'] = { ...config.engine.chat, loras };
  // An id that was asked for stays; one made from the source's name becomes the model's.
  const idOf = (task: ModelTask, id: string): string => (found.get(task)?.named === id ? found.get(task)!.id : id);
  for (const [task, { path }] of found)
    engine[task] = { ...(engine[task] as ModelSource), path, id: idOf(task, config.engine[task]?.id ?? '') };
  if (sampling) engine['chat'] = { ...(engine['chat'] as ModelSource), sampling };
  const listeners = config.listeners.map((listener) => ({ ...listener, modelId: idOf(listener.task, listener.modelId) }));
  checkLoraNames(listeners, config.engine.chat);
  return { ...config, engine: engine as unknown as EngineConfig, listeners };
}

/** Replaces the sources of LoRA adapters by their folders, in order, so that each says what is fetched. */
async function resolveLoras(loras: NonNullable<ModelSource['loras']>, options: ResolveOptions): Promise<NonNullable<ModelSource['loras']>> {
  const found: { readonly id: string; readonly path: string }[] = [];
  for (const { id, path } of loras) found.push({ id, path: existsSync(path) ? path : (await resolveSource(path, options)).path });
  return found;
}
