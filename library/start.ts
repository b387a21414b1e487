/** Starts an engine process with the models that the options name. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { resolveConfig } from '../engine/config.ts';
import type { EngineConfig, ModelSource } from '../engine/config.ts';
import type { ModelTask } from '../engine/model-types.ts';
import { modelName } from '../engine/util/model-name.ts';
import { superviseEngine } from '../server/engine/supervisor.ts';
import type { EngineSupervisor } from '../server/engine/supervisor.ts';
import { createLineLog } from '../server/log.ts';
import { recommendedSampling } from '../server/settings/sources.ts';
import { unpackedDriver } from '../server/setup/drivers.mjs';
import { BUNDLED, ROOT } from '../server/setup/layout.mjs';
import { SourceError, expectModel } from '../sources/index.ts';
import { ownCacheFolder, resolveSource } from '../sources/node/index.ts';
import { APIUserAbortError } from './errors.ts';
import { engineSettings, namedModels, toLoadError } from './load-options.ts';
import type { LoadOptions } from './types.ts';

/** Milliseconds without progress after which the engine process is restarted. */
const WATCHDOG_MS = 60_000;

/** Fetches the models, if necessary, and starts an engine with them. Rejects with APIError, or with APIUserAbortError when the signal is aborted. */
export async function start(options: LoadOptions): Promise<{ readonly engine: EngineSupervisor; readonly config: EngineConfig }> {
  const named = namedModels(options);
  const settings = engineSettings(options);
  const sources: Partial<Record<ModelTask, ModelSource>> = {};
  for (const { task, source } of named) sources[task] = await locate(task, source, options);
  const vad = named.some(({ task }) => task === 'transcription') && { vad: { path: resolve(ROOT, 'models', 'silero-vad') } };
  const config = resolveConfig({ ...settings, ...sources, ...vad });
  for (const { task } of named) options.onProgress?.({ task, state: 'loading' });
  const engine = await startEngine(config, options);
  try {
    for (const { task } of named) options.onProgress?.({ task, state: 'ready' });
  } catch (error) {
    // The caller's callback threw; nobody else could close the engine.
    await engine.close();
    throw error;
  }
  return { engine, config };
}

/** Finds a model's folder or file; fetches the model if it is not local. */
async function locate(task: ModelTask, source: string, { onProgress, log, signal }: LoadOptions): Promise<ModelSource> {
  const places = [resolve(source), ...(BUNDLED === undefined ? [] : [resolve(BUNDLED, source)])];
  const here = places.find((place) => existsSync(place));
  if (here !== undefined && !here.endsWith('.json')) return withSampling(task, { path: here, id: modelName(here) }, source);
  try {
    // Would be taken for a Hugging Face id.
    if (BUNDLED === undefined && /^models\/parley-\w+$/.test(source)) throw new SourceError('missing', NOT_INSTALLED);
    const { path, id, format } = await resolveSource(source, {
      ...(signal && { signal }),
      ...(log && { onNote: log }),
      onProgress: ({ done, total }) => onProgress?.({ task, state: 'fetching', done, ...(total !== undefined && { total }) }),
    });
    expectModel(source, format);
    return withSampling(task, { path, id }, id);
  } catch (error) {
    throw signal?.aborted ? new APIUserAbortError() : toLoadError(error, task);
  }
}

const NOT_INSTALLED = 'the bundled models are not installed: install the package parley-models beside this one';

function withSampling(task: ModelTask, source: ModelSource, name: string): ModelSource {
  const sampling = task === 'chat' ? recommendedSampling(name) : undefined;
  return sampling ? { ...source, sampling } : source;
}

/** Resolves with the engine once it is ready; rejects if the supervisor gives up before, or the signal is aborted. */
async function startEngine(config: EngineConfig, { log, signal }: LoadOptions): Promise<EngineSupervisor> {
  if (signal?.aborted) throw new APIUserAbortError();
  let refuse: (error: unknown) => void = () => {};
  const refused = new Promise<never>((_, reject) => (refuse = reject));
  // After the start, a supervisor that gives up shows in the calls that fail.
  refused.catch(() => {});
  const engine = superviseEngine({
    start: { config, toggles: 'fast', cache: ownCacheFolder(process.env) },
    log: createLineLog(log),
    watchdogMs: WATCHDOG_MS,
    onGiveUp: refuse,
    environment: process.env['VK_DRIVER_FILES'] === undefined ? unpackedDriver() : {},
  });
  const abort = (): void => refuse(new APIUserAbortError());
  signal?.addEventListener('abort', abort, { once: true });
  try {
    await Promise.race([engine.ready, refused]);
    return engine;
  } catch (error) {
    await engine.close();
    throw error instanceof APIUserAbortError ? error : toLoadError(error, undefined);
  } finally {
    signal?.removeEventListener('abort', abort);
  }
}
