/** Stores unsent texts while they are typed. */
import type { Signal } from '@preact/signals';
import { newId } from '../util.ts';
import type { Database } from './database.ts';
import { keepForTab, siteStorage } from './site-storage.ts';
import type { Tabs } from './tabs.ts';

interface KeptText {
  readonly key: string;
  /** Name of the tab: two tabs may type into the same field, and each keeps its own text. */
  readonly tab: string;
  readonly text: string;
  /** Time of the last change, in ms since 1970. */
  readonly time: number;
}

const TAB = 'parley.tab';
const LONGEST_MS = 30 * 24 * 3600 * 1000;

/** Keeps texts in an object store with the key path `[key, tab]`. */
export class TextKeeper {
  readonly #database: Database;
  readonly #store: string;
  readonly #tabs: Tabs;
  readonly #tab: Promise<string>;
  readonly #found: Promise<Map<string, string>>;
  readonly #unsaved = new Map<string, string | undefined>();
  #saving = false;

  constructor(database: Database, store: string, tabs: Tabs) {
    this.#database = database;
    this.#store = store;
    this.#tabs = tabs;
    this.#tab = this.#claim();
    this.#found = this.#load().catch(() => new Map());
  }

  /** Restores the text of the last visit, unless the person has typed already, and stores every change from now on. */
  keep(key: () => string, text: Signal<string>): void {
    const initial = text.peek();
    void this.#found.then((found) => {
      const before = found.get(key());
      if (before !== undefined && text.peek() === initial) text.value = before;
      let last = before ?? initial;
      text.subscribe((value) => {
        if (value === last) return;
        last = value;
        // The stored text is outdated now: a conversation that is created later must not begin with it.
        found.delete(key());
        void this.#save(key(), value === initial ? undefined : value);
      });
    });
  }

  /**
   * Returns the name of this tab, which survives a reload; while the tab lives, no other tab takes over its texts. A duplicated tab finds
   * the name of the first one in its sessionStorage, and takes a new one.
   */
  async #claim(): Promise<string> {
    const before = siteStorage('sessionStorage')?.getItem(TAB);
    if (before && (await this.#tabs.claim(before))) return before;
    const tab = newId();
    keepForTab(TAB, tab);
    await this.#tabs.claim(tab);
    return tab;
  }

  /** Returns the stored texts by key: this tab's own, else the newest of a closed tab. */
  async #load(): Promise<Map<string, string>> {
    const here = await this.#tab;
    const texts = await this.#database.all<KeptText>(this.#store);
    const alive = await this.#tabs.held();
    const mine = texts.filter(({ tab }) => tab === here || !alive.has(tab)).sort((a, b) => a.time - b.time);
    const [others, own] = [mine.filter(({ tab }) => tab !== here), mine.filter(({ tab }) => tab === here)];
    for (const { key, tab, time } of others) if (Date.now() - time > LONGEST_MS) void this.#write({ key, tab }, undefined);
    return new Map([...others, ...own].map(({ key, text }) => [key, text]));
  }

  /** Stores a text. One write runs at a time; what is typed meanwhile goes into the next. */
  async #save(key: string, text: string | undefined): Promise<void> {
    this.#unsaved.set(key, text);
    if (this.#saving) return;
    this.#saving = true;
    for (const [next, value] of this.#unsaved) {
      this.#unsaved.delete(next);
      // Where nothing can be stored, the person is told so by the work itself.
      await this.#write({ key: next, tab: await this.#tab }, value).catch(() => undefined);
    }
    this.#saving = false;
  }

  async #write({ key, tab }: Pick<KeptText, 'key' | 'tab'>, text: string | undefined): Promise<void> {
    await this.#database.run([this.#store], 'readwrite', (use) => {
      if (text === undefined) use(this.#store).delete([key, tab]);
      else use(this.#store).put({ key, tab, text, time: Date.now() } satisfies KeptText);
    });
  }
}
