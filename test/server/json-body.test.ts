/** Bodies that do not come. */
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Request } from 'express';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { readJsonObject } from '../../server/body/json-body.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

function requestOf(body: PassThrough): Request {
  const headers: Readonly<Record<string, string>> = { 'content-type': 'application/json', 'transfer-encoding': 'chunked' };
  return Object.assign(body, { get: (name: string) => headers[name] }) as object as Request;
}

test('a body of which nothing comes for half a minute is given up, one that comes slowly is not', async () => {
  const body = new PassThrough();
  const read = readJsonObject(requestOf(body));
  const refused = expect(read).rejects.toMatchObject({ status: 408, code: 'request_timeout' });
  for (const piece of ['{"a"', ': 1', ', "b": 2']) {
    body.write(piece);
    await vi.advanceTimersByTimeAsync(29_000);
  }
  await vi.advanceTimersByTimeAsync(1_000);
  await refused;
});

test('a body that comes byte by byte takes the memory of its bytes', async () => {
  const body = new PassThrough();
  const read = readJsonObject(requestOf(body));
  const kept: WeakRef<Buffer>[] = [];
  for (const byte of Buffer.from(`{"a": "${'x'.repeat(10_000)}"}`)) {
    const chunk = Buffer.alloc(1, byte);
    kept.push(new WeakRef(chunk));
    body.emit('data', chunk);
  }
  await new Promise(setImmediate);
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  expect(kept.filter((one) => one.deref() !== undefined).length).toBeLessThan(100);
  body.end();
  expect(await read).toEqual({ a: 'x'.repeat(10_000) });
});

test('a body without anything in it is said to be empty', async () => {
  const body = new PassThrough();
  const read = readJsonObject(requestOf(body));
  body.end(' \n');
  await expect(read).rejects.toMatchObject({ status: 400, code: 'invalid_json', message: 'the body is empty, expected a JSON object' });
});

test('nothing waits for a body that has come', async () => {
  const body = new PassThrough();
  const read = readJsonObject(requestOf(body));
  body.end('{"a": 1}');
  expect(await read).toEqual({ a: 1 });
  expect(vi.getTimerCount()).toBe(0);
});

test("a body that the program around it has read, as Express's json() does, is taken from there", async () => {
  const body = new PassThrough();
  const request = Object.assign(requestOf(body), { body: { a: [1, 'é'] } });
  body.end('{"a": [1, "é"]}');
  await once(body.resume(), 'end');
  expect(await readJsonObject(request)).toEqual({ a: [1, 'é'] });
});
