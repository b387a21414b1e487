/** `parley` in a page: each model in a Web Worker of its own, on the browser's WebGPU. */
import type { ModelTask } from '../engine/model-types.ts';
import { modelName } from '../engine/util/model-name.ts';
import { SourceError, formatSource, isCommit, parseSource } from '../sources/index.ts';
import type { HubSource, UrlSource } from '../sources/index.ts';
import { findModel, foundId } from '../web/src/models/find-model.ts';
import { TOKEN_WORDS } from '../web/src/models/hub-authorization.ts';
import { TAB_CONFIG, tabMemory } from '../web/src/models/tab-config.ts';
import type { ModelManifest } from '../web/src/models/manifest.ts';
import { digest } from '../web/src/models/model-folder.ts';
import { ModelStore } from '../web/src/models/model-store.ts';
import { StoreError } from '../web/src/models/store-error.ts';
import type { PlacedModel } from '../web/src/worker/model-files.ts';
import { describeInWorker, loadInWorker, startOwnWorker } from './engine-worker.ts';
import type { LoadedEngine } from './engine-worker.ts';
import { APIUserAbortError } from './errors.ts';
import { engineSettings, namedModels, toLoadError } from './load-options.ts';
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
  const engines = new Map<ModelTask, LoadedEngine>();
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

async function loadOne(task: ModelTask, source: string, options: LoadOptions): Promise<LoadedEngine> {
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
    throw signal.aborted ? new APIUserAbortError() : toLoadError(asSourceError(error), task);
  }
}

interface Placing {
  readonly start: () => Worker;
  readonly signal: AbortSignal;
  readonly options: LoadOptions;
}

/** Makes a model's files available to a worker: fetched into this origin's store, if it has one. A folder at an address is read directly. */
async function place(
  task: ModelTask,
  source: string,
  { start, signal, options }: Placing,
): Promise<{ readonly model: PlacedModel; readonly memoryBytes?: number | undefined }> {
  if (isFolder(source)) {
    const base = new URL(source, globalThis.document?.baseURI ?? location.href).href.replace(/\/+$/, '');
    return { model: { id: modelName(new URL(base).pathname), base, files: [] } };
  }
  const { manifest, storedAs } = await find(source, { start, signal, options });
  if (manifest.task !== task) throw new SourceError('missing', `${source} is a model for ${manifest.task}, not for ${task}`);
  const { id, main, files, about } = manifest;
  const store = new ModelStore();
  const stored = await store.isAvailable();
  if (stored) {
    const progress = (done: number, total: number): void => options.onProgress?.({ task, state: 'fetching', done, total });
    await store.download({ ...manifest, id: storedAs }, signal, progress);
  }
  const placed = files.map(({ name, size, url }) => ({ name, size, at: stored ? ('store' as const) : { url: url! } }));
  return { model: { id, storedAs, files: placed, ...(main !== undefined && { main }) }, memoryBytes: about?.memoryBytes };
}

interface Found {
  readonly manifest: ModelManifest;
  /** Id of the model in the store. */
  readonly storedAs: string;
}

/** Finds a model's manifest: the publisher's current one or, if the publisher cannot be reached, the stored one. A stored model that cannot change is not looked up again. */
async function find(text: string, { start, signal, options }: Placing): Promise<Found> {
  const source = findable(text);
  const id = foundId(source);
  const storedAs = source.kind === 'url' ? `${id} ${await placeOf(source.url)}` : id;
  const stored = await new ModelStore().get(storedAs).catch(() => undefined);
  const known = stored?.complete === true ? { manifest: { ...stored.manifest, id }, storedAs } : undefined;
  if (known && isPinned(source, known.manifest)) return known;
  const describe = (model: PlacedModel, stop: AbortSignal) => describeInWorker(start, model, stop);
  try {
    return { manifest: await findModel(text, { hub: HUB, describe }, signal), storedAs };
  } catch (error) {
    const isUnanswered = error instanceof SourceError && ['network', 'unreachable'].includes(error.kind);
    if (!known || !isUnanswered) throw error;
    options.log?.(`${error.message}; what is stored is used`);
    return known;
  }
}

/** Whether a source cannot change: it names a commit, or the stored file has the hash that it names. */
function isPinned(source: HubSource | UrlSource, { files }: ModelManifest): boolean {
  if (source.kind === 'hub') return isCommit(source.revision ?? '');
  return source.sha256 !== undefined && files[0]?.published?.hex === source.sha256;
}

/** Hash of an address, which tells apart models with the same file name. The query is left out, since it is often a signature that changes each time. */
async function placeOf(address: string): Promise<string> {
  const { origin, pathname } = new URL(address);
  return (await digest(new TextEncoder().encode(origin + pathname))).slice(0, 16);
}

/** Whether a source is the address of a folder: absolute or relative, and no GGUF file. */
const isFolder = (source: string): boolean => /^(https?:\/\/|\.{0,2}\/)/.test(source) && !/\.gguf([#?]|$)/i.test(source);

/** Parses a source; throws SourceError for one that a page cannot fetch. */
function findable(text: string): HubSource | UrlSource {
  const source = parseSource(text);
  if (source.kind === 'path')
    throw new SourceError(
      'syntax',
      `${JSON.stringify(text)} is no hub id (owner/name), no https address of a GGUF file, and no address of a folder`,
    );
  if (source.kind === 'package')
    throw new SourceError('syntax', `${formatSource(source)} is in a registry of packages, which a page cannot ask: ${OTHER_WAY}`);
  return source;
}

const OTHER_WAY = 'fetch it with `npx parley pull`, and name the address of its folder';

/** Kinds of the store's errors in terms of source errors. */
const KINDS: Partial<Record<StoreError['kind'], SourceError['kind']>> = {
  network: 'network',
  damaged: 'damaged',
  quota: 'disk',
  unavailable: 'disk',
};

/** Converts errors of the playground's code to source errors whose advice makes sense outside the playground. */
function asSourceError(error: unknown): unknown {
  if (error instanceof SourceError && error.wantsToken)
    return new SourceError(error.kind, error.message.replace(TOKEN_WORDS.give, OTHER_WAY), { cause: error });
  const kind = error instanceof StoreError ? KINDS[error.kind] : undefined;
  return kind === undefined ? error : new SourceError(kind, (error as StoreError).message, { cause: error });
}
