/** A list of takes or transcripts that lives as long as the page, is stored, and is the same in every tab. */
import { batch, signal } from '@preact/signals';
import type { ReadonlySignal, Signal } from '@preact/signals';
import { UNDO_MS } from './deletions.ts';
import type { Deletions } from './deletions.ts';
import { leftOutWords } from './stored-fields.ts';
import type { Tabs } from './tabs.ts';
import type { WorkData, WorkKind, WorkStore } from './work-store.ts';

interface WorkItem<Data extends WorkData> {
  readonly id: string;
  readonly created: number;
  data(): Data;
}

/** The part of App that the list uses. */
export interface WorkPlace {
  readonly work: WorkStore;
  readonly tabs: Tabs;
  readonly deletions: Deletions;
}

interface Options<Data extends WorkData, Item extends WorkItem<Data>> {
  readonly kind: WorkKind;
  /** Whether a record is as this version of the page stores it; others are left out, and stay in the store. */
  readonly isReadable: (stored: Data) => boolean;
  readonly isRunning: (data: Data) => boolean;
  /** Makes an item from its stored data. `isAlive`: some tab works on it; an item stored as running without that counts as stopped. */
  readonly revive: (data: Data, isAlive: boolean) => Item;
  readonly labelOf: (item: Item) => string;
  /** Stops the job and the sound of an item that is removed. */
  readonly leave: (item: Item) => void;
}

export class WorkList<Data extends WorkData, Item extends WorkItem<Data>> {
  /** Message for people where stored items are left out; else empty. */
  readonly problem = signal('');
  readonly #items: Signal<readonly Item[]> = signal([]);
  readonly #place: WorkPlace;
  readonly #options: Options<Data, Item>;
  /** Items whose job runs in this tab, by id: their state here is newer than the store's. */
  readonly #own = new Map<string, Item>();
  /** Ids that are deleted for good: what their jobs still store must not restore them. */
  readonly #purged = new Set<string>();
  readonly #followed = new Set<string>();

  constructor(place: WorkPlace, options: Options<Data, Item>) {
    this.#place = place;
    this.#options = options;
    place.tabs.listen(options.kind, (id) => void this.#reload(id));
  }

  /** Newest first. */
  get items(): ReadonlySignal<readonly Item[]> {
    return this.#items;
  }

  async restore(): Promise<void> {
    const { kind, isReadable } = this.#options;
    const found = await this.#place.work.all<Data>(kind);
    const readable = found.filter(isReadable);
    if (readable.length < found.length) this.problem.value = leftOutWords(`${kind}s`);
    const held = await this.#held(readable);
    // Shown at once: a list that grows by one a hundred times would be rendered as often.
    batch(() => {
      for (const data of readable) {
        if (data.removed === undefined) this.#show(data, held);
        else this.#offerUndo(this.#options.revive(data, false), data.removed);
      }
    });
  }

  /** Adds an item and runs a job on it, after one that may still be running; other tabs see it as running. */
  async run(item: Item, job: () => Promise<void>): Promise<void> {
    const { work, tabs } = this.#place;
    this.#insert(item);
    await tabs.hold(item.id, async () => {
      this.#own.set(item.id, item);
      await work.put(this.#options.kind, item.data());
      await job();
      if (!this.#purged.has(item.id)) await work.put(this.#options.kind, item.data());
      this.#own.delete(item.id);
    });
  }

  /** Stores the current state of a job's item. */
  save(item: Item): void {
    if (!this.#purged.has(item.id)) void this.#place.work.put(this.#options.kind, item.data());
  }

  /** Whether an item is deleted for good. */
  isPurged(id: string): boolean {
    return this.#purged.has(id);
  }

  /** Deletes an item; the deletion can be undone for some seconds. */
  remove(item: Item): void {
    const removed = Date.now();
    this.#options.leave(item);
    this.#drop(item.id);
    void this.#mark(item, removed);
    this.#offerUndo(item, removed);
  }

  #offerUndo(item: Item, removed: number): void {
    const { work, deletions } = this.#place;
    const { id } = item;
    const undo = (): void => {
      this.#insert(item);
      void this.#mark(item, undefined);
    };
    const purge = (): void => {
      this.#purged.add(id);
      void work.remove(this.#options.kind, id);
    };
    // The time to undo a deletion of an earlier visit may be over already.
    if (Date.now() >= removed + UNDO_MS) purge();
    else deletions.offer({ id, label: this.#options.labelOf(item), undo, purge }, removed);
  }

  async #mark(item: Item, removed: number | undefined): Promise<void> {
    await this.#place.work.edit<WorkData>(this.#options.kind, item.data(), ({ removed: _, ...data }) =>
      removed === undefined ? data : { ...data, removed },
    );
  }

  async #reload(id: string): Promise<void> {
    const data = await this.#place.work.get<Data>(this.#options.kind, id);
    if (data && !this.#options.isReadable(data)) return;
    const own = this.#own.get(id);
    const shown = this.#items.peek().find((item) => item.id === id);
    if (data && data.removed === undefined) {
      this.#place.deletions.forget(id);
      if (!own) this.#show(data, await this.#held([data]));
      else if (!shown) this.#insert(own);
      return;
    }
    if (!data) {
      this.#purged.add(id);
      this.#place.deletions.forget(id);
    }
    if (!shown) return;
    // It may be in use here: its job and sound stop, as an answer does.
    this.#options.leave(shown);
    this.#drop(id);
    if (data?.removed !== undefined) this.#offerUndo(shown, data.removed);
  }

  /** The jobs that any tab holds, where one of these records needs to know. */
  async #held(records: readonly Data[]): Promise<ReadonlySet<string>> {
    return records.some(this.#options.isRunning) ? this.#place.tabs.held() : new Set();
  }

  #show(data: Data, held: ReadonlySet<string>): void {
    const isAlive = this.#options.isRunning(data) && held.has(data.id);
    this.#insert(this.#options.revive(data, isAlive));
    if (isAlive) void this.#follow(data.id);
  }

  /** Follows another tab's job to its end. */
  async #follow(id: string): Promise<void> {
    if (this.#followed.has(id)) return;
    this.#followed.add(id);
    await this.#place.tabs.released(id);
    this.#followed.delete(id);
    await this.#reload(id);
  }

  #insert(item: Item): void {
    const rest = this.#items.peek().filter(({ id }) => id !== item.id);
    this.#items.value = [...rest, item].sort((a, b) => b.created - a.created);
  }

  #drop(id: string): void {
    this.#items.value = this.#items.peek().filter((other) => other.id !== id);
  }
}
