/** Bodies that do not come. */
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Request } from 'express';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { JSON_LIMITS, readJsonObject } from '../../server/body/json-body.ts';
import { UploadBudget } from '../../server/body/upload-budget.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

/** A round of the event loop. Not of a native function: where an engine has been in this process, that is Dawn's, and may wait for a timer (engine/platform). */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(() => resolve()));

function requestOf(body: PassThrough): Request {
  const headers: Readonly<Record<string, string>> = { 'content-type': 'application/json', 'transfer-encoding': 'chunked' };
  return Object.assign(body, { get: (name: string) => headers[name] }) as object as Request;
}

test('a body of which nothing comes for half a minute is given up, one that comes slowly is not', async () => {
  const body = new PassThrough();
  const read = readJsonObject(requestOf(body), new UploadBudget());
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
  const read = readJsonObject(requestOf(body), new UploadBudget());
  const kept: WeakRef<Buffer>[] = [];
  for (const byte of Buffer.from(`{"a": "${'x'.repeat(10_000)}"}`)) {
    const chunk = Buffer.alloc(1, byte);
    kept.push(new WeakRef(chunk));
    body.emit('data', chunk);
  }
  await turn();
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  expect(kept.filter((one) => one.deref() !== undefined).length).toBeLessThan(100);
  body.end();
  expect(await read).toEqual({ a: 'x'.repeat(10_000) });
});

test('a body without anything in it is said to be empty', async () => {
  const body = new PassThrough();
  const read = readJsonObject(requestOf(body), new UploadBudget());
  body.end(' \n');
  await expect(read).rejects.toMatchObject({ status: 400, code: 'invalid_json', message: 'the body is empty, expected a JSON object' });
});

test('nothing waits for a body that has come', async () => {
  const body = new PassThrough();
  const read = readJsonObject(requestOf(body), new UploadBudget());
  body.end('{"a": 1}');
  expect(await read).toEqual({ a: 1 });
  expect(vi.getTimerCount()).toBe(0);
});

test("a body that the program around it has read, as Express's json() does, is taken from there", async () => {
  const body = new PassThrough();
  const request = Object.assign(requestOf(body), { body: { a: [1, 'é'] } });
  body.end('{"a": [1, "é"]}');
  await once(body.resume(), 'end');
  expect(await readJsonObject(request, new UploadBudget())).toEqual({ a: [1, 'é'] });
});

test('long bodies are held together within a budget: those that find no room wait, are read on, and give back what they held', async () => {
  const budget = new UploadBudget({ maxBytes: 6 << 20, stallMs: 60_000 });
  // As large as a socket gives them. The budget counts on it: of larger ones, taken in turn, both bodies would hold too much for either to end.
  const piece = Buffer.alloc(64 << 10, ' ');
  const pieces = 32;
  const open = (address: string) => {
    const body = new PassThrough({ highWaterMark: 8 << 20 });
    const headers: Readonly<Record<string, string>> = {
      'content-type': 'application/json',
      'content-length': String(pieces * piece.length + 2),
    };
    const request = Object.assign(body, { get: (name: string) => headers[name], socket: { remoteAddress: address } }) as object as Request;
    return { body, read: readJsonObject(request, budget) };
  };
  const short = open('1.1.1.1');
  short.body.write(Buffer.alloc(64 << 10, ' '));
  await turn();
  expect(budget.held).toBe(0);
  const [first, second] = [open('1.1.1.2'), open('1.1.1.3')];
  for (const { body } of [first, second]) for (let i = 0; i < pieces; i++) body.write(piece);
  await vi.waitFor(() => expect([first, second].filter(({ body }) => body.isPaused())).toHaveLength(1));
  expect(budget.held).toBeLessThanOrEqual((3 << 20) + piece.length);
  // However long it waits, that is no silence of its own.
  expect(vi.getTimerCount()).toBe(2);
  const [waits, goesOn] = first.body.isPaused() ? [first, second] : [second, first];
  goesOn.body.end('{}');
  expect(await goesOn.read).toEqual({});
  await vi.waitFor(() => expect(waits.body.isPaused()).toBe(false));
  waits.body.end('{}');
  expect(await waits.read).toEqual({});
  short.body.destroy();
  await expect(short.read).rejects.toMatchObject({ code: 'invalid_json' });
  expect(budget.held).toBe(0);
});

test('the budget of a listener has room for several bodies of the largest size from one address', () => {
  const budget = new UploadBudget(JSON_LIMITS);
  const reader = { pause: () => {}, resume: () => {}, stop: () => {} };
  const uploads = Array.from({ length: 5 }, () => budget.open('1.1.1.1', 16 << 20, reader));
  for (const upload of uploads) for (let i = 0; i < 256; i++) expect(upload.take(64 << 10)).toBe(true);
  for (const upload of uploads) upload.close();
});
