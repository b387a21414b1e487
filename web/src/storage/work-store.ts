/** Takes, transcripts, their sound and unsent texts in IndexedDB. Conversations have a database of their own (chat/history.ts). */
import { signal } from '@preact/signals';
import { concatenated } from '../../../engine/util/math.ts';
import { whyNotKept } from '../util.ts';
import { Database } from './database.ts';
import type { Tabs } from './tabs.ts';
import { TextKeeper } from './text-keeper.ts';

export type WorkKind = 'take' | 'transcript';

/** Stored fields that takes and transcripts share. */
export interface WorkData {
  readonly id: string;
  /** Time of creation, in ms since 1970. */
  readonly created: number;
  /** Time of deletion, in ms since 1970; for a while the item can be restored. */
  readonly removed?: number;
}

const SOUNDS = 'sounds';
const TEXTS = 'texts';

/** The stored work of this origin. Nothing rejects: what cannot be stored stays in the page, and `problem` says so. */
export class WorkStore {
  /** Message for people while the browser refuses to store work; else empty. */
  readonly problem = signal('');
  readonly texts: TextKeeper;
  /** Owners of sounds with a missing piece; the problem stays as long as there are any. */
  readonly #cut = new Set<string>();
  readonly #tabs: Tabs;
  readonly #database = new Database({
    name: 'parley-work',
    version: 1,
    upgrade: (database) => {
      for (const kind of ['take', 'transcript'] satisfies WorkKind[]) database.createObjectStore(kind, { keyPath: 'id' });
      // Keyed by owner and index, so that a growing sound is not written again with every piece.
      database.createObjectStore(SOUNDS);
      database.createObjectStore(TEXTS, { keyPath: ['key', 'tab'] });
    },
  });

  constructor(tabs: Tabs) {
    this.#tabs = tabs;
    this.texts = new TextKeeper(this.#database, TEXTS, tabs);
  }

  async all<T>(kind: WorkKind): Promise<T[]> {
    return this.#guard(this.#database.all<T>(kind), []);
  }

  async get<T>(kind: WorkKind, id: string): Promise<T | undefined> {
    return this.#guard(this.#database.get<T>(kind, id), undefined);
  }

  /** Stores a record; its mark of deletion stays. */
  async put(kind: WorkKind, record: WorkData): Promise<void> {
    await this.edit(kind, record, (stored) => ({ ...record, ...(stored.removed !== undefined && { removed: stored.removed }) }));
  }

  /** Applies an edit to a stored record (to `fallback` if it is not stored) in one transaction, and tells the other tabs. */
  async edit<Data extends WorkData>(kind: WorkKind, fallback: Data, edit: (stored: Data) => Data): Promise<void> {
    await this.#write([kind], (use, step) => {
      const store = use(kind);
      const request = store.get(fallback.id) as IDBRequest<Data | undefined>;
      request.onsuccess = () => step(() => void store.put(edit(request.result ?? fallback)));
    });
    this.#tabs.tell({ kind, id: fallback.id });
  }

  /** Stores piece `index` of a sound. After a piece that could not be stored no further ones are: they would be played in its place. */
  async putSound(owner: string, index: number, samples: Float32Array): Promise<void> {
    if (this.#cut.has(owner)) return;
    await this.#write(
      [SOUNDS],
      (use) => use(SOUNDS).put(samples, [owner, index]),
      () => this.#cut.add(owner),
    );
  }

  /** Returns the joined pieces of a sound; empty when nothing is stored. */
  async sound(owner: string): Promise<Float32Array> {
    const reading = this.#database.run<Float32Array[]>([SOUNDS], 'readonly', (use, give) => {
      const request = use(SOUNDS).getAll(piecesOf(owner));
      request.onsuccess = () => give(request.result as Float32Array[]);
    });
    return concatenated((await this.#guard(reading, [])) ?? []);
  }

  /** Deletes a record with its sound. */
  async remove(kind: WorkKind, id: string): Promise<void> {
    this.#cut.delete(id);
    await this.#write([kind, SOUNDS], (use) => {
      use(kind).delete(id);
      use(SOUNDS).delete(piecesOf(id));
    });
    this.#tabs.tell({ kind, id });
  }

  async #write(
    stores: readonly string[],
    act: (use: (store: string) => IDBObjectStore, step: (work: () => void) => void) => void,
    refused?: () => void,
  ): Promise<void> {
    const writing = this.#database.run(stores, 'readwrite', (use, _give, step) => act(use, step));
    const kept = await this.#guard(
      writing.then(() => true),
      false,
    );
    if (!kept) refused?.();
    else if (this.#cut.size === 0) this.problem.value = '';
  }

  async #guard<T>(work: Promise<T>, otherwise: T): Promise<T> {
    try {
      return await work;
    } catch (error) {
      this.problem.value = `This cannot be kept for the next visit: ${whyNotKept(error)}`;
      return otherwise;
    }
  }
}

const piecesOf = (owner: string): IDBKeyRange => IDBKeyRange.bound([owner, 0], [owner, Infinity]);
