/** One task's engine in the tab: fetches the model into the store, starts a worker, and follows it until it is closed or lost. */
import { signal } from '@preact/signals';
import type { Signal } from '@preact/signals';
import { connectEngine } from '../../../engine/client.ts';
import type { EngineClient } from '../../../engine/client.ts';
import type { EngineInfo } from '../../../engine/api.ts';
import type { EngineConfig } from '../../../engine/config.ts';
import { EngineError } from '../../../engine/errors.ts';
import { Meter } from '../../../sources/index.ts';
import { failure, isAbort, toFailure } from '../failure.ts';
import type { Failure } from '../failure.ts';
import { VAD_WEIGHTS, loadedAbout, manifestBytes } from '../models/manifest.ts';
import type { ModelManifest } from '../models/manifest.ts';
import { TAB_CONFIG, tabMemory } from '../models/tab-config.ts';
import { StoreError } from '../models/store-error.ts';
import type { ModelStore } from '../models/model-store.ts';
import { messagePort } from '../worker/message-port.ts';
import type { PlacedFile, PlacedModel } from '../worker/model-files.ts';
import type { LoadMessage } from '../worker/protocol.ts';
import type { SessionState } from './session-state.ts';
import { startEngineWorker } from './start-engine-worker.ts';

/** Engine settings that put one half of the layers on each of the two graphics cards that a browser can tell apart, or all on one. */
export function splitConfig(bothAdapters: boolean): Partial<EngineConfig> {
  return bothAdapters ? { ppSize: 2, adapters: ['high-performance', 'low-power'] } : {};
}

/** The life of one task's engine in the tab. `load` does not reject; what happens is in `state`. */
export class EngineSession {
  readonly state: Signal<SessionState> = signal({ name: 'idle' });
  /** Id of the model that the state is about. */
  readonly model: Signal<string | undefined> = signal(undefined);
  readonly log: Signal<readonly string[]> = signal([]);
  readonly task: ModelManifest['task'];
  readonly #store: ModelStore;
  readonly #settings: () => Partial<EngineConfig>;
  #client: EngineClient | undefined;
  #loading: AbortController | undefined;
  #close: (() => void) | undefined;

  /** `settings` is called at each load. */
  constructor(task: ModelManifest['task'], store: ModelStore, settings: () => Partial<EngineConfig> = () => ({})) {
    this.task = task;
    this.#store = store;
    this.#settings = settings;
  }

