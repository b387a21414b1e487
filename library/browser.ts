/** `parley` in a page: each model in a Web Worker of its own, on the browser's WebGPU. */
import { modelName } from '../engine/util/model-name.ts';
import { SourceError } from '../sources/index.ts';
import { findModel } from '../web/src/models/find-model.ts';
import { TAB_CONFIG, tabMemory } from '../web/src/models/tab-config.ts';
import { ModelStore } from '../web/src/models/model-store.ts';
import type { PlacedModel } from '../web/src/worker/model-files.ts';
import { describeInWorker, loadInWorker, startOwnWorker } from './engine-worker.ts';
import type { LoadedEngine } from './engine-worker.ts';
import { APIUserAbortError } from './errors.ts';
import { engineSettings, namedModels, toLoadError } from './load-options.ts';
import type { Task } from './load-options.ts';
import { createParley } from './parley.ts';
import { TAB_ENCODERS, decodeSound } from './tab-audio.ts';
import type { LoadOptions, Parley as ParleyInstance, ParleyConstructor } from './types.ts';

export * from './errors.ts';
export { Stream } from './stream.ts';
export type * from './types.ts';

/** Loads models into workers of this page. */
export const Parley: ParleyConstructor = { load };
export type Parley = ParleyInstance;

const HUB = 'https://huggingface.co';

async function load(options: LoadOptions): Promise<ParleyInstance> {
  const named = namedModels(options);
  const engines = new Map<Task, LoadedEngine>();
  const close = async (): Promise<void> => {
    for (const { end } of engines.values()) end();
    engines.clear();
  };
  try {
    for (const { task, source } of named) engines.set(task, await loadOne(task, source, options));
  } catch (error) {
    await close();
    throw options.signal?.aborted ? new APIUserAbortError() : error;
  }
  return createParley({
    engine: (task) => engines.get(task)?.client,
    encoders: TAB_ENCODERS,
    speechFormat: 'wav',
    decode: async (bytes) => ({ samples: await decodeSound(bytes), discard: async () => {} }),
    close,
  });
}

async function loadOne(task: Task, source: string, options: LoadOptions): Promise<LoadedEngine> {
  const { onProgress, log } = options;
  const start = (options.worker as (() => Worker) | undefined) ?? startOwnWorker;
  const signal = options.signal ?? new AbortController().signal;
  try {
    const { model, memoryBytes } = await place(task, source, { start, signal, options });
    onProgress?.({ task, state: 'loading' });
    // Beside the built file: what tells speech from noise.
    const vad = task === 'transcription' && { vad: new URL('../../models/silero-vad/model.safetensors', import.meta.url).href };
    const config = { ...TAB_CONFIG, deviceMemory: tabMemory(memoryBytes), ...engineSettings(options) };
    const loaded = await loadInWorker(start, { config, model: { ...model, task }, ...vad }, { log, signal });
    try {
      onProgress?.({ task, state: 'ready' });
    } catch (error) {
      loaded.end();
      throw error;
    }
    return loaded;
  } catch (error) {
    throw signal.aborted ? new APIUserAbortError() : toLoadError(error, task);
  }
}

interface Placing {
  readonly start: () => Worker;
  readonly signal: AbortSignal;
  readonly options: LoadOptions;
}

/** Where a worker finds the model's files: fetched into the store of this origin, where there is one; a folder at an address is read as it is. */
async function place(
  task: Task,
  source: string,
  { start, signal, options }: Placing,
): Promise<{ readonly model: PlacedModel; readonly memoryBytes?: number | undefined }> {
  if (isFolder(source)) {
    const base = new URL(source, globalThis.document?.baseURI ?? location.href).href.replace(/\/+$/, '');
    return { model: { id: modelName(new URL(base).pathname), base, files: [] } };
  }
  const describe = (model: PlacedModel, stop: AbortSignal) => describeInWorker(start, model, stop);
  const manifest = await findModel(source, { hub: HUB, describe }, signal);
  if (manifest.task !== task) throw new SourceError('missing', `${source} is a model for ${manifest.task}, not for ${task}`);
  const { id, main, files, about } = manifest;
  const store = new ModelStore();
  const stored = await store.isAvailable();
  if (stored) {
    const progress = (done: number, total: number): void => options.onProgress?.({ task, state: 'fetching', done, total });
    await store.download(manifest, signal, progress);
  }
  const placed = files.map(({ name, size, url }) => ({ name, size, at: stored ? ('store' as const) : { url: url! } }));
  return { model: { id, files: placed, ...(main !== undefined && { main }) }, memoryBytes: about?.memoryBytes };
}

/** An address of a folder: of this site or with a protocol, and no GGUF file. */
const isFolder = (source: string): boolean => /^(https?:\/\/|\.{0,2}\/)/.test(source) && !/\.gguf([#?]|$)/i.test(source);
