/** IndexedDB with one promise per transaction. */

export interface DatabaseShape {
  readonly name: string;
  readonly version: number;
  /** Creates the object stores; called in the transaction that raises the version. */
  readonly upgrade: (database: IDBDatabase) => void;
}

/** Time in which a browser surely opens a database that it opens at all, in ms. */
export const OPEN_MS = 10_000;

/** A database that is opened at first use; every method rejects where the browser forbids IndexedDB (private windows of some browsers). */
export class Database {
  readonly #shape: DatabaseShape;
  #opening: Promise<IDBDatabase> | undefined;

  constructor(shape: DatabaseShape) {
    this.#shape = shape;
  }

  /**
   * Runs `act` in one transaction over `stores`, isolated from those of other tabs. Resolves with the result of `act` when the transaction
   * is complete, rejects when it is rolled back. What `act` does in a request's callback must go through `step`: an exception there
   * (Firefox throws for values that are too large) would otherwise roll the transaction back without giving its reason.
   */
  async run<T>(
    stores: readonly string[],
    mode: IDBTransactionMode,
    act: (use: (store: string) => IDBObjectStore, give: (value: T) => void, step: (work: () => void) => void) => void,
  ): Promise<T | undefined> {
    this.#opening ??= this.#open();
    const database = await this.#opening;
    return new Promise<T | undefined>((resolve, reject) => {
      const transaction = database.transaction(stores, mode);
      let given: T | undefined;
      let thrown: unknown;
      transaction.oncomplete = () => resolve(given);
      transaction.onabort = () => reject((thrown as Error | undefined) ?? transaction.error ?? new Error('the store refused'));
      act(
        (store) => transaction.objectStore(store),
        (value) => (given = value),
        (work) => {
          try {
            work();
          } catch (error) {
            thrown = error;
            transaction.abort();
          }
        },
      );
    });
  }

  /** Returns all records of a store. */
  async all<T>(store: string): Promise<T[]> {
    const found = await this.run<T[]>([store], 'readonly', (use, give) => {
      const request = use(store).getAll();
      request.onsuccess = () => give(request.result as T[]);
    });
    return found ?? [];
  }

  async get<T>(store: string, key: IDBValidKey): Promise<T | undefined> {
    return this.run<T>([store], 'readonly', (use, give) => {
      const request = use(store).get(key);
      request.onsuccess = () => give(request.result as T);
    });
  }

  #open(): Promise<IDBDatabase> {
    const { name, version, upgrade } = this.#shape;
    return new Promise((resolve, reject) => {
      const fail = (why: string): void => {
        clearTimeout(waiting);
        // Forgotten, so that a later try may succeed.
        this.#opening = undefined;
        reject(new Error(why));
      };
      // Not forgotten: what would be stored next must not wait as long again.
      const waiting = setTimeout(() => reject(new Error('this browser does not open its store')), OPEN_MS);
      const request = indexedDB.open(name, version);
      request.onupgradeneeded = () => upgrade(request.result);
      request.onsuccess = () => {
        clearTimeout(waiting);
        const database = request.result;
        // A tab with a newer page wants to change the stores; this tab opens the database again when it needs it.
        database.onversionchange = () => (database.close(), (this.#opening = undefined));
        database.onclose = () => (this.#opening = undefined);
        // It may come after the time was over.
        this.#opening = Promise.resolve(database);
        resolve(database);
      };
      request.onerror = () => fail(request.error?.message ?? 'IndexedDB cannot be opened');
      request.onblocked = () => fail('another tab holds an older version of the store open; close it');
    });
  }
}
