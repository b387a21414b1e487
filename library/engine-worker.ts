/** The page's side of an engine worker; the protocol is the playground's (web/src/worker/protocol.ts). */
import { connectEngine } from '../engine/client.ts';
import type { EngineClient } from '../engine/client.ts';
import type { ModelDescription } from '../engine/api.ts';
import { EngineError, fromPlainError } from '../engine/errors.ts';
import { SourceError } from '../sources/index.ts';
import { messagePort } from '../web/src/worker/message-port.ts';
import type { PlacedModel } from '../web/src/worker/model-files.ts';
import type { DescribeMessage, LoadMessage, WorkerMessage } from '../web/src/worker/protocol.ts';

type StartWorker = () => Worker;

/** Starts the worker beside this file. If that is on another origin, such as a CDN, it is imported by a script of this page's origin, and so are the workers that it starts. */
export function startOwnWorker(): Worker {
  const url = new URL('./worker.js', import.meta.url);
  if (url.origin === location.origin) return new Worker(new URL('./worker.js', import.meta.url), { type: 'module', name: 'parley engine' });
  return new Worker(URL.createObjectURL(new Blob([crossOriginScript(url.href)], { type: 'text/javascript' })), {
    type: 'module',
    name: 'parley engine',
  });
}

/** Script that imports a worker from another origin, and starts nested workers in the same way. Messages that arrive before it is loaded are kept and delivered later. */
const crossOriginScript = (url: string): string => `const kept = [];
const keep = (event) => kept.push(event);
addEventListener('message', keep);
const Own = Worker;
self.Worker = class extends Own {
  constructor(from, options) {
    super(URL.createObjectURL(new Blob(['import ' + JSON.stringify(String(from))], { type: 'text/javascript' })), { ...options, type: 'module' });
  }
};
await import(${JSON.stringify(url)});
removeEventListener('message', keep);
for (const { data, ports } of kept) dispatchEvent(new MessageEvent('message', { data, ports }));`;

const NO_SCRIPT =
  "the engine's script could not be loaded; where a bundler does not bring it along, give the option 'worker' (parley/worker)";

/** Passes a worker's messages to `done`; rejects with the error of the engine, of a source, or of the script itself. */
function listen(worker: Worker, done: (message: WorkerMessage) => void): Promise<never> {
  const failed = new Promise<never>((_, reject) => {
    worker.addEventListener('message', ({ data }: MessageEvent<WorkerMessage>) => {
      if (data.type === 'failed') reject(fromPlainError(data.error));
      else if (data.type === 'refused') reject(new SourceError(data.error.kind, data.error.message, data.error));
      else done(data);
    });
    worker.addEventListener('error', ({ message }) => reject(new EngineError('internal', message || NO_SCRIPT)));
  });
  failed.catch(() => {});
  return failed;
}

/** Describes a model from the headers of its files, in a worker. */
export async function describeInWorker(start: StartWorker, model: PlacedModel, signal: AbortSignal): Promise<ModelDescription> {
  signal.throwIfAborted();
  const worker = start();
  try {
    return await new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      listen(worker, (message) => message.type === 'described' && resolve(message.description)).catch(reject);
      worker.postMessage({ type: 'describe', model } satisfies DescribeMessage);
    });
  } finally {
    worker.terminate();
  }
}

/** A loaded engine and the end of its worker. */
export interface LoadedEngine {
  readonly client: EngineClient;
  end(): void;
}

/** Loads a model in a worker of its own. */
export async function loadInWorker(
  start: StartWorker,
  load: Omit<LoadMessage, 'type' | 'port'>,
  { log, signal }: { readonly log: ((line: string) => void) | undefined; readonly signal: AbortSignal },
): Promise<LoadedEngine> {
  signal.throwIfAborted();
  const worker = start();
  const { port1, port2 } = new MessageChannel();
  let close = (): void => {};
  const closed = new Promise<void>((resolve) => (close = resolve));
  const end = (): void => {
    worker.terminate();
    close();
  };
  const failed = listen(worker, (message) => {
    if (message.type === 'log') log?.(message.line);
    else if (message.type === 'lost') end();
  });
  const client = connectEngine(messagePort(port1, closed), 'the engine in this page stopped; load the model again');
  worker.postMessage({ ...load, type: 'load', port: port2 } satisfies LoadMessage, [port2]);
  const aborted = new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }));
  aborted.catch(() => {});
  try {
    await Promise.race([client.ready, failed, aborted]);
  } catch (error) {
    end();
    throw error;
  }
  failed.catch(end);
  return { client, end };
}
