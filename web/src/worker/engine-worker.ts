/** Runs an engine in a worker: the same createEngine() as the server's, on the browser's WebGPU. */
import { EngineError, createEngine, resolveConfig, serveEngine } from '../../../engine/index.ts';
import type { Engine } from '../../../engine/index.ts';
import { toPlainError } from '../../../engine/errors.ts';
import { createBrowserPlatform, fetchFile } from '../../../engine/platform/browser.ts';
import { ModelStore, StoreError } from '../models/model-store.ts';
import { messagePort } from './message-port.ts';
import { STORE_SCHEME } from './protocol.ts';
import type { LoadMessage, WorkerMessage } from './protocol.ts';
import { bundledShaders } from './shaders.ts';

/** How often the engine is asked whether its device is still there, ms. */
const WATCH_INTERVAL = 200;

const tell = (message: WorkerMessage): void => self.postMessage(message);
const store = new ModelStore();

async function openFile(path: string): Promise<Blob | undefined> {
  if (!path.startsWith(STORE_SCHEME)) return fetchFile(path);
  const [id, name] = path.slice(STORE_SCHEME.length).split('/') as [string, string];
  try {
    return await store.open(decodeURIComponent(id), name);
  } catch (error) {
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

async function load({ config, port }: LoadMessage): Promise<void> {
  try {
    const engine = await createEngine(
      createBrowserPlatform({ shaders: bundledShaders(), file: openFile, log, grammarWorker }),
      resolveConfig(config),
    );
    serveEngine(engine, messagePort(port), log);
    watch(engine);
  } catch (error) {
    log(error instanceof Error ? (error.stack ?? error.message) : String(error));
    tell({ type: 'failed', error: toPlainError(error) });
  }
}

self.addEventListener('message', ({ data }: MessageEvent<LoadMessage>) => void load(data));
tell({ type: 'started' });
