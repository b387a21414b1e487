/** Stored conversations in IndexedDB, one record each. */
import { Database } from '../storage/database.ts';
import type { ConversationData } from './conversation-data.ts';
import type { Edit } from './record.ts';

const STORE = 'conversations';

/** The database of conversations. Every method rejects where the browser stores nothing. */
export class History {
  readonly #database = new Database({
    name: 'parley',
    version: 1,
    upgrade: (database) => database.createObjectStore(STORE, { keyPath: 'id' }),
  });

  async all(): Promise<ConversationData[]> {
    return this.#database.all<ConversationData>(STORE);
  }

  async get(id: string): Promise<ConversationData | undefined> {
    return this.#database.get<ConversationData>(STORE, id);
  }

  /** Applies an edit to a stored conversation (to `fallback` if it is not stored) in one transaction; returns the new state. */
  async edit(fallback: ConversationData, edit: Edit): Promise<ConversationData> {
    const stored = await this.#database.run<ConversationData>([STORE], 'readwrite', (use, give, step) => {
      const store = use(STORE);
      const request = store.get(fallback.id) as IDBRequest<ConversationData | undefined>;
      request.onsuccess = () =>
        step(() => {
          const edited = edit(request.result ?? fallback);
          if (edited !== request.result) store.put(edited);
          give(edited);
        });
    });
    return stored!;
  }

  /** Deletes a conversation's record, if it is still marked as deleted. */
  async purge(id: string): Promise<void> {
    await this.#database.run([STORE], 'readwrite', (use) => {
      const store = use(STORE);
      const request = store.get(id) as IDBRequest<ConversationData | undefined>;
      request.onsuccess = () => void (request.result?.removed !== undefined && store.delete(id));
    });
  }
}