  /** The engine; throws EngineError('device_lost') unless the state is ready. */
  get engine(): EngineClient {
    if (!this.#client || this.state.peek().name !== 'ready') throw new EngineError('device_lost', 'the engine of this tab is not running');
    return this.#client;
  }

  /** Loads a model, fetching it into the store first if need be; with `store: false` it runs from its URLs and nothing is stored. */
  async load(manifest: ModelManifest, { store = true } = {}): Promise<void> {
    this.unload();
    this.model.value = manifest.id;
    const loading = new AbortController();
    this.#loading = loading;
    const show = (state: SessionState): void => {
      if (!loading.signal.aborted) this.state.value = state;
    };
    try {
      const stored = store && (await this.#store.isAvailable());
      if (stored) await this.#fetch(manifest, loading.signal, show);
      show({ name: 'loading' });
      if (loading.signal.aborted) return;
      const info = await this.#start(manifest, stored);
      if (stored) await this.#remember(manifest, info);
      // The engine may have been lost meanwhile, and `state` says so then.
      if (this.#client) show({ name: 'ready', info });
    } catch (error) {
      if (loading.signal.aborted) return;
      this.#stopWorker();
      if (isAbort(error)) return void (this.state.value = { name: 'idle' });
      const problem = toFailure(error);
      // The same state as for a device that is lost after loading.
      show(problem.code === 'device_lost' ? { name: 'lost' } : { name: 'failed', failure: problem });
    }
  }

  /** Ends the worker, and any loading in progress. */
  unload(): void {
    this.#loading?.abort();
    this.#stopWorker();
    this.state.value = { name: 'idle' };
  }

  /** Stores what the loaded model says about itself, for views of later visits that have not loaded it yet. */
  async #remember({ id, about }: ModelManifest, { models: [model] }: EngineInfo): Promise<void> {
    await this.#store.note(id, { ...about, ...(model && loadedAbout(model)) }).catch((error: unknown) => this.#note(String(error)));
  }

  /** Fetches the model into the store, complete and verified. */
  async #fetch(manifest: ModelManifest, signal: AbortSignal, show: (state: SessionState) => void): Promise<void> {
    const total = manifestBytes(manifest);
    const meter = new Meter();
    const downloading = (done: number, all: number): void => {
      meter.note(done, performance.now());
      show({ name: 'downloading', done, total: all, left: meter.secondsLeft(all) });
    };
    let stored = await this.#store.get(manifest.id);
    if (stored && isOutdated(stored.manifest, manifest)) {
      await this.#store.remove(manifest.id);
      stored = undefined;
    }
    if (!stored?.complete) {
      show({ name: 'downloading', done: 0, total });
      await this.#store
        .download(manifest, signal, downloading, () => show({ name: 'elsewhere' }))
        .catch((error: unknown) => {
          throw notStored(manifest, error);
        });
      void navigator.storage.persist?.();
    }
    show({ name: 'checking', done: 0, total });
    const damaged = await this.#store.verify(manifest.id, (done, all) => show({ name: 'checking', done, total: all }));
    if (damaged.length === 0) return;
    this.#note(`damaged in the store: ${damaged.join(', ')}`);
    if (manifest.files.some((file) => damaged.includes(file.name) && file.url === undefined)) {
      throw new StoreError('damaged', `the stored copy of ${manifest.id} is damaged (${damaged.join(', ')}); open the files again`);
    }
    await this.#store.download(manifest, signal, downloading);
  }

  async #start(manifest: ModelManifest, stored: boolean): Promise<EngineInfo> {
    const config: Partial<EngineConfig> = { ...TAB_CONFIG, deviceMemory: tabMemory(manifest.about?.memoryBytes), ...this.#settings() };
    const { port1, port2 } = new MessageChannel();
    const closed = new Promise<void>((resolve) => (this.#close = resolve));
    const { worker, failed, end } = startEngineWorker(`parley ${manifest.task}`, (message) => {
      if (message.type === 'log') this.#note(message.line);
      else if (message.type === 'lost') this.#lose();
    });
    void closed.then(end);
    const client = connectEngine(messagePort(port1, closed), 'the engine in this tab stopped');
    this.#client = client;
    const model = { ...placedModel(manifest, stored), task: manifest.task };
    const vad = manifest.task === 'transcription' && { vad: new URL(VAD_WEIGHTS, document.baseURI).href };
    worker.postMessage({ type: 'load', config, model, ...vad, port: port2 } satisfies LoadMessage, [port2]);
    await Promise.race([client.ready, failed]);
    worker.addEventListener('error', (event) => this.#fail(failure('internal', event.message || 'the engine worker stopped')));
    return client.info();
  }

  #lose(): void {
    this.#stopWorker();
    this.state.value = { name: 'lost' };
  }

  #fail(problem: Failure): void {
    this.#stopWorker();
    this.state.value = { name: 'failed', failure: problem };
  }

  #stopWorker(): void {
    this.#close?.();
    this.#close = undefined;
    this.#client = undefined;
  }

  #note(line: string): void {
    this.log.value = [...this.log.peek().slice(-199), line];
  }
}

/** Says where an engine's worker finds a model's files: in the store, or on the network. */
function placedModel({ id, main, files }: ModelManifest, stored: boolean): PlacedModel {
  const placed = files.map(({ name, size, url }): PlacedFile => {
    if (stored) return { name, size, at: 'store' };
    if (url === undefined) throw new StoreError('unavailable', `${id} came from files of yours, which this browser has not stored`);
    return { name, size, at: { url: new URL(url, document.baseURI).href } };
  });
  // Earlier versions stored GGUF models without `main`.
  const first = main ?? (files[0]?.name.endsWith('.gguf') ? files[0].name : undefined);
  return { id, files: placed, ...(first !== undefined && { main: first }) };
}

/** Names the model in the error of a broken download; returns other errors as they are. */
function notStored({ id }: ModelManifest, error: unknown): unknown {
  if (!(error instanceof StoreError) || error.kind !== 'network') return error;
  return new StoreError('network', `the download of ${id} broke off (${error.message}); what has arrived is kept`, { cause: error });
}

/** True when a newer build publishes other bytes under the same id. */
function isOutdated(stored: ModelManifest, published: ModelManifest): boolean {
  const hashes = (manifest: ModelManifest): string => manifest.files.map((file) => `${file.name} ${file.sha256.join()}`).join('\n');
  return published.source === 'bundled' && hashes(stored) !== hashes(published);
}
