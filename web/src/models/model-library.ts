/** The models that can be loaded: the bundled ones, and those in the store. */
import { signal } from '@preact/signals';
import type { Signal } from '@preact/signals';
import type { ModelIndex, ModelManifest, ModelTask } from './manifest.ts';
import type { ModelStore, StoredModel } from './model-store.ts';

export interface StorageUse {
  readonly usage: number;
  readonly quota: number;
  readonly persisted: boolean;
}

/** The list of models; call `refresh` after every change of the store. */
export class ModelLibrary {
  readonly index: Signal<readonly ModelManifest[]> = signal([]);
  /** Models that were looked up in this visit; they outlive it only once part of them is stored. */
  readonly found: Signal<readonly ModelManifest[]> = signal([]);
  readonly stored: Signal<readonly StoredModel[]> = signal([]);
  readonly storage: Signal<StorageUse | undefined> = signal(undefined);
  /** Whether this browser stores models for this page. */
  readonly canKeep: Signal<boolean> = signal(true);
  readonly #store: ModelStore;
  #refreshing = Promise.resolve();

  constructor(store: ModelStore) {
    this.#store = store;
  }

  /** Reads the store again. Calls run one after the other: a slow one could otherwise list models that have been deleted since. */
  refresh(): Promise<void> {
    return (this.#refreshing = this.#refreshing.then(() => this.#refresh()));
  }

  async #refresh(): Promise<void> {
    if (this.index.value.length === 0) this.index.value = await fetchIndex();
    this.stored.value = await this.#store.list().catch(() => []);
    this.canKeep.value = await this.#store.isAvailable();
    this.storage.value = await storageUse().catch(() => undefined);
  }

  /** Adds a model that was looked up to the list. */
  add(manifest: ModelManifest): void {
    this.found.value = [...this.found.peek().filter(({ id }) => id !== manifest.id), manifest];
  }

  /** Returns all models that can be loaded: the bundled ones first, then others that are stored or were found. */
  all(): readonly ModelManifest[] {
    const models = new Map<string, ModelManifest>();
    const stored = this.stored.value.map(({ manifest }) => manifest);
    for (const model of [...this.index.value, ...stored, ...this.found.value]) if (!models.has(model.id)) models.set(model.id, model);
    return [...models.values()];
  }

  /** Returns the build's manifest of a model (it may be newer than the stored one), else the stored one. */
  manifest(id: string): ModelManifest | undefined {
    return this.all().find((model) => model.id === id);
  }

  bundled(task: ModelTask): ModelManifest | undefined {
    return this.index.value.find((model) => model.task === task);
  }

  isComplete(id: string): boolean {
    return this.stored.value.some((entry) => entry.manifest.id === id && entry.complete);
  }
}

/** Returns the use of storage; undefined where the browser does not say. Rejects where pages may store nothing. */
async function storageUse(): Promise<StorageUse | undefined> {
  const manager = navigator.storage as StorageManager | undefined;
  if (!manager?.estimate) return undefined;
  const [{ usage = 0, quota = 0 }, persisted] = await Promise.all([manager.estimate(), manager.persisted()]);
  return { usage, quota, persisted };
}

async function fetchIndex(): Promise<readonly ModelManifest[]> {
  try {
    const response = await fetch('models/index.json');
    return response.ok ? ((await response.json()) as ModelIndex).models : [];
  } catch {
    return []; // offline without a service worker: stored models still work
  }
}
