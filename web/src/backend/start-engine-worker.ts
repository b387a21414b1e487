/** Starts an engine's worker, and detects when it does not start. */
import type { ModelDescription } from '../../../engine/api.ts';
import { fromPlainError } from '../../../engine/errors.ts';
import { SourceError } from '../../../sources/index.ts';
import type { HubAccess } from '../models/hub-authorization.ts';
import { startWorker } from '../trusted-types.ts';
import { orAborted } from '../util.ts';
import type { PlacedModel } from '../worker/model-files.ts';
import type { DescribeMessage, WorkerMessage } from '../worker/protocol.ts';
import workerUrl from '../worker/page-worker.ts?worker&url';

/** Time limit for a worker's script to load and run, in ms. */
const START_LIMIT = 30_000;
const NOT_STARTED = 'the script of the engine could not be loaded: check the connection to the server of this page';

export interface StartedWorker {
  readonly worker: Worker;
  /** Rejects when the script does not load, or reports that its work failed. */
  readonly failed: Promise<never>;
  /** Terminates the worker, whatever it is doing. */
  end(): void;
}

/** Starts a worker; `onMessage` gets all its messages. */
export function startEngineWorker(name: string, onMessage: (message: WorkerMessage) => void): StartedWorker {
  const worker = startWorker(workerUrl, name);
  let waiting: ReturnType<typeof setTimeout> | undefined;
  const failed = new Promise<never>((_, reject) => {
    worker.addEventListener('message', ({ data }: MessageEvent<WorkerMessage>) => {
      clearTimeout(waiting);
      if (data.type === 'failed') reject(fromPlainError(data.error));
      if (data.type === 'refused') reject(new SourceError(data.error.kind, data.error.message, data.error));
      onMessage(data);
    });
    // Browsers give no message when the script itself could not be loaded, and fire no event while they wait for it.
    worker.addEventListener('error', (event) => reject(new Error(event.message || NOT_STARTED)));
    waiting = setTimeout(() => reject(new Error(NOT_STARTED)), START_LIMIT);
  });
  failed.catch(() => undefined);
  const end = (): void => {
    clearTimeout(waiting);
    worker.terminate();
  };
  return { worker, failed, end };
}

/**
 * Describes a model from the headers of its files, in a worker. Throws EngineError when it cannot be loaded, SourceError when the hub does
 * not provide it, and the signal's reason when it aborts.
 */
export async function describeFiles(model: PlacedModel, signal: AbortSignal, access?: HubAccess): Promise<ModelDescription> {
  signal.throwIfAborted();
  let tell: (description: ModelDescription) => void = () => {};
  const described = new Promise<ModelDescription>((resolve) => (tell = resolve));
  const { worker, failed, end } = startEngineWorker(
    'parley reader',
    (message) => message.type === 'described' && tell(message.description),
  );
  try {
    worker.postMessage({ type: 'describe', model, access } satisfies DescribeMessage);
    return await orAborted(Promise.race([described, failed]), signal);
  } finally {
    end();
  }
}
