/** The page's database where the browser is slow to open it, or never does. Without a browser. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Database, OPEN_MS } from '../../web/src/storage/database.ts';

/** A request that is never answered, unless the test does. */
const request: Partial<IDBOpenDBRequest> = {};
const open = vi.fn(() => request);

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('indexedDB', { open });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test('is given up once, and used as soon as it is open', async () => {
  const database = new Database({ name: 'any', version: 1, upgrade: () => undefined });
  const wanted = [database.all('store'), database.get('store', 'key')].map((read) => read.catch(String));
  await vi.advanceTimersByTimeAsync(OPEN_MS);
  expect(await Promise.all(wanted)).toEqual(Array(2).fill('Error: this browser does not open its store'));
  // No time passes any more.
  await expect(database.all('store')).rejects.toThrow('this browser does not open its store');
  const transaction: Partial<IDBTransaction> = { objectStore: () => ({ getAll: () => ({}) }) as unknown as IDBObjectStore };
  Object.assign(request, { result: { transaction: () => transaction } });
  request.onsuccess!.call(request as IDBOpenDBRequest, new Event('success'));
  const found = database.all('store');
  await vi.waitUntil(() => transaction.oncomplete);
  transaction.oncomplete!.call(transaction as IDBTransaction, new Event('complete'));
  expect(await found).toEqual([]);
  expect(open).toHaveBeenCalledTimes(1);
});
