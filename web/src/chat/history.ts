/** Conversations in IndexedDB, one record each. */
import type { ConversationData } from './conversation.ts';

const DATABASE = 'parley';
const STORE = 'conversations';

/** Opened at first use; every method rejects where the browser forbids IndexedDB (private windows of some browsers). */
export class History {
  #database: Promise<IDBDatabase> | undefined;

  async all(): Promise<ConversationData[]> {
    return this.#run<ConversationData[]>('readonly', (store) => store.getAll());
  }

  async put(conversation: ConversationData): Promise<void> {
    await this.#run('readwrite', (store) => store.put(conversation));
  }

  async remove(id: string): Promise<void> {
    await this.#run('readwrite', (store) => store.delete(id));
  }

  async #run<T>(mode: IDBTransactionMode, act: (store: IDBObjectStore) => IDBRequest): Promise<T> {
    this.#database ??= open();
    const database = await this.#database;
    return new Promise<T>((resolve, reject) => {
      const transaction = database.transaction(STORE, mode);
      const request = act(transaction.objectStore(STORE));
      transaction.oncomplete = () => resolve(request.result as T);
      transaction.onabort = () => reject(transaction.error ?? new Error('the conversation store refused'));
    });
  }
}

function open(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: 'id' });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error('IndexedDB cannot be opened'));
  });
}
