/** Work on models, whatever view is open: downloads, copies, checks and deletions, each with progress, a way to stop it, and a result. */
import { computed, signal } from '@preact/signals';
import type { Signal } from '@preact/signals';
import { Meter, formatSeconds } from '../../../sources/index.ts';
import { toFailure } from '../failure.ts';
import { DEFAULT_SETTINGS } from '../settings.ts';
import type { Settings } from '../settings.ts';
import { requireFit, roomHere } from './fit.ts';
import type { ModelManifest, ModelTask } from './manifest.ts';
import type { ModelLibrary } from './model-library.ts';
import type { ModelStore, Progress } from './model-store.ts';
import type { PickedModel } from './picked-model.ts';
import { formatBytes } from '../util.ts';

/** The part of App that work on models uses. */
export interface WorkPlace {
  readonly library: ModelLibrary;
  readonly store: ModelStore;
  readonly settings: Settings;
  readonly sessions: Readonly<Record<ModelTask, { unload(): void }>>;
}

/** Progress of work: bytes done and total, bytes per second and seconds left where known. */
interface Amount {
  readonly done: number;
  readonly total: number;
  readonly speed?: number | undefined;
  readonly left?: number | undefined;
}

/** Kinds of work on a model. */
type ModelWorkKind = 'fetch' | 'copy' | 'check' | 'delete';

/** Shown while another tab writes the model. */
const WAITING = 'Being downloaded already, perhaps in another tab; what is missing then is fetched here';

/** Shortest time between updates of the shown progress, in ms. */
const SHOWN_EVERY = 50;

export class ModelWork {
  readonly id: string;
  /** Result of the last work, for people; empty while work is running. */
  readonly note = signal('');
  readonly failed = signal(false);
  /** Whether the last work failed because the hub requires a token, or another one. */
  readonly wantsToken = signal(false);
  readonly amount = signal<Amount>({ done: 0, total: 0 });
  /** The running work, with its AbortController; undefined when there is none. */
  readonly running = signal<{ readonly kind: ModelWorkKind; readonly abort: AbortController } | undefined>(undefined);
  readonly share = computed(() => (this.amount.value.total === 0 ? 0 : this.amount.value.done / this.amount.value.total));
  /** Progress in words: how far, how fast, and how long it will still take. */
  readonly line = computed(() => describeAmount(this.amount.value, this.running.value?.kind === 'fetch'));
  readonly #place: WorkPlace;

  constructor(place: WorkPlace, id: string) {
    this.#place = place;
    this.id = id;
  }

  /** The manifest as the library has it now: a download adds hashes. */
  get #manifest(): ModelManifest {
    return this.#place.library.manifest(this.id)!;
  }

  /** Downloads what is missing; true when all of the model is stored. */
  fetch(): Promise<boolean> {
    return this.#run('fetch', (signal, progress) => this.#download(this.#manifest, signal, progress));
  }

  /** Looks a model up, lists it and downloads it; for models whose size the person has seen already. */
  findAndFetch(find: (signal: AbortSignal) => Promise<ModelManifest>): Promise<boolean> {
    return this.#run('fetch', async (signal, progress) => this.#download(await find(signal), signal, progress));
  }

  copy({ manifest, blobs }: PickedModel): Promise<boolean> {
    return this.#run('copy', async (signal, progress) => {
      await this.#place.store.importFiles(manifest, blobs, signal, progress);
      return 'Stored';
    });
  }

  verify(): Promise<boolean> {
    return this.#run('check', async (_signal, progress) => {
      const damaged = await this.#place.store.verify(this.id, progress);
      return damaged.length === 0 ? 'Every byte is right' : `Damaged and removed: ${damaged.join(', ')}`;
    });
  }

  remove(): Promise<boolean> {
    return this.#run('delete', async () => {
      const { settings, sessions, store } = this.#place;
      const { task, files } = this.#manifest;
      const isChosen = settings.value.models[task] === this.id;
      const isFetchable = files[0]?.url !== undefined;
      if (isChosen) sessions[task].unload();
      await store.remove(this.id);
      if (isFetchable) return 'Deleted';
      // The deleted model cannot be loaded any more, so the default is chosen.
      if (isChosen) settings.update('models', { [task]: DEFAULT_SETTINGS.models[task] });
      return 'Deleted. To have it again, open its files again.';
    });
  }

  stop(): void {
    this.running.peek()?.abort.abort();
  }

  /** Checks that a model has room, lists it if it is not listed yet, and downloads what is missing. */
  async #download(manifest: ModelManifest, signal: AbortSignal, progress: Progress): Promise<string> {
    const { library, store } = this.#place;
    const stored = library.stored.peek().find((entry) => entry.manifest.id === this.id);
    requireFit(manifest, await roomHere(), stored?.bytes);
    if (!library.manifest(this.id)) library.add(manifest);
    await store.download(manifest, signal, progress, () => (this.note.value = WAITING));
    void navigator.storage.persist?.();
    return 'Stored';
  }

  async #run(kind: ModelWorkKind, what: (signal: AbortSignal, progress: Progress) => Promise<string>): Promise<boolean> {
    if (this.running.peek()) return false;
    const abort = new AbortController();
    const meter = new Meter();
    let shownAt = -Infinity;
    this.amount.value = { done: 0, total: 0 };
    this.note.value = '';
    this.failed.value = this.wantsToken.value = false;
    this.running.value = { kind, abort };
    try {
      this.note.value = await what(abort.signal, (done, total) => {
        const now = performance.now();
        if (now - shownAt < SHOWN_EVERY && done < total) return;
        shownAt = now;
        meter.note(done, now);
        this.amount.value = { done, total, speed: meter.speed, left: meter.secondsLeft(total) };
      });
      return true;
    } catch (error) {
      this.failed.value = !abort.signal.aborted;
      if (!abort.signal.aborted) {
        const { code, message } = toFailure(error);
        this.wantsToken.value = code === 'denied';
        this.note.value = message;
      } else this.note.value = kind === 'fetch' ? 'Paused; what has arrived is kept' : 'Stopped';
      return false;
    } finally {
      await this.#place.library.refresh();
      this.running.value = undefined;
    }
  }
}

/** Describes progress, such as: 45 % of 98 MB · 12 MB/s · 5 s left. */
export function describeAmount({ done, total, speed, left }: Amount, isDownload: boolean): string {
  if (total === 0) return '';
  if (isDownload && done >= total) return `${formatBytes(total)} · checking`;
  const parts = [`${Math.floor((done / total) * 100)} % of ${formatBytes(total)}`];
  if (speed !== undefined) parts.push(`${formatBytes(speed)}/s`);
  if (left !== undefined) parts.push(`${formatSeconds(left)} left`);
  return parts.join(' · ');
}

/** The ModelWork of each model. */
export class ModelWorks {
  readonly #place: WorkPlace;
  readonly #works: Signal<ReadonlyMap<string, ModelWork>> = signal(new Map());
  /** The works that are downloading. */
  readonly fetching = computed(() => [...this.#works.value.values()].filter(({ running }) => running.value?.kind === 'fetch'));

  constructor(place: WorkPlace) {
    this.#place = place;
  }

  of(id: string): ModelWork {
    const known = this.#works.peek().get(id);
    if (known) return known;
    const work = new ModelWork(this.#place, id);
    this.#works.value = new Map([...this.#works.peek(), [id, work]]);
    return work;
  }
}
