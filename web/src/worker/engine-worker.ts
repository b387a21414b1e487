/** Runs an engine in a worker: the same createEngine() as the server's, on the browser's WebGPU. Or describes a model, without a GPU. */
import { espeak } from 'virtual:espeak';
import { EngineError, createEngine, describeModel, resolveConfig, serveEngine } from '../../../engine/index.ts';
import type { Engine } from '../../../engine/index.ts';
import { toPlainError } from '../../../engine/errors.ts';
import { createBrowserPlatform, fetchFile } from '../../../engine/platform/browser.ts';
import type { SlicedFile } from '../../../engine/platform/browser.ts';
import { SourceError } from '../../../sources/index.ts';
import type { HubAccess } from '../models/hub-authorization.ts';
import { ModelStore } from '../models/model-store.ts';
import { StoreError } from '../models/store-error.ts';
import { fetchedFile, fileOfFolder } from './fetched-file.ts';
import { messagePort } from './message-port.ts';
import { modelFiles, modelPath } from './model-files.ts';
import type { PlacedFile } from './model-files.ts';
import type { DescribeMessage, LoadMessage, WorkerMessage } from './protocol.ts';
import { RangeFile } from './range-file.ts';
import { bundledShaders } from './shaders.ts';

/** Interval at which the engine is polled for a lost device, in ms. */
const WATCH_INTERVAL = 200;

const tell = (message: WorkerMessage): void => self.postMessage(message);
const store = new ModelStore();

/** Opens a file to be read completely. */
const openFile =
  (id: string) =>
  async ({ name, at }: PlacedFile): Promise<SlicedFile | undefined> => {
    if (at instanceof Blob) return at;
    return at === 'store' ? asEngineError(store.open(id, name)) : fetchedFile(at.url);
  };

/** Opens a file of which only the header is read. */
const openHead =
  (access: HubAccess | undefined) =>
  async ({ name, size, at }: PlacedFile): Promise<SlicedFile | undefined> => {
    if (at === 'store' || at instanceof Blob) return at === 'store' ? undefined : at;
    const file = new RangeFile({ name, size, url: at.url }, access);
    return { size, slice: (start, end) => ({ arrayBuffer: () => asEngineError(file.slice(start, end).arrayBuffer()) }) };
  };

async function asEngineError<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    // Not the model's fault.
    if (error instanceof StoreError && error.kind === 'network') throw new SourceError('network', error.message, { cause: error });
    if (error instanceof StoreError) throw new EngineError('invalid_model', error.message, { cause: error });
    throw error;
  }
}

const grammarWorker = (): Worker => new Worker(new URL('./grammar-worker.ts', import.meta.url), { type: 'module', name: 'parley grammar' });

function watch(engine: Engine): void {
  const timer = setInterval(() => {
    if (engine.status().state !== 'lost') return;
    clearInterval(timer);
    tell({ type: 'lost' });
  }, WATCH_INTERVAL);
}

const log = (line: string): void => tell({ type: 'log', line });

/** Folder name under which an engine finds files that come with the page instead of with a model. */
const VAD_FOLDER = 'page:silero-vad';

/** Opens a file that comes with the page; the error names its address, because a bundler or a server may have left it out. */
async function openOwn(address: string): Promise<SlicedFile> {
  const file = await fetchFile(address);
  if (!file) throw new EngineError('invalid_model', `file not found: ${address}, which comes with Parley`);
  return file;
}

async function load({ config, model, vad, port }: LoadMessage): Promise<void> {
  const shaders = await bundledShaders();
  const { base } = model;
  const { file, list } =
    base === undefined
      ? modelFiles(model, openFile(model.storedAs ?? model.id))
      : { file: (path: string) => fileOfFolder(base, path), list: undefined };
  const openAny = async (path: string): Promise<SlicedFile | undefined> =>
    vad !== undefined && path.startsWith(VAD_FOLDER) ? (path.endsWith('.safetensors') ? openOwn(vad) : undefined) : file(path);
  const platform = createBrowserPlatform({ shaders, file: openAny, ...(list && { list }), log, grammarWorker, espeak });
  const source = { [model.task]: { path: modelPath(model), id: model.id }, ...(vad !== undefined && { vad: { path: VAD_FOLDER } }) };
  const engine = await createEngine(platform, resolveConfig({ ...config, ...source }));
  serveEngine(engine, messagePort(port), log);
  watch(engine);
}

async function describe({ model, access }: DescribeMessage): Promise<void> {
  const platform = createBrowserPlatform({ shaders: new Map(), ...modelFiles(model, openHead(access)), log });
  const description = await describeModel(platform, { path: modelPath(model), id: model.id }, resolveConfig({}));
  tell({ type: 'described', description });
}

self.addEventListener('message', ({ data }: MessageEvent<LoadMessage | DescribeMessage>) => {
  const work = data.type === 'load' ? load(data) : describe(data);
  work.catch((error: unknown) => {
    log(error instanceof Error ? (error.stack ?? error.message) : String(error));
    if (error instanceof SourceError) {
      const { kind, message, wantsToken } = error;
      tell({ type: 'refused', error: { kind, message, wantsToken } });
    } else tell({ type: 'failed', error: toPlainError(error) });
  });
});
tell({ type: 'started' });
